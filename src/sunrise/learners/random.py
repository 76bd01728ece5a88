"""An agent that learns nothing and acts uniformly at random: the floor of every comparison."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from sunrise.config.learners import RandomSettings
from sunrise.networks.layers import flatten
from sunrise.types import Backup, Batch, Info, Learner, Observation


class RandomState(NamedTuple):
    """A number of its own, so that two random agents differ."""

    salt: Float[Array, ""]


def random(obs_dim: int, action_dim: int, settings: RandomSettings, numbers: Any) -> Learner:
    """From the sizes of observations and actions to a learner that acts uniformly in [-1, 1] and has no opinion."""

    def bits(state: RandomState, obs: Observation) -> Shaped[PRNGKeyArray, "B"]:
        """Evaluation has no key: the observation is one."""
        words = jax.lax.bitcast_convert_type(flatten(obs).astype(jnp.float32), jnp.uint32)
        mixed = jnp.sum(words * jnp.arange(1, words.shape[1] + 1, dtype=jnp.uint32) * jnp.uint32(2654435761), axis=1)
        return jax.vmap(lambda word: jax.random.fold_in(jax.random.key(0), word))(mixed + state.salt.astype(jnp.uint32))

    def propose(state: RandomState, obs: Observation, key: PRNGKeyArray | None) -> Array:
        keys = bits(state, obs) if key is None else jax.random.split(key, flatten(obs).shape[0])
        return jax.vmap(lambda k: jax.random.uniform(k, (action_dim,), minval=-1.0, maxval=1.0))(keys)

    def nothing(state: RandomState, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return jnp.zeros((1, action.shape[0]))

    def bellman(state: RandomState, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        return Backup(batch.reward, batch.action, jnp.zeros((1, batch.reward.shape[0])))

    def learn(
        state: RandomState, batch: Batch, mask: Array, backup: Backup, weight: Array, step: Array, key: PRNGKeyArray
    ) -> tuple[RandomState, Info]:
        return state, Info(jnp.zeros((1, mask.size)), {})

    return Learner(
        init=lambda key: RandomState(jnp.floor(jax.random.uniform(key) * 2**24)),
        propose=propose,
        judge=nothing,
        bellman=bellman,
        judge_next=lambda state, batch, action, key: nothing(state, batch.next_obs, action, key),
        learn=learn,
        metrics=(),
    )
