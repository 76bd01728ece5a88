"""What a run is built of, once a learner is fitted: the compiled ensemble and the replay buffer."""

from functools import partial
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from sunrise.config.ensemble import resolve_temperature
from sunrise.config.groups import Config, from_pixels
from sunrise.ensemble import EnsembleNumbers, Numbers, Placement, Sunrise, build
from sunrise.replay.mixed import MixedStore, moves_on
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore, PlainStore
from sunrise.replay.uniform import UniformReplay
from sunrise.run.fitting import Parts
from sunrise.types import Replay


def ensemble_of(parts: Parts, config: Config[Any], placement: Placement | None = None) -> tuple[Sunrise, Numbers]:
    """The compiled functions of an ensemble, which is to be in a place, and the numbers they take."""
    own = EnsembleNumbers(
        resolve_temperature(config.ensemble, from_pixels(config)), config.ensemble.ucb_lambda, config.training.gamma
    )
    numbers = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), Numbers(own, parts.numbers))
    functions = build(parts.make_learner, config.ensemble, placement)
    one = parts.make_learner(parts.numbers)
    if one.observe is None:
        functions = functions._replace(observe=None)
    if one.elapse is None:
        functions = functions._replace(elapse=None)
    return functions, numbers


def make_replay(
    config: Config[Any], space: gym.Space[Any], parts: Parts, envs: int, rng: np.random.Generator, stacked: int = 0
) -> Replay:
    """The replay buffer that the settings and the observations ask for; `stacked` is what the environment stacks."""
    training, members = config.training, config.ensemble.ensemble_size
    frames = moves_on(space, stacked)
    kept = partial(MixedStore, parts.pictures, stacked) if parts.pictures else FrameStore if frames else PlainStore
    if not parts.pictures and not frames and training.n_step == 1 and not training.prioritised:
        return UniformReplay(training.buffer_size, space, parts.action_shape, parts.action_dtype, members, rng)
    return SequenceReplay(
        kept(space, training.buffer_size, envs),
        parts.action_shape,
        parts.action_dtype,
        members,
        rng,
        training.gamma,
        training.n_step,
        training.prioritised,
        training.priority_exponent,
        training.importance_start,
        importance_from=training.learning_starts,
        importance_until=max(training.importance_horizon or config.run.total_timesteps, training.learning_starts + 1),
    )
