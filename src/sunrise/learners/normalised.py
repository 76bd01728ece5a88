"""Observations with mean 0 and variance 1 around another learner, by statistics of all that has been seen (SimBa)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sunrise.networks import flatten
from sunrise.types import Batch, Info, Learner, Observation, State

EPS = 1e-8
FIRST_COUNT = 1e-4
"""Observations that the first mean of 0 and variance of 1 count for."""


class Moments(NamedTuple):
    """Mean and variance of the observations so far, and how many they were."""

    mean: Float[Array, "in"]
    variance: Float[Array, "in"]
    total: Float[Array, ""]

    def standard(self, obs: Observation) -> Float[Array, "B in"]:
        """obs[B] -> [B, in] in units of its deviations."""
        return (flatten(obs) - self.mean) / jnp.sqrt(self.variance + EPS)

    def including(self, obs: Observation) -> "Moments":
        """obs[E] -> the moments with these observations in them too (Chan et al., 1979)."""
        rows = flatten(obs)
        more = rows.shape[0]
        total, step = self.total + more, rows.mean(axis=0) - self.mean
        squares = self.variance * self.total + rows.var(axis=0) * more + step**2 * self.total * more / total
        return Moments(self.mean + step * more / total, squares / total, total)


class NormalisedState(NamedTuple):
    """The learner inside, and what it knows of the observations."""

    inner: State
    moments: Moments


def normalised(inner: Learner, obs_dim: int) -> Learner:
    """From a learner to the same that sees observations in units of their deviations.

    Each observation is counted once, when it is acted on in training.
    """

    def standard(state: NormalisedState, batch: Batch) -> Batch:
        moments = state.moments
        return batch._replace(obs=moments.standard(batch.obs), next_obs=moments.standard(batch.next_obs))

    def learn(state: NormalisedState, batch: Batch, *rest: Any) -> tuple[NormalisedState, Info]:
        inside, info = inner.learn(state.inner, standard(state, batch), *rest)
        return state._replace(inner=inside), info

    return inner._replace(
        init=lambda key: NormalisedState(
            inner.init(key), Moments(jnp.zeros(obs_dim), jnp.ones(obs_dim), jnp.asarray(FIRST_COUNT))
        ),
        propose=lambda state, obs, key: inner.propose(state.inner, state.moments.standard(obs), key),
        judge=lambda state, obs, action, key: inner.judge(state.inner, state.moments.standard(obs), action, key),
        bellman=lambda state, batch, *rest: inner.bellman(state.inner, standard(state, batch), *rest),
        judge_next=lambda state, batch, *rest: inner.judge_next(state.inner, standard(state, batch), *rest),
        learn=learn,
        observe=lambda state, obs: state._replace(moments=state.moments.including(obs)),
    )
