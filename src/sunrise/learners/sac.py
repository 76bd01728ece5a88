"""Soft Actor-Critic for one agent (Haarnoja et al., 2018), with twin critics and a tuned entropy weight."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import SACSettings
from sunrise.errors import SunriseError
from sunrise.learners.critics import Use, critic_step, dropout, every, is_due, masked_mean, q_values, target_value, when
from sunrise.learners.policies import bounded_by_tanh, entropy_goal, initial_alpha, squash
from sunrise.networks.architecture import Network, new_actor, new_critics, optimiser
from sunrise.networks.layers import flatten, polyak
from sunrise.types import Backup, Batch, Info, Learner, Observation

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
METRICS = ("critic_loss", "actor_loss", "alpha", "entropy", "q_mean", "parameter_norm")


class SACNumbers(NamedTuple):
    """The settings that are arguments of the compiled functions: changing one compiles nothing."""

    learning_rate: Float[Array, ""] | float
    tau: Float[Array, ""] | float
    target_entropy: Float[Array, ""] | float
    fixed_alpha: Float[Array, ""] | float


class SACState(NamedTuple):
    """Parameters and optimiser states of one agent; `critics` and `targets` have K on axis 0."""

    actor: Network
    critics: Network
    targets: Network
    log_alpha: Float[Array, ""]
    actor_opt: optax.OptState
    critic_opt: optax.OptState
    alpha_opt: optax.OptState


class ActorStep(NamedTuple):
    """What a step of the actor and of α gives: their next state, and what they said before it."""

    actor: Network
    actor_opt: optax.OptState
    log_alpha: Float[Array, ""]
    alpha_opt: optax.OptState
    loss: Float[Array, ""]
    alpha: Float[Array, ""]
    """The entropy weight that the loss used."""
    log_prob: Float[Array, "B"]


def sac_numbers(settings: SACSettings, action_dim: int) -> SACNumbers:
    """Settings, A -> the numbers in them, with `auto` resolved."""
    return SACNumbers(
        learning_rate=settings.learning_rate,
        tau=settings.tau,
        target_entropy=entropy_goal(settings.target_entropy, action_dim),
        fixed_alpha=initial_alpha(settings.ent_coef)[0],
    )


def sac(obs_dim: int, action_dim: int, settings: SACSettings, numbers: SACNumbers) -> Learner:
    """From the sizes of observations and actions, settings and numbers to SAC as a learner.

    The critics are masked and weighted, the actor and the entropy weight are masked and not weighted.
    """
    made = settings.architecture
    adam, alpha_adam = optimiser(numbers.learning_rate, made), optax.adam(numbers.learning_rate)
    start_alpha, tune_alpha = initial_alpha(settings.ent_coef)
    simba = made.network == "simba"
    if settings.policy_delay > 1 and (settings.alpha_in_target, settings.update_order == "actor") != ("before", False):
        raise SunriseError(
            f"policy_delay is {settings.policy_delay}, but must be 1 where the target is of the stepped actor or α."
        )

    def init(key: PRNGKeyArray) -> SACState:
        k_actor, k_critics, k_targets = jax.random.split(key, 3)
        arch, heads = settings.net_arch, (action_dim, action_dim)
        actor = new_actor(k_actor, obs_dim, arch, heads, settings.init, 1e-3, made)
        critics = new_critics(k_critics, obs_dim + action_dim, arch, settings.init, made)
        targets = critics
        if settings.target_init == "random":
            targets = new_critics(k_targets, obs_dim + action_dim, arch, settings.init, made)
        log_alpha = jnp.asarray(math.log(start_alpha)) if tune_alpha else jnp.log(numbers.fixed_alpha)
        opts = adam.init(actor), adam.init(critics), alpha_adam.init(log_alpha)
        return SACState(actor, critics, targets, log_alpha, *opts)

    def gaussian(actor: Network, obs: Observation) -> tuple[Array, Array]:
        mean, log_std = jnp.split(actor(flatten(obs)), 2, axis=-1)
        if simba:
            return mean, bounded_by_tanh(log_std, -10.0, LOG_STD_MAX)
        return mean, jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)

    def sample(actor: Network, obs: Observation, key: PRNGKeyArray) -> tuple[Array, Array]:
        return squash(*gaussian(actor, obs), key, exact=simba)

    def propose(state: SACState, obs: Observation, key: PRNGKeyArray | None) -> Array:
        return jnp.tanh(gaussian(state.actor, obs)[0]) if key is None else sample(state.actor, obs, key)[0]

    def judge(state: SACState, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return q_values(state.critics, obs, action, dropout(made, key, Use.JUDGE))

    def judge_next(state: SACState, batch: Batch, action: Array, key: PRNGKeyArray) -> Array:
        return q_values(state.targets, batch.next_obs, action, dropout(made, key, Use.JUDGE))

    def alpha_step(state: SACState, mask: Array, log_prob: Array) -> tuple[Array, optax.OptState]:
        if not tune_alpha:
            return state.log_alpha, state.alpha_opt
        surplus = jax.lax.stop_gradient(log_prob + numbers.target_entropy)
        gradient = jax.grad(lambda log_alpha: masked_mean(-log_alpha * surplus, mask, settings.loss_normaliser))(
            state.log_alpha
        )
        if settings.alpha_loss == "alpha":
            gradient = gradient * jnp.exp(state.log_alpha)
        step, alpha_opt = alpha_adam.update(gradient, state.alpha_opt)
        new: Array = state.log_alpha + step
        return new, alpha_opt

    def alpha_in_use(state: SACState, batch: Batch, mask: Array, k_now: PRNGKeyArray) -> Array:
        if settings.alpha_in_target == "before":
            return jnp.exp(state.log_alpha)
        _, log_prob = sample(state.actor, batch.obs, k_now)
        return jnp.exp(alpha_step(state, mask, log_prob)[0])

    def actor_step(
        state: SACState, critics: Network, batch: Batch, mask: Array, step: Array, key: PRNGKeyArray
    ) -> ActorStep:
        """A step of the actor towards what `critics` value, and of α; where it is not due, everything stays."""
        k_now, _, _ = jax.random.split(key, 3)
        alpha = alpha_in_use(state, batch, mask, k_now)

        def loss(actor: Network) -> tuple[Array, Array]:
            action, log_prob = sample(actor, batch.obs, k_now)
            q = q_values(critics, batch.obs, action, dropout(made, key, Use.ACTOR))
            rows = alpha * log_prob - (q.min(axis=0) if settings.actor_value == "min" else q.mean(axis=0))
            return masked_mean(rows, mask, settings.loss_normaliser), log_prob

        delay = settings.policy_delay
        gradient_of = jax.value_and_grad(loss, has_aux=True)
        (value, log_prob), gradient = every(delay, step, gradient_of, state.actor)
        change, actor_opt = adam.update(gradient, state.actor_opt, state.actor)
        log_alpha, alpha_opt = alpha_step(state, mask, log_prob)
        new = optax.apply_updates(state.actor, change), actor_opt, log_alpha, alpha_opt
        if delay > 1:
            new = when(is_due(delay, step), new, (state.actor, state.actor_opt, state.log_alpha, state.alpha_opt))
        # What is reported counts as often as it is delayed: its mean over updates is then that over actor steps.
        return ActorStep(*new, delay * value, alpha, delay * log_prob)

    def bellman(state: SACState, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        k_now, k_next, k_weight = jax.random.split(key, 3)
        actor, alpha = state.actor, alpha_in_use(state, batch, mask, k_now)
        if settings.update_order == "actor":  # the same step as in `learn`: compiled together, it is taken once
            stepped = actor_step(state, state.critics, batch, mask, jnp.zeros(()), key)
            actor, alpha = stepped.actor, jnp.exp(stepped.log_alpha)
        next_action, next_log_prob = sample(actor, batch.next_obs, k_next)
        next_q = q_values(state.targets, batch.next_obs, next_action, dropout(made, key, Use.NEXT))
        # V̄(s') = min_k Q̄_k(s', a') − α log π(a'|s')
        value = target_value(made, next_q, key) - alpha * next_log_prob
        if settings.weight_action == "fresh":
            next_action = sample(actor, batch.next_obs, k_weight)[0]
            next_q = q_values(state.targets, batch.next_obs, next_action, dropout(made, key, Use.WEIGHT))
        return Backup(target=batch.reward + batch.discount * value, action=next_action, votes=next_q)

    def learn(
        state: SACState,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[SACState, Info]:
        left_out = dropout(made, key, Use.CRITIC)
        stepped = critic_step(
            adam, state.critics, state.critic_opt, batch, mask, backup, weight, settings.loss_normaliser, left_out
        )
        critics = stepped.critics
        judges = critics if settings.update_order == "critic" else state.critics
        acting = actor_step(state, judges, batch, mask, step, key)
        targets = polyak(state.targets, critics, numbers.tau)
        # Finite only if the gradients were; and the new parameters exist before it: XLA then copies no state.
        norm = optax.tree.norm((critics, acting.actor))
        values = (stepped.loss, acting.loss, acting.alpha, -acting.log_prob.mean(), stepped.q.mean(), norm)
        metrics = dict(zip(METRICS, values, strict=True))
        new = SACState(
            acting.actor, critics, targets, acting.log_alpha, acting.actor_opt, stepped.opt, acting.alpha_opt
        )
        return new, Info(error=stepped.error, metrics=metrics)

    return Learner(init, propose, judge, bellman, judge_next, learn, METRICS)
