"""Soft Actor-Critic from pictures, for one agent (SAC-AE, Yarats et al., 2019; RAD, Laskin et al., 2020).

Observations of a batch come as views, [M, B, S, H, W, C]: the target is the mean over the views of the next
observation, the critic's loss is the sum over the views of the observation, and the actor sees the first (DrQ,
Kostrikov et al., 2020). One view is RAD. As in the originals' own code the order is critic, actor, entropy weight,
target, beginning with the first update, and the actor is judged by the critic after its step; the entropy weight in
both losses is the one before.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import PixelSettings
from sunrise.learners.critics import masked_mean, q_values, when
from sunrise.learners.policies import bounded_by_tanh, entropy_goal, initial_alpha, squash
from sunrise.networks.augmentation import Augmentation, PictureShape, Sight, as_stacks, views
from sunrise.networks.encoder import as_input
from sunrise.networks.layers import polyak
from sunrise.networks.observations import on_pictures
from sunrise.networks.pixel import Actor, Critic, features_of, new_networks, together
from sunrise.types import Backup, Batch, Info, Learner, Observation

LOG_STD_MIN, LOG_STD_MAX = -10.0, 2.0
METRICS = ("critic_loss", "actor_loss", "alpha", "entropy", "q_mean", "parameter_norm")


class PixelNumbers(NamedTuple):
    """The settings that are arguments of the compiled functions: changing one compiles nothing."""

    learning_rate: Float[Array, ""] | float
    alpha_learning_rate: Float[Array, ""] | float
    alpha_beta: Float[Array, ""] | float
    tau: Float[Array, ""] | float
    encoder_tau: Float[Array, ""] | float
    target_entropy: Float[Array, ""] | float
    fixed_alpha: Float[Array, ""] | float


class PixelState(NamedTuple):
    """Parameters and optimiser states of one agent."""

    critic: Critic
    target: Critic
    actor: Actor
    log_alpha: Float[Array, ""]
    critic_opt: optax.OptState
    actor_opt: optax.OptState
    alpha_opt: optax.OptState


def pixel_numbers(settings: PixelSettings, action_dim: int) -> PixelNumbers:
    """Settings, A -> the numbers in them, with `auto` resolved."""
    return PixelNumbers(
        settings.learning_rate,
        settings.alpha_learning_rate,
        settings.alpha_beta,
        settings.tau,
        settings.encoder_tau,
        entropy_goal(settings.target_entropy, action_dim),
        initial_alpha(settings.ent_coef)[0],
    )


def pixel_sac(
    shape: PictureShape | Sight,
    action_dim: int,
    augmentation: Augmentation,
    settings: PixelSettings,
    numbers: PixelNumbers,
    counts: tuple[int, int] = (1, 1),
    tanh: bool = False,
    exact: bool = False,
) -> Learner:
    """From the shape of pictures, A, settings and numbers to SAC from pictures as a learner.

    It learns from `counts` views of an observation and of the next one.

    The critic is masked and weighted, the actor and the entropy weight are masked and not weighted. `tanh` bounds what
    the encoders give, and `exact` says how log π is computed (`squash`).
    """
    adam = optax.adam(numbers.learning_rate)
    alpha_adam = optax.adam(numbers.alpha_learning_rate, b1=numbers.alpha_beta)
    start_alpha, tune_alpha = initial_alpha(settings.ent_coef)
    picture = augmentation.shape
    features_of(picture, settings)  # pictures that are too small are refused now

    def init(key: PRNGKeyArray) -> PixelState:
        critic, actor = new_networks(key, picture, action_dim, settings)
        log_alpha = jnp.asarray(math.log(start_alpha)) if tune_alpha else jnp.log(numbers.fixed_alpha)
        return PixelState(
            critic, critic, actor, log_alpha, adam.init(critic), adam.init(actor), alpha_adam.init(log_alpha)
        )

    def gaussian(actor: Actor, convolved: Float[Array, "R F"]) -> tuple[Array, Array]:
        """Features of the convolutions -> mean[R, A] and log-deviation[R, A] of the policy."""
        mean, log_std = jnp.split(actor.policy(actor.projection(convolved, tanh)), 2, axis=-1)
        return mean, bounded_by_tanh(log_std, LOG_STD_MIN, LOG_STD_MAX)

    def values(critic: Critic, convolved: Float[Array, "R F"], action: Float[Array, "R A"]) -> Float[Array, "K R"]:
        return q_values(critic.heads, critic.encoder.projection(convolved, tanh), action)

    def look(state: PixelState, obs: Observation) -> Float[Array, "R F"]:
        """What the convolutions make of observations as they are acted on."""
        return state.critic.encoder.convolutions(on_pictures(as_input, augmentation.act(as_stacks(obs, shape))))

    def propose(state: PixelState, obs: Observation, key: PRNGKeyArray | None) -> Array:
        mean, log_std = gaussian(state.actor, look(state, obs))
        return jnp.tanh(mean) if key is None else squash(mean, log_std, key, exact)[0]

    def judge(state: PixelState, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return values(state.critic, look(state, obs), action)

    def judge_next(state: PixelState, batch: Batch, action: Array, key: PRNGKeyArray) -> Array:
        """The mean over the views."""
        count, rows = batch.next_obs.shape[:2]
        convolved = state.target.encoder.convolutions(together(batch.next_obs))
        return values(state.target, convolved, jnp.tile(action, (count, 1))).reshape(-1, count, rows).mean(axis=1)

    def bellman(state: PixelState, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        _, k_next = jax.random.split(key)
        count, rows = batch.next_obs.shape[:2]
        pictures = together(batch.next_obs)
        policy = gaussian(state.actor, state.critic.encoder.convolutions(pictures))
        next_action, log_prob = squash(*policy, k_next, exact)
        next_q = values(state.target, state.target.encoder.convolutions(pictures), next_action)
        # V̄(s') = min_k Q̄_k(s', a') − α log π(a'|s'), at each view
        value = (next_q.min(axis=0) - jnp.exp(state.log_alpha) * log_prob).reshape(count, rows)
        return Backup(
            target=batch.reward + batch.discount * value.mean(axis=0),
            action=next_action[:rows],
            votes=next_q.reshape(-1, count, rows).mean(axis=1),
        )

    def alpha_step(state: PixelState, mask: Array, log_prob: Array) -> tuple[Array, optax.OptState]:
        """A step on α (−log π − H̄), by α itself and not by its logarithm."""
        if not tune_alpha:
            return state.log_alpha, state.alpha_opt
        surplus = masked_mean(-log_prob - numbers.target_entropy, mask, settings.loss_normaliser)
        gradient = jnp.exp(state.log_alpha) * surplus
        change, alpha_opt = alpha_adam.update(gradient, state.alpha_opt)
        new: Array = state.log_alpha + change
        return new, alpha_opt

    def learn(
        state: PixelState,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[PixelState, Info]:
        k_now, _ = jax.random.split(key)
        count, rows = batch.obs.shape[:2]
        pictures, taken = together(batch.obs), jnp.tile(batch.action, (count, 1))

        def critic_loss(critic: Critic) -> tuple[Array, tuple[Array, ...]]:
            convolved = critic.encoder.convolutions(pictures)
            latents = critic.encoder.projection(convolved, tanh)
            q = q_values(critic.heads, latents, taken).reshape(-1, count, rows)
            error = q - backup.target
            loss = masked_mean(weight[..., None, :] * error**2, mask, settings.loss_normaliser).sum()
            return loss, (q, jnp.abs(error), convolved[:rows], latents[:rows])

        (value, (q, error, convolved, latents)), gradient = jax.value_and_grad(critic_loss, has_aux=True)(state.critic)
        change, critic_opt = adam.update(gradient, state.critic_opt)
        critic = optax.apply_updates(state.critic, change)

        alpha = jnp.exp(state.log_alpha)

        def actor_gradient(actor: Actor) -> tuple[tuple[Array, Array], Actor]:
            """Of the actor's loss: through its own projection and policy, not through the critic's networks."""
            judging, seen, known = state.critic, convolved, latents
            if settings.actor_critic == "after":
                judging, seen = critic, critic.encoder.convolutions(pictures[:rows])
                known = critic.encoder.projection(seen, tanh)

            def loss(actor: Actor) -> tuple[Array, Array]:
                action, log_prob = squash(*gaussian(actor, seen), k_now, exact)
                value = alpha * log_prob - q_values(judging.heads, known, action).min(axis=0)
                return masked_mean(value, mask, settings.loss_normaliser), log_prob

            return jax.value_and_grad(loss, has_aux=True)(actor)

        # Only the gradient is behind the condition: a state that passes through one is copied, which is slow on CPU.
        due = step % settings.policy_delay == 0
        (actor_value, log_prob), gradient_of_actor = jax.lax.cond(
            due,
            actor_gradient,
            lambda actor: ((jnp.zeros_like(value), jnp.zeros_like(mask)), jax.tree.map(jnp.zeros_like, actor)),
            state.actor,
        )
        change, actor_opt = adam.update(gradient_of_actor, state.actor_opt)
        actor = optax.apply_updates(state.actor, change)
        log_alpha, alpha_opt = alpha_step(state, mask, log_prob)
        acting = when(
            due,
            (actor, actor_opt, log_alpha, alpha_opt),
            (state.actor, state.actor_opt, state.log_alpha, state.alpha_opt),
        )
        target = Critic(
            polyak(state.target.encoder, critic.encoder, numbers.encoder_tau),
            polyak(state.target.heads, critic.heads, numbers.tau),
        )
        target = when(step % settings.target_update_interval == 0, target, state.target)

        norm = optax.tree.norm((critic, actor))
        # The actor's numbers count as often as it is delayed: their mean over updates is then that over actor steps.
        often = settings.policy_delay
        reported = (value, often * actor_value, alpha, -often * log_prob.mean(), q.mean(), norm)
        new = PixelState(critic, target, acting[0], acting[2], critic_opt, acting[1], acting[3])
        return new, Info(error=error.mean(axis=1), metrics=dict(zip(METRICS, reported, strict=True)))

    return Learner(
        init, propose, judge, bellman, judge_next, learn, METRICS, augment=views(augmentation, shape, counts)
    )
