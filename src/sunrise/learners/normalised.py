"""Observations with mean 0 and variance 1 around another learner, by statistics of all that has been seen (SimBa)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sunrise.moments import EPS, FIRST_COUNT, Moments
from sunrise.networks.layers import flatten
from sunrise.networks.observations import Seen
from sunrise.types import Batch, Info, Learner, Observation, State


def measured(obs: Observation) -> Float[Array, "*views B in"]:
    """What there are statistics of: all of an observation, or of one in parts its numbers."""
    if not isinstance(obs, Seen):
        return flatten(obs)
    assert obs.numbers is not None
    return obs.numbers


def in_deviations(moments: Moments, obs: Observation) -> Observation:
    """Observations in units of their deviations."""
    standard = (measured(obs) - moments.mean) / jnp.sqrt(moments.variance + EPS)
    return Seen(obs.pictures, standard, obs.choices) if isinstance(obs, Seen) else standard


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
        return batch._replace(obs=in_deviations(moments, batch.obs), next_obs=in_deviations(moments, batch.next_obs))

    def learn(state: NormalisedState, batch: Batch, *rest: Any) -> tuple[NormalisedState, Info]:
        inside, info = inner.learn(state.inner, standard(state, batch), *rest)
        return state._replace(inner=inside), info

    elapse = inner.elapse
    return inner._replace(
        init=lambda key: NormalisedState(
            inner.init(key), Moments(jnp.zeros(obs_dim), jnp.ones(obs_dim), jnp.asarray(FIRST_COUNT))
        ),
        propose=lambda state, obs, key: inner.propose(state.inner, in_deviations(state.moments, obs), key),
        judge=lambda state, obs, action, key: inner.judge(state.inner, in_deviations(state.moments, obs), action, key),
        bellman=lambda state, batch, *rest: inner.bellman(state.inner, standard(state, batch), *rest),
        judge_next=lambda state, batch, *rest: inner.judge_next(state.inner, standard(state, batch), *rest),
        learn=learn,
        observe=lambda state, obs: state._replace(moments=state.moments.including(measured(obs))),
        elapse=None if elapse is None else lambda state, *rest: state._replace(inner=elapse(state.inner, *rest)),
    )
