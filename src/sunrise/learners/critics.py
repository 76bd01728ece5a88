"""K critics and masked losses: what the actor-critic learners have in common."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import ArchitectureSettings, Normaliser
from sunrise.networks.architecture import Network
from sunrise.networks.layers import Dropout, flatten
from sunrise.types import Backup, Batch, Observation

T = TypeVar("T")


class Use(IntEnum):
    """What a key is folded with for a use of its own.

    No split of it reaches so far: `fold_in(key, i)` and `split(key, n)[i]` are the same key.
    """

    SUBSET = 2**31
    JUDGE = 2**31 + 1
    NEXT = 2**31 + 2
    WEIGHT = 2**31 + 3
    CRITIC = 2**31 + 4
    ACTOR = 2**31 + 5
    NOISE = 2**31 + 6


def draws(settings: ArchitectureSettings) -> bool:
    """Whether critics are asked at random."""
    return settings.dropout > 0 or settings.critic_subset < settings.n_critics


def dropout(settings: ArchitectureSettings, key: PRNGKeyArray | None, use: Use) -> Dropout | None:
    """The units left out in one use of the critics; none without a key, as in evaluation."""
    if key is None or settings.dropout == 0:
        return None
    return Dropout(jax.random.fold_in(key, use), settings.dropout)


def q_values(
    critics: Network, obs: Observation, action: Float[Array, "B A"], dropout: Dropout | None = None
) -> Float[Array, "K B"]:
    """critics[K], obs[B], action[B, A] -> Q_k(s, a)[K, B]; with dropout, each leaves out units of its own."""
    rows = jnp.concatenate([flatten(obs), action], axis=-1)
    values: Array
    if dropout is None:
        values = jax.vmap(lambda critic: critic(rows)[:, 0])(critics)
    else:
        keys = jax.random.split(dropout.key, jax.tree.leaves(critics)[0].shape[0])
        values = jax.vmap(lambda critic, key: critic(rows, dropout._replace(key=key))[:, 0])(critics, keys)
    return values


def target_value(settings: ArchitectureSettings, q: Float[Array, "K B"], key: PRNGKeyArray) -> Float[Array, "B"]:
    """q[K, B], key -> [B]: the minimum of M critics drawn at random, the same for all rows (Chen et al., 2021).

    M is `critic_subset`; where it is K or more, the minimum is that of all critics.
    """
    if settings.critic_subset < settings.n_critics:
        q = q[jax.random.permutation(jax.random.fold_in(key, Use.SUBSET), q.shape[0])[: settings.critic_subset]]
    return q.min(axis=0)


def masked_mean(
    loss: Float[Array, "*K B"], mask: Float[Array, "B"], normaliser: Normaliser = "rows"
) -> Float[Array, "*K"]:
    """loss[..., B], mask[B] -> [...]: the sum over the rows that the bootstrap mask lets through, over all rows.

    The normaliser `mask` divides by Σ mask + 1 instead.
    """
    return jnp.sum(mask * loss, axis=-1) / (mask.sum() + 1 if normaliser == "mask" else mask.size)


class CriticStep(NamedTuple):
    """What a step of the critics gives: their next state, and what they said before it."""

    critics: Network
    opt: optax.OptState
    loss: Float[Array, ""]
    q: Float[Array, "K B"]
    error: Float[Array, "K B"]
    """|TD error|, neither weighted nor masked."""
    gradient: Network


def critic_step(
    optimiser: optax.GradientTransformation,
    critics: Network,
    opt: optax.OptState,
    batch: Batch,
    mask: Float[Array, "B"],
    backup: Backup,
    weight: Float[Array, "*K B"],
    normaliser: Normaliser = "rows",
    dropout: Dropout | None = None,
) -> CriticStep:
    """critics[K], batch[B], mask[B], backup, weight[B] or [K, B] -> the critics after a step, and their values before.

    The loss is L_WQ = w (Q(s, a) − y)², masked (equation 5 of SUNRISE).
    """

    def loss(critics: Network) -> tuple[Array, tuple[Array, Array]]:
        q = q_values(critics, batch.obs, batch.action, dropout)
        error = q - backup.target
        return masked_mean(weight * error**2, mask, normaliser).sum(), (q, jnp.abs(error))

    (value, (q, error)), gradient = jax.value_and_grad(loss, has_aux=True)(critics)
    change, opt = optimiser.update(gradient, opt, critics)
    return CriticStep(optax.apply_updates(critics, change), opt, value, q, error, gradient)


def is_due(interval: int, step: Array) -> Array:
    """interval, updates before this one -> whether this is an `interval`-th update."""
    due: Array = (step + 1) % interval == 0
    return due


def every(interval: int, step: Array, compute: Callable[..., T], *arguments: object) -> T:
    """What `compute` gives in every `interval`-th update, and zeros in the others.

    Only gradients should be computed so: a state that passes through a condition is copied, which is slow on CPU.
    """
    if interval == 1:
        return compute(*arguments)
    shapes = jax.eval_shape(compute, *arguments)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    found: T = jax.lax.cond(is_due(interval, step), compute, lambda *_: zeros, *arguments)
    return found


def when(due: Array, new: T, old: T) -> T:
    """Truth, two trees of the same shapes -> the new tree where it is due, else the old one."""
    chosen: T = jax.tree.map(lambda a, b: jnp.where(due, a, b), new, old)
    return chosen
