"""The algorithms by name: each one's settings, and how its learner is built for an environment's spaces."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from sunrise.ensemble import EnsembleNumbers, Sunrise, build
from sunrise.envs.make import check_continuous, check_observation_space
from sunrise.errors import SunriseError, near
from sunrise.learners.sac import SACSettings, sac, sac_numbers
from sunrise.settings import Config
from sunrise.types import Learner


class Parts(NamedTuple):
    """A learner fitted to an environment."""

    make_learner: Callable[[Any], Learner]
    numbers: Any
    action_shape: tuple[int, ...]
    """Shape and type of an action as the replay buffer keeps it."""
    action_dtype: np.dtype[Any]


class Algorithm(NamedTuple):
    """An algorithm as users know it."""

    name: str
    policies: tuple[str, ...]
    """The names of policies it takes."""
    defaults: Config[Any]
    authors: Mapping[str, Any]
    """The settings in which the authors' code differs from our defaults."""
    fit: Callable[[Config[Any], gym.Space[Any], gym.Space[Any]], Parts]
    """Settings, observation space and action space to a learner; wrong spaces are refused."""


AUTHORS_EVALUATION = {"eval_freq": 1000, "eval_steps": 1000}
AUTHORS_SCHEDULE = {
    "train_freq": 1000,
    "gradient_steps": 1000,
    "warmup": "ensemble",
    "truncation": "terminal",
}
AUTHORS_SAC = {
    "init": "rlkit",
    "target_init": "random",
    "loss_normaliser": "mask",
    "weight_action": "fresh",
    "alpha_in_target": "after",
    **AUTHORS_SCHEDULE,
    **AUTHORS_EVALUATION,
}


def flat_size(space: gym.Space[Any]) -> int:
    """How many numbers an observation has."""
    check_observation_space(space)
    return int(gym.spaces.flatdim(space))


def fit_sac(config: Config[SACSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
    """SAC for states and continuous actions."""
    check_continuous(action_space, "SAC")
    obs_dim, action_dim = flat_size(observation_space), flat_size(action_space)
    settings = config.learner
    return Parts(
        make_learner=lambda numbers: sac(obs_dim, action_dim, settings, numbers),
        numbers=sac_numbers(settings, action_dim),
        action_shape=(action_dim,),
        action_dtype=np.dtype(np.float32),
    )


ALGORITHMS: dict[str, Algorithm] = {
    "sac": Algorithm("sac", ("MlpPolicy", "MultiInputPolicy"), Config(learner=SACSettings()), AUTHORS_SAC, fit_sac),
}


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name."""
    if name not in ALGORITHMS:
        raise SunriseError(f"there is no algorithm {name!r}.{near(name, ALGORITHMS)}")
    return ALGORITHMS[name]


def ensemble_of(parts: Parts, config: Config[Any]) -> tuple[Sunrise, Any]:
    """The compiled functions of an ensemble, and the numbers they take."""
    own = EnsembleNumbers(config.ensemble.weight_temperature, config.ensemble.ucb_lambda)
    numbers = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), (own, parts.numbers))
    return build(parts.make_learner, config.ensemble), numbers
