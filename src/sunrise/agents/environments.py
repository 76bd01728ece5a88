"""The environments of an agent: those it learns in, and how to make more like them."""

import logging
from collections.abc import Callable
from typing import Any, cast

from gymnasium.vector import VectorEnv

from sunrise.compat.sb3 import FromVecEnv, is_vec_env
from sunrise.config.groups import Config, env_options
from sunrise.envs.make import AnyEnv, AnyVectorEnv, Maker, as_vector, attribute, factory
from sunrise.errors import SunriseError
from sunrise.randomness import generator
from sunrise.run.collect import Collector

log = logging.getLogger("sunrise")
EnvArgument = str | AnyEnv | AnyVectorEnv | Maker
"""An id, an environment, a vector environment, or a class or function that makes environments."""


class Environments:
    """A vector environment to learn in, and a maker of environments to be evaluated in."""

    def __init__(self, env: EnvArgument, config: Config[object]) -> None:
        run, options = config.run, env_options(config.env, env)

        env = FromVecEnv(env) if is_vec_env(env) else env
        made = {"wrappers": run.wrapper, **options}
        self.vector = as_vector(env, run.num_envs, run.vectorization, run.env_timeout, **made)
        self.make: Callable[[], AnyEnv] | None = None
        """None where there is no way to make another."""
        self.action_repeat = int(attribute(self.vector, "action_repeat") or 1)
        """Simulator steps in one timestep: the action repeat or frame skip of our own environments."""
        self.stacked = int(attribute(self.vector, "stack_size") or 0)
        """Frames that gymnasium.wrappers.FrameStackObservation puts on one another."""
        if not isinstance(env, VectorEnv):
            self.make = factory(env, training=False, **made)

    def require_as_many(self, new: "Environments") -> None:
        """Replay is laid out for so many environments, and steps are counted in so many of the simulator."""
        for what, ours, theirs in (
            ("environments", self.vector.num_envs, new.vector.num_envs),
            ("simulator steps in a timestep", self.action_repeat, new.action_repeat),
        ):
            if ours != theirs:
                raise SunriseError(
                    f"this model is training with {what}: {ours}, and the new environment has {theirs}; "
                    "save the model, and load it with the new environment."
                )

    def name_differences(self, config: Config[Any]) -> None:
        """Say where these environments are other ones than those that the agents learned in."""
        learned = env_options(config.env, config.run.env_id)
        for name, own in (("action_repeat", "action_repeat"), ("renderer", "renderer_name")):
            now = attribute(self.vector, own)
            if now is not None and learned.get(name, now) not in (now, "auto"):
                log.warning("These agents learned with %s = %s; this environment has %s.", name, learned[name], now)


def trusted(env_id: str, trust: bool) -> str:
    """The id of a run's environment; one that imports a module is refused unless the user says that it may."""
    module, _, _ = env_id.rpartition(":")
    if module and not trust:
        raise SunriseError(
            f"this run's environment is {env_id}: making it imports the module {module!r}, which runs its code. If you "
            "trust it, say so with --trust-env (in Python: give `env`)."
        )
    return env_id


def maker(env: str | AnyEnv | Maker, config: Config[object]) -> Callable[[], AnyEnv]:
    """How to make the environment of evaluations that was asked for; one that cannot be made again is used itself."""
    make = factory(env, training=False, wrappers=config.run.wrapper, **env_options(config.env, env))
    return make if make is not None else lambda: cast(AnyEnv, env)


def make_collector(environments: Environments, config: Config[Any]) -> Collector:
    """What steps the environments that are learned in."""
    training, run = config.training, config.run
    return Collector(
        environments.vector,
        run.seed,
        config.ensemble.ensemble_size,
        generator(run.seed, "members"),
        training.gamma,
        training.truncation,
        training.reward_noise,
        run.max_env_restarts,
    )
