"""From an id, an environment or a vector environment to a vector environment whose episodes we can seed."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from sunrise.envs.imports import import_named
from sunrise.envs.vector import AsyncEnvs, SyncEnvs
from sunrise.envs.wrappers import wrap
from sunrise.errors import SunriseError, near

AnyEnv = gym.Env[Any, Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]
Maker = Callable[[], AnyEnv]
"""A class of environments, or a function that makes one: with it there can be as many as are needed."""

OBSERVED = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
"""The spaces that observations, or the parts of a Dict of them, may be of."""


def find_spec(env_id: str) -> EnvSpec:
    """What Gymnasium knows about an id; an unknown one is refused with the nearest ids.

    `module:Name-v0` is Gymnasium's own form: the module is imported, and registers the environment.
    """
    module, _, env_id = env_id.rpartition(":")
    if module:
        import_named(module, f"the environment {env_id!r}")
    try:
        return gym.spec(env_id)
    except gym.error.Error:
        with contextlib.suppress(ImportError):  # games are only known once they are asked for
            import ale_py

            gym.register_envs(ale_py)
        raise SunriseError(
            f"there is no environment {env_id!r}.{near(env_id, gym.registry)} `sunrise envs` lists every id."
        ) from None


def make_env(env: str | EnvSpec, training: bool = True, wrappers: Sequence[str] = (), **options: Any) -> AnyEnv:
    """One environment by its id or its specification, inside `wrappers`.

    `training` matters to Atari games: lives, clipped rewards.
    """
    if isinstance(env, str) and env.startswith("ALE/"):
        from sunrise.envs.atari import make_atari

        return wrap(make_atari(env, training=training, **options), wrappers)
    spec = find_spec(env) if isinstance(env, str) else env
    try:
        return wrap(gym.make(spec, disable_env_checker=True, **options), wrappers)
    except gym.error.Error as error:
        raise SunriseError(f"the environment {spec.id!r} cannot be made: {error}") from error


def factory(
    env: str | AnyEnv | Maker, training: bool = True, wrappers: Sequence[str] = (), **options: Any
) -> Callable[[], AnyEnv] | None:
    """How to make another environment like `env`, also in another process; None where there is no way to know.

    `wrappers` are for one that is made by its id: another has its own already.
    """
    if isinstance(env, str):
        known = env if env.startswith("ALE/") else find_spec(env)
        return partial(make_env, known, training, tuple(wrappers), **options)
    if not isinstance(env, gym.Env):
        return partial(call, env)
    spec = env.spec
    if spec is None or any(wrapper.kwargs is None for wrapper in spec.additional_wrappers):
        return None  # a wrapper that does not record its arguments cannot be made again
    return partial(make_env, spec, training, (), **({"render_mode": None} if "render_mode" in spec.kwargs else {}))


def call(maker: Maker) -> AnyEnv:
    """The environment that a class or a function makes; what is no environment is refused."""
    made = maker()
    if not isinstance(made, gym.Env):
        raise SunriseError(f"{maker} was given to make an environment, but what it makes is {made!r}.")
    return made


def attribute(env: AnyEnv | AnyVectorEnv, name: str) -> Any:
    """An attribute of an environment, or of the first of several wherever it lives; None where it has none."""
    if isinstance(env, gym.Env):
        return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
    inside = env.unwrapped
    if not isinstance(inside, SyncVectorEnv | AsyncVectorEnv) or not inside.call("has_wrapper_attr", name)[0]:
        return None
    return inside.get_attr(name)[0]


def as_vector(
    env: str | AnyEnv | AnyVectorEnv | Maker,
    count: int = 1,
    vectorization: Literal["sync", "async"] = "sync",
    env_timeout: float = 0.0,
    **options: Any,
) -> AnyVectorEnv:
    """Any of the four ways to give an environment, as a vector environment; what we make does not reset itself."""
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, gym.Env) and count == 1:
        return SyncEnvs([lambda: env], remake=False)
    make = factory(env, **options)
    if make is None:
        raise SunriseError(
            f"num_envs is {count}, but one environment object was given: give its id or its class instead."
        )
    return AsyncEnvs([make] * count, env_timeout) if vectorization == "async" else SyncEnvs([make] * count)


def check_observation_space(space: gym.Space[Any]) -> None:
    """Numbers, pictures or choices from finite sets, or a Dict of such; anything else is refused."""
    for part in space.spaces.values() if isinstance(space, gym.spaces.Dict) else [space]:
        if not isinstance(part, OBSERVED):
            raise SunriseError(
                f"observations are {space}, but must be a Box, Discrete, MultiDiscrete, MultiBinary or a Dict of such; "
                "gymnasium.wrappers.FlattenObservation turns many others into a Box."
            )


def check_continuous(space: gym.Space[Any], algorithm: str) -> None:
    """A bounded Box of float actions; anything else is refused."""
    if isinstance(space, gym.spaces.Discrete):
        raise SunriseError(f"{algorithm} needs continuous actions (a Box), but this environment's are {space}.")
    if not isinstance(space, gym.spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise SunriseError(f"{algorithm} needs a Box of float actions, but this environment's are {space}.")
    if not space.is_bounded():
        raise SunriseError(
            f"actions are {space}, which has no bounds, and policies need some: give them in the environment "
            "(action_space = gymnasium.spaces.Box(-1, 1, ...)), or by a gymnasium.ActionWrapper with such a space."
        )


def check_discrete(space: gym.Space[Any], algorithm: str) -> int:
    """A finite set of actions; its size."""
    if not isinstance(space, gym.spaces.Discrete):
        raise SunriseError(f"{algorithm} needs Discrete actions, but this environment's are {space}.")
    return int(space.n)


def uniform_actions(rng: np.random.Generator, space: gym.Space[Any], count: int) -> np.ndarray:
    """Random actions in the form that replay keeps: integers, or rows in [-1, 1]."""
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(space.n, size=count)
    return rng.uniform(-1, 1, (count, gym.spaces.flatdim(space))).astype(np.float32)


def rescale(action: np.ndarray, space: gym.spaces.Box) -> np.ndarray:
    """From [-1, 1], where policies live, to the environment's bounds."""
    low, high = space.low, space.high
    unit = action.reshape(action.shape[0], *space.shape)
    return np.clip(low + (unit + 1) * 0.5 * (high - low), low, high).astype(space.dtype)


def to_env(action: np.ndarray, space: gym.Space[Any]) -> np.ndarray:
    """Actions as replay keeps them, in the form the environment takes."""
    if isinstance(space, gym.spaces.Discrete):
        return np.asarray(action + space.start, action.dtype)
    return rescale(action, space) if isinstance(space, gym.spaces.Box) else action


def from_env(action: np.ndarray, space: gym.Space[Any]) -> np.ndarray:
    """Actions as the environment takes them, in the form that replay keeps: from 0 up, or rows in [-1, 1]."""
    if isinstance(space, gym.spaces.Discrete):
        return np.asarray(action - space.start, action.dtype)
    return unscale(action, space) if isinstance(space, gym.spaces.Box) else action


def unscale(action: np.ndarray, space: gym.spaces.Box) -> np.ndarray:
    """From the environment's bounds to [-1, 1], one flat row an action."""
    unit = 2 * (action - space.low) / (space.high - space.low) - 1
    return np.asarray(unit, np.float32).reshape(action.shape[0], -1)
