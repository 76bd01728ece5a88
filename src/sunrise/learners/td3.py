"""TD3 for one agent (Fujimoto et al., 2018): a deterministic actor, twin critics, smoothed targets, delayed updates."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.learners.critics import critic_step, masked_mean, q_values, twin
from sunrise.networks import MLP, flatten, mlp, polyak
from sunrise.types import Backup, Batch, Info, Learner, Observation

METRICS = ("critic_loss", "actor_loss", "q_mean", "gradient_norm")


@dataclass(frozen=True)
class TD3Settings:
    """How one TD3 agent learns."""

    learning_rate: float = 1e-3
    """Adam's step size for actor and critics."""
    tau: float = 0.005
    """How far the target networks move towards the networks when they move."""
    action_noise: float = 0.1
    """Standard deviation of the Gaussian noise that explores; actions are in [-1, 1]."""
    target_policy_noise: float = 0.2
    """Standard deviation of the noise that smooths the target."""
    target_noise_clip: float = 0.5
    """Bound of that noise."""
    policy_delay: int = 2
    """Updates of the critics for each one of the actor and the targets."""
    net_arch: tuple[int, ...] = (400, 300)
    """Hidden layers of actor and critics."""


class TD3Numbers(NamedTuple):
    """The settings that are arguments of the compiled functions: changing one compiles nothing."""

    learning_rate: Float[Array, ""] | float
    tau: Float[Array, ""] | float
    action_noise: Float[Array, ""] | float
    target_policy_noise: Float[Array, ""] | float
    target_noise_clip: Float[Array, ""] | float


class Slow(NamedTuple):
    """What moves only every `policy_delay` updates."""

    actor: MLP
    actor_opt: optax.OptState
    target_actor: MLP
    target_critics: MLP


class TD3State(NamedTuple):
    """Parameters and optimiser states of one agent; critics have K on axis 0."""

    critics: MLP
    critic_opt: optax.OptState
    slow: Slow


def td3_numbers(settings: TD3Settings, action_dim: int) -> TD3Numbers:
    """The numbers of `settings`; none depends on the actions."""
    return TD3Numbers(*(getattr(settings, name) for name in TD3Numbers._fields))


def td3(obs_dim: int, action_dim: int, settings: TD3Settings, numbers: TD3Numbers) -> Learner:
    """TD3 as a learner."""
    adam = optax.adam(numbers.learning_rate)

    def init(key: PRNGKeyArray) -> TD3State:
        k_actor, k_critics = jax.random.split(key)
        actor = mlp(k_actor, (obs_dim, *settings.net_arch, action_dim), "default", last_bound=3e-3)
        critics = twin(k_critics, (obs_dim + action_dim, *settings.net_arch, 1), "default")
        return TD3State(critics, adam.init(critics), Slow(actor, adam.init(actor), actor, critics))

    def policy(actor: MLP, obs: Observation) -> Float[Array, "B A"]:
        return jnp.tanh(actor(flatten(obs)))

    def propose(state: TD3State, obs: Observation, key: PRNGKeyArray | None) -> Array:
        action = policy(state.slow.actor, obs)
        if key is None:
            return action
        return jnp.clip(action + numbers.action_noise * jax.random.normal(key, action.shape), -1, 1)

    def judge(state: TD3State, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return q_values(state.critics, obs, action)

    def judge_next(state: TD3State, batch: Batch, action: Array, key: PRNGKeyArray) -> Array:
        return q_values(state.slow.target_critics, batch.next_obs, action)

    def bellman(state: TD3State, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        next_action = policy(state.slow.target_actor, batch.next_obs)
        noise = numbers.target_policy_noise * jax.random.normal(key, next_action.shape)
        clip = numbers.target_noise_clip
        next_action = jnp.clip(next_action + jnp.clip(noise, -clip, clip), -1, 1)
        next_q = judge_next(state, batch, next_action, key)
        return Backup(batch.reward + batch.discount * next_q.min(axis=0), next_action, next_q)

    def learn(
        state: TD3State,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[TD3State, Info]:
        stepped = critic_step(adam, state.critics, state.critic_opt, batch, mask, backup, weight)
        critics = stepped.critics

        def actor_loss(actor: MLP) -> Array:
            first = jax.tree.map(lambda leaf: leaf[:1], critics)
            return masked_mean(-q_values(first, batch.obs, policy(actor, batch.obs))[0], mask)

        # Only the gradient is behind the condition: a state that passes through one is copied, twice as slow on CPU.
        due = (step + 1) % settings.policy_delay == 0
        slow = state.slow
        actor_value, actor_gradient = jax.lax.cond(
            due,
            jax.value_and_grad(actor_loss),
            lambda actor: (jnp.zeros_like(stepped.loss), jax.tree.map(jnp.zeros_like, actor)),
            slow.actor,
        )
        change, actor_opt = adam.update(actor_gradient, slow.actor_opt)
        actor = optax.apply_updates(slow.actor, change)
        targets = polyak((slow.target_actor, slow.target_critics), (actor, critics), numbers.tau)
        moved = jax.tree.map(lambda new, old: jnp.where(due, new, old), Slow(actor, actor_opt, *targets), slow)
        norm = optax.tree.norm((stepped.gradient, actor_gradient))
        # The actor's loss counts as often as it is delayed: its mean over updates is then its mean over actor steps.
        values = (stepped.loss, actor_value * settings.policy_delay, stepped.q.mean(), norm)
        metrics = dict(zip(METRICS, values, strict=True))
        return TD3State(critics, stepped.opt, moved), Info(error=stepped.error, metrics=metrics)

    return Learner(init, propose, judge, bellman, judge_next, learn, METRICS)
