"""DisCor (Kumar et al., 2020) around another learner: backups are weighted by an estimate of their accumulated error.

An error network Δ_k for each critic learns |Q_k − y| + γ Δ̄_k(s', a'); a backup's weight is a softmax over the batch of
−γ Δ̄_k(s', a') / τ_k. The learner inside knows nothing of it: it gets another weight.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import ArchitectureSettings, DisCorSettings
from sunrise.learners.critics import masked_mean, q_values
from sunrise.networks.architecture import Network, new_critics
from sunrise.networks.layers import polyak
from sunrise.types import Backup, Batch, Info, Learner, State

FRESH = 2**32 - 1
"""What a key is folded with for the error's own next action: no split of it reaches so far (`fold_in(key, i)` and
`split(key, n)[i]` are the same key)."""


class DisCorState(NamedTuple):
    """The learner inside, the error networks and their temperatures (K on axis 0)."""

    inner: State
    errors: Network
    targets: Network
    error_opt: optax.OptState
    temperature: Float[Array, "K"]


def discor(inner: Learner, obs_dim: int, action_dim: int, settings: DisCorSettings, numbers: Any) -> Learner:
    """From a learner of states, its sizes, settings and numbers to the same with DisCor's weights on its backups."""
    adam = optax.adam(numbers.learning_rate)
    metrics_names = (*inner.metrics, "error_loss", "error_temperature", "error_gradient_norm")

    def init(key: PRNGKeyArray) -> DisCorState:
        k_inner, k_errors = jax.random.split(key)
        arch = settings.sac.net_arch
        plain = ArchitectureSettings(n_critics=settings.sac.architecture.n_critics)
        errors = new_critics(k_errors, obs_dim + action_dim, (*arch, arch[-1]), "xavier", plain)
        temperature = jnp.full(plain.n_critics, settings.discor_temperature)
        return DisCorState(inner.init(k_inner), errors, errors, adam.init(errors), temperature)

    def learn(
        state: DisCorState,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[DisCorState, Info]:
        ahead = batch.discount * q_values(state.targets, batch.next_obs, backup.action)  # γ Δ̄_k(s', a')
        trust = jax.nn.softmax(-ahead / state.temperature[:, None], axis=1) * mask.size
        inside, info = inner.learn(state.inner, batch, mask, backup, weight * trust, step, key)

        fresh = inner.propose(inside, batch.next_obs, jax.random.fold_in(key, FRESH))
        goal = info.error + batch.discount * q_values(state.targets, batch.next_obs, fresh)

        def error_loss(errors: Network) -> tuple[Array, Array]:
            estimate = q_values(errors, batch.obs, batch.action)
            return masked_mean((estimate - goal) ** 2, mask).sum(), estimate

        (value, estimate), gradient = jax.value_and_grad(error_loss, has_aux=True)(state.errors)
        change, error_opt = adam.update(gradient, state.error_opt)
        errors = optax.apply_updates(state.errors, change)
        mean = jnp.sum(mask * estimate, axis=1) / jnp.maximum(mask.sum(), 1)
        temperature = state.temperature + numbers.tau * (mean - state.temperature)
        targets = polyak(state.targets, errors, numbers.tau)
        metrics = info.metrics | {
            "error_loss": value,
            "error_temperature": temperature.mean(),
            "error_gradient_norm": optax.tree.norm(gradient),
        }
        return DisCorState(inside, errors, targets, error_opt, temperature), info._replace(metrics=metrics)

    return Learner(
        init=init,
        propose=lambda state, obs, key: inner.propose(state.inner, obs, key),
        judge=lambda state, obs, action, key: inner.judge(state.inner, obs, action, key),
        bellman=lambda state, batch, mask, key: inner.bellman(state.inner, batch, mask, key),
        judge_next=lambda state, batch, action, key: inner.judge_next(state.inner, batch, action, key),
        learn=learn,
        metrics=metrics_names,
    )
