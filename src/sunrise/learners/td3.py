"""TD3 for one agent (Fujimoto et al., 2018): a deterministic actor, twin critics, smoothed targets, delayed updates."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import TD3Settings
from sunrise.learners.critics import (
    Use,
    critic_step,
    draws,
    dropout,
    every,
    is_due,
    masked_mean,
    q_values,
    target_value,
    when,
)
from sunrise.networks.architecture import Network, new_actor, new_critics, optimiser
from sunrise.networks.layers import flatten, polyak
from sunrise.types import Backup, Batch, Info, Learner, Observation

METRICS = ("critic_loss", "actor_loss", "q_mean", "gradient_norm")


class TD3Numbers(NamedTuple):
    """The settings that are arguments of the compiled functions: changing one compiles nothing."""

    learning_rate: Float[Array, ""] | float
    tau: Float[Array, ""] | float
    action_noise: Float[Array, ""] | float
    target_policy_noise: Float[Array, ""] | float
    target_noise_clip: Float[Array, ""] | float


class Slow(NamedTuple):
    """What moves only every `policy_delay` updates."""

    actor: Network
    actor_opt: optax.OptState
    target_actor: Network
    target_critics: Network


class TD3State(NamedTuple):
    """Parameters and optimiser states of one agent; critics have K on axis 0."""

    critics: Network
    critic_opt: optax.OptState
    slow: Slow


def td3_numbers(settings: TD3Settings, action_dim: int) -> TD3Numbers:
    """Settings, A -> the numbers in them; none depends on A."""
    return TD3Numbers(*(getattr(settings, name) for name in TD3Numbers._fields))


def td3(obs_dim: int, action_dim: int, settings: TD3Settings, numbers: TD3Numbers) -> Learner:
    """From the sizes of observations and actions, settings and numbers to TD3 as a learner.

    The critics are masked and weighted, the actor is masked and not weighted.
    """
    made, arch = settings.architecture, settings.net_arch
    adam = optimiser(numbers.learning_rate, made)

    def init(key: PRNGKeyArray) -> TD3State:
        k_actor, k_critics = jax.random.split(key)
        actor = new_actor(k_actor, obs_dim, arch, (action_dim,), "default", 3e-3, made)
        critics = new_critics(k_critics, obs_dim + action_dim, arch, "default", made)
        return TD3State(critics, adam.init(critics), Slow(actor, adam.init(actor), actor, critics))

    def policy(actor: Network, obs: Observation) -> Float[Array, "B A"]:
        return jnp.tanh(actor(flatten(obs)))

    def propose(state: TD3State, obs: Observation, key: PRNGKeyArray | None) -> Array:
        action = policy(state.slow.actor, obs)
        if key is None:
            return action
        return jnp.clip(action + numbers.action_noise * jax.random.normal(key, action.shape), -1, 1)

    def judge(state: TD3State, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return q_values(state.critics, obs, action, dropout(made, key, Use.JUDGE))

    def judge_next(state: TD3State, batch: Batch, action: Array, key: PRNGKeyArray) -> Array:
        return q_values(state.slow.target_critics, batch.next_obs, action, dropout(made, key, Use.JUDGE))

    def bellman(state: TD3State, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        next_action = policy(state.slow.target_actor, batch.next_obs)
        # A key that critics are drawn with is not drawn from as well.
        k_noise = jax.random.fold_in(key, Use.NOISE) if draws(made) else key
        noise = numbers.target_policy_noise * jax.random.normal(k_noise, next_action.shape)
        clip = numbers.target_noise_clip
        next_action = jnp.clip(next_action + jnp.clip(noise, -clip, clip), -1, 1)
        next_q = q_values(state.slow.target_critics, batch.next_obs, next_action, dropout(made, key, Use.NEXT))
        return Backup(batch.reward + batch.discount * target_value(made, next_q, key), next_action, next_q)

    def learn(
        state: TD3State,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[TD3State, Info]:
        left_out = dropout(made, key, Use.CRITIC)
        stepped = critic_step(adam, state.critics, state.critic_opt, batch, mask, backup, weight, dropout=left_out)
        critics = stepped.critics

        def actor_loss(actor: Network) -> Array:
            asked = jax.tree.map(lambda leaf: leaf[:1], critics) if settings.actor_value == "first" else critics
            q = q_values(asked, batch.obs, policy(actor, batch.obs), dropout(made, key, Use.ACTOR))
            return masked_mean(-(q.mean(axis=0) if settings.actor_value == "mean" else q.min(axis=0)), mask)

        slow = state.slow
        actor_value, actor_gradient = every(settings.policy_delay, step, jax.value_and_grad(actor_loss), slow.actor)
        change, actor_opt = adam.update(actor_gradient, slow.actor_opt, slow.actor)
        actor = optax.apply_updates(slow.actor, change)
        targets = polyak((slow.target_actor, slow.target_critics), (actor, critics), numbers.tau)
        moved = when(is_due(settings.policy_delay, step), Slow(actor, actor_opt, *targets), slow)
        norm = optax.tree.norm((stepped.gradient, actor_gradient))
        # The actor's loss counts as often as it is delayed: its mean over updates is then its mean over actor steps.
        values = (stepped.loss, actor_value * settings.policy_delay, stepped.q.mean(), norm)
        metrics = dict(zip(METRICS, values, strict=True))
        return TD3State(critics, stepped.opt, moved), Info(error=stepped.error, metrics=metrics)

    return Learner(init, propose, judge, bellman, judge_next, learn, METRICS)
