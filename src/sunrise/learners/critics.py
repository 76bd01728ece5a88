"""Twin critics and masked losses: what the actor-critic learners have in common."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.networks import MLP, Init, flatten, mlp
from sunrise.types import Observation

CRITICS = 2
Normaliser: TypeAlias = Literal["rows", "mask"]


def twin(key: PRNGKeyArray, sizes: Sequence[int], init: Init) -> MLP:
    """Two networks as one, with K on axis 0 of every leaf."""
    both: MLP = jax.vmap(lambda k: mlp(k, sizes, init, last_bound=3e-3))(jax.random.split(key, CRITICS))
    return both


def q_values(critics: MLP, obs: Observation, action: Float[Array, "B A"]) -> Float[Array, "K B"]:
    """Q_k(s, a) of each critic."""
    rows = jnp.concatenate([flatten(obs), action], axis=-1)
    values: Array = jax.vmap(lambda critic: critic(rows)[:, 0])(critics)
    return values


def masked_mean(
    loss: Float[Array, "*K B"], mask: Float[Array, "B"], normaliser: Normaliser = "rows"
) -> Float[Array, "*K"]:
    """The mean of a loss over the rows that this agent's bootstrap mask lets through."""
    return jnp.sum(mask * loss, axis=-1) / (mask.sum() + 1 if normaliser == "mask" else mask.size)
