"""Twin critics and masked losses: what the actor-critic learners have in common."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.networks import MLP, Init, flatten, mlp
from sunrise.types import Backup, Batch, Observation

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


class CriticStep(NamedTuple):
    """What a step of the critics gives: their next state, and what they said before it."""

    critics: MLP
    opt: optax.OptState
    loss: Float[Array, ""]
    q: Float[Array, "K B"]
    error: Float[Array, "K B"]
    """|TD error|, neither weighted nor masked."""
    gradient: MLP


def critic_step(
    optimiser: optax.GradientTransformation,
    critics: MLP,
    opt: optax.OptState,
    batch: Batch,
    mask: Float[Array, "B"],
    backup: Backup,
    weight: Float[Array, "*K B"],
    normaliser: Normaliser = "rows",
) -> CriticStep:
    """L_WQ = w (Q(s, a) − y)²: a step on the weighted, masked Bellman residual of each critic."""

    def loss(critics: MLP) -> tuple[Array, tuple[Array, Array]]:
        q = q_values(critics, batch.obs, batch.action)
        error = q - backup.target
        return masked_mean(weight * error**2, mask, normaliser).sum(), (q, jnp.abs(error))

    (value, (q, error)), gradient = jax.value_and_grad(loss, has_aux=True)(critics)
    change, opt = optimiser.update(gradient, opt)
    return CriticStep(optax.apply_updates(critics, change), opt, value, q, error, gradient)
