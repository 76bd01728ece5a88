"""The arguments of an agent, as users of Stable-Baselines3 write them, turned into settings."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from sunrise.agents.environments import EnvArgument
from sunrise.compat.arguments import Habits, network, translated
from sunrise.config.algorithms import Algorithm
from sunrise.config.groups import Config
from sunrise.config.resolve import resolve
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError

OWN = """Arguments:
    policy: the kind of network, such as "MlpPolicy" for numbers or "CnnPolicy" for pictures.
    env: an id, an environment, a vector environment, or a class or function that makes environments.
    preset: settings of published code to start from, such as "authors"; keywords change them.
    policy_kwargs: net_arch and activation_fn, as Stable-Baselines3 writes them.
    tensorboard_log: a folder for events of trainings without a run_dir.
    verbose: 1 prints each row of metrics as a table.
    eval_env: the environment of evaluations, where another cannot be made from `env`.
    device: "auto", or a platform, or one device of it, such as "gpu:1".
"""
"""The text of the arguments that are no settings."""
Schedule = Callable[[float], float]
"""The learning rate from what remains of the training, which goes from 1 to 0."""


def signature(init: Callable[..., None], algorithm: Algorithm) -> inspect.Signature:
    """The arguments of `init` and, after them, every setting of the algorithm with its default."""
    own = [p for p in inspect.signature(init).parameters.values() if p.kind != p.VAR_KEYWORD]
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
        for name, value in flatten_config(algorithm.defaults).items()
        if name not in ("env_id", "total_timesteps")
    ]
    return inspect.Signature([*own[1:], *settings])


def read(
    algorithm: Algorithm,
    policy: str,
    env: EnvArgument | None,
    preset: str | None,
    policy_kwargs: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> tuple[Config[Any], Schedule | None, Habits]:
    """The checked settings, the schedule of learning rates if there is one, and how the user wants things shown."""
    policies = algorithm.policies
    if policy not in policies:
        raise SunriseError(
            f"policy is {policy!r}, but {algorithm.name} takes {' or '.join(policies)}; networks of another kind are "
            "settings (network, layer_norm, ...) or a learner of your own."
        )
    known, schedule = flatten_config(algorithm.defaults), None
    changes, habits = translated(algorithm.name, known, settings)
    rate = changes.get("learning_rate")
    if callable(rate):
        schedule, changes["learning_rate"] = rate, float(rate(1.0))
    changes |= network(algorithm.name, known, policy_kwargs)
    if isinstance(env, str):
        changes["env_id"] = env
    elif isinstance(env, gym.Env) and env.spec is not None:
        changes["env_id"] = env.spec.id
    if isinstance(changes.get("wrapper"), str):
        changes["wrapper"] = (changes["wrapper"],)
    if changes.get("seed", 0) is None:
        changes["seed"] = int(np.random.SeedSequence().generate_state(1)[0])
    return resolve(algorithm, changes, env, preset), schedule, habits
