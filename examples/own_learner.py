"""An algorithm of your own in one file: DDPG (Lillicrap et al., 2016), which the package does not have.

    cd examples; sunrise train own_learner:DDPG --env-id Pendulum-v1 --total-timesteps 5000

It is written for ONE agent, as its paper writes it; ensembles, masks, weights, UCB, evaluation and resume come with it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sunrise import Algorithm, Config, for_states
from sunrise.config.rules import Fraction, Layers, NotNegative
from sunrise.networks.layers import MLP, flatten, mlp, polyak
from sunrise.types import Backup, Batch, Info, Learner, Observation


@dataclass(frozen=True)
class DDPGSettings:
    """How one DDPG agent learns: each field is a flag and a keyword, the text under it is its help."""

    learning_rate: NotNegative = 1e-3
    """Adam's step size for actor and critic."""
    tau: Fraction = 0.005
    """How far the target networks move towards the networks at each update."""
    action_noise: NotNegative = 0.1
    """Standard deviation of the Gaussian noise that explores; actions are in [-1, 1]."""
    net_arch: Layers = (256, 256)
    """Hidden layers of actor and critic."""


class Networks(NamedTuple):
    """What acts, and what judges it."""

    actor: MLP
    critic: MLP


class State(NamedTuple):
    """Everything one agent learns."""

    online: Networks
    target: Networks
    opt: optax.OptState


def ddpg(obs_dim: int, action_dim: int, settings: DDPGSettings, numbers: Any) -> Learner:
    """DDPG as pure functions of the state of one agent. It has one critic, so that votes are [1, B]."""
    adam = optax.adam(numbers.learning_rate)

    def act(actor: MLP, obs: Observation) -> Array:
        return jnp.tanh(actor(flatten(obs)))

    def value(critic: MLP, obs: Observation, action: Array) -> Array:
        return critic(jnp.concatenate([flatten(obs), action], axis=-1)).T

    def init(key: Array) -> State:
        k_actor, k_critic = jax.random.split(key)
        actor = mlp(k_actor, (obs_dim, *settings.net_arch, action_dim), "default", 0.0)
        critic = mlp(k_critic, (obs_dim + action_dim, *settings.net_arch, 1), "default", 0.0)
        return State(Networks(actor, critic), Networks(actor, critic), adam.init(Networks(actor, critic)))

    def propose(state: State, obs: Observation, key: Array | None) -> Array:
        action = act(state.online.actor, obs)
        noise = 0.0 if key is None else numbers.action_noise * jax.random.normal(key, action.shape)
        return jnp.clip(action + noise, -1, 1)

    def judge(state: State, obs: Observation, action: Array, key: Array | None) -> Array:
        return value(state.online.critic, obs, action)

    def judge_next(state: State, batch: Batch, action: Array, key: Array) -> Array:
        return value(state.target.critic, batch.next_obs, action)

    def bellman(state: State, batch: Batch, mask: Array, key: Array) -> Backup:
        action = act(state.target.actor, batch.next_obs)
        votes = judge_next(state, batch, action, key)
        return Backup(batch.reward + batch.discount * votes[0], action, votes)

    def learn(state: State, batch: Batch, mask: Array, backup: Backup, weight: Array, step: Array, key: Array) -> Any:
        def loss(online: Networks) -> Any:
            error = value(online.critic, batch.obs, batch.action) - backup.target
            q = value(jax.lax.stop_gradient(online.critic), batch.obs, act(online.actor, batch.obs))
            critic_loss, actor_loss = jnp.mean(mask * weight * error**2), -jnp.mean(mask * q)
            return critic_loss + actor_loss, (jnp.abs(error), {"critic_loss": critic_loss, "actor_loss": actor_loss})

        gradient, (error, metrics) = jax.grad(loss, has_aux=True)(state.online)
        change, opt = adam.update(gradient, state.opt)
        online = optax.apply_updates(state.online, change)
        metrics["gradient_norm"] = optax.tree.norm(gradient)  # an update that is not finite is refused by its metrics
        return State(online, polyak(state.target, online, numbers.tau), opt), Info(error, metrics)

    return Learner(init, propose, judge, bellman, judge_next, learn, ("critic_loss", "actor_loss", "gradient_norm"))


DDPG = Algorithm("ddpg", "An ensemble of DDPG agents.", Config(DDPGSettings()), for_states("DDPG", ddpg))
