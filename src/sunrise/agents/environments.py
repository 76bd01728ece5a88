"""The environments of an agent: those it learns in, and how to make more like them."""

from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
from gymnasium.vector import SyncVectorEnv, VectorEnv

from sunrise.envs.make import AnyEnv, AnyVectorEnv, action_repeat, as_vector, discard, factory, make_env
from sunrise.settings import Config, env_options

Given = str | AnyEnv | AnyVectorEnv
"""An id, an environment, or a vector environment."""


class Environments:
    """A vector environment to learn in, and a maker of environments to be evaluated in."""

    def __init__(self, env: Given, config: Config[object]) -> None:
        run, options = config.run, env_options(config.env, env)

        def build() -> AnyVectorEnv:
            return as_vector(env, run.num_envs, run.vectorization, **options)

        self.vector = build()
        self.make: Callable[[], AnyEnv] | None = None
        """None where there is no way to make another."""
        self.action_repeat = 1
        self._build = build if isinstance(env, str) else None
        if not isinstance(env, VectorEnv):
            self.make = factory(env, training=False, **options)
            inside = self.vector.unwrapped
            self.action_repeat = (
                action_repeat(inside.envs[0]) if isinstance(inside, SyncVectorEnv) else repeats(env, **options)
            )

    def rebuild(self) -> AnyVectorEnv:
        """The environments anew after a failure, where they can be made from an id; else as they are."""
        if self._build is not None:
            discard(self.vector)
            self.vector = self._build()
        return self.vector


def repeats(env: str | AnyEnv, **options: Any) -> int:
    """Simulator steps in one timestep of environments that are in other processes."""
    if isinstance(env, gym.Env):
        return action_repeat(env)
    first = make_env(env, **options)
    try:
        return action_repeat(first)
    finally:
        first.close()


def maker(env: str | AnyEnv, config: Config[object]) -> Callable[[], AnyEnv]:
    """How to make the environment of evaluations that was asked for; one that cannot be made again is used itself."""
    make = factory(env, training=False, **env_options(config.env, env))
    return make if make is not None else lambda: cast(AnyEnv, env)
