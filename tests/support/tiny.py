"""Small things that many tests use."""

from typing import Any

import gymnasium as gym
import jax
import numpy as np

from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.ensemble import Ensemble, Sunrise, Tally
from sunrise.run.building import ensemble_of
from sunrise.types import Batch, Sample

OBS, ACTION, ROWS = 3, 2, 8


def batch(rng: np.random.Generator, rows: int = ROWS, dtype: Any = np.float32) -> Batch:
    """Transitions of noise; some of them terminal."""
    return Batch(
        obs=rng.standard_normal((rows, OBS)).astype(dtype),
        action=np.tanh(rng.standard_normal((rows, ACTION))).astype(dtype),
        reward=rng.standard_normal(rows).astype(dtype),
        discount=np.where(rng.random(rows) < 0.2, 0.0, 0.99).astype(dtype),
        next_obs=rng.standard_normal((rows, OBS)).astype(dtype),
    )


def sample(rng: np.random.Generator, members: int, prob: float = 0.7, dtype: Any = np.float32) -> Sample:
    """A minibatch of noise with masks."""
    return Sample(batch(rng, dtype=dtype), rng.random((ROWS, members)) < prob, np.ones(ROWS, dtype))


def spaces() -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """An observation and an action space of the tiny sizes."""
    return gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32), gym.spaces.Box(-1, 1, (ACTION,), np.float32)


def ensemble(algo: str = "sac", **settings: Any) -> tuple[Sunrise, Any, Ensemble, Tally]:
    """A tiny ensemble: its compiled functions, its numbers and its first state."""
    config = with_settings(algorithm(algo).defaults, {"net_arch": (6, 6), **settings})
    functions, numbers = ensemble_of(algorithm(algo).fit(config, *spaces()), config)
    state, tally = functions.init(jax.random.key(7), numbers)
    return functions, numbers, state, tally


def assert_trees_close(one: Any, other: Any, tolerance: float) -> None:
    """Every leaf of two trees within a tolerance."""
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), one, other)


def same_bits(one: Any, other: Any) -> bool:
    """Whether two trees are equal in every bit."""
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in leaves)
