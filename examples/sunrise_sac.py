"""SUNRISE-SAC in one file: the paper "SUNRISE: A Simple Unified Framework for Ensemble Learning in Deep Reinforcement
Learning" (Lee et al., ICML 2021) from the networks to the training loop.

    python examples/sunrise_sac.py --env-id Pendulum-v1 --total-timesteps 8000

Read it from top to bottom. Numbers such as (6) are the paper's equations, and lines are those of its Algorithm 1. There
is nothing of the package `sunrise` in it, and it does what the package does: a test gives both the same agents, the
same minibatches and the same keys, and compares all parameters after several updates.

The idea that keeps it short: everything is written for ONE agent, and `jax.vmap` makes it an ensemble of N. Axes have
letters: N agents, B rows of a minibatch, A numbers of an action. An agent has two critics, so there are 2N votes.
"""

import json
import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from jaxtyping import Array, Bool, Float, PRNGKeyArray


@dataclass(frozen=True)
class Args:
    """SUNRISE-SAC on an environment of continuous actions."""

    env_id: str = "Pendulum-v1"
    """The environment."""
    seed: int = 1
    """Everything random follows from it."""
    total_timesteps: int = 8000
    """Steps of the environment."""
    ensemble_size: int = 5
    """N: number of agents; 1 is plain SAC."""
    bootstrap_prob: float = 1.0
    """β: chance that an agent may learn from a transition."""
    weight_temperature: float = 20.0
    """T of the confidence weight."""
    ucb_lambda: float = 1.0
    """λ of the exploration bonus."""
    gamma: float = 0.99
    """Discount."""
    learning_rate: float = 3e-4
    """Adam's step size for actors, critics and entropy weights."""
    tau: float = 0.005
    """How far the target critics follow the critics in an update."""
    batch_size: int = 256
    """B: rows of a minibatch."""
    buffer_size: int = 100_000
    """Transitions in the replay buffer."""
    learning_starts: int = 1000
    """Steps with random actions before the first update."""
    hidden: tuple[int, ...] = (256, 256)
    """Hidden layers of every network."""
    eval_freq: int = 2000
    """Steps between evaluations."""
    eval_episodes: int = 10
    """Episodes of an evaluation."""


# -- networks ----------------------------------------------------------------------------------------------------------

Network = list[tuple[Array, Array]]
"""Weights [in, out] and biases [out] of each layer."""


def new_network(key: PRNGKeyArray, sizes: tuple[int, ...]) -> Network:
    """Layers of `sizes` = (in, hidden..., out) with weights and biases in U(±1/√in)."""
    shapes = [(i + 1, o) for i, o in pairwise(sizes)]  # the last row is the bias
    # One draw for all layers: to compile many takes long.
    draw = jax.random.uniform(key, (sum(rows * o for rows, o in shapes),), minval=-1.0, maxval=1.0)
    layers = []
    for rows, o in shapes:
        layer, draw = draw[: rows * o].reshape(rows, o) * (rows - 1) ** -0.5, draw[rows * o :]
        layers.append((layer[:-1], layer[-1]))
    return layers


def forward(network: Network, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
    """x[B, in] -> [B, out], with ReLU between the layers."""
    for weight, bias in network[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = network[-1]
    return x @ weight + bias


def q_values(critics: Network, obs: Float[Array, "B O"], action: Float[Array, "B A"]) -> Float[Array, "2 B"]:
    """Q(s, a) of both critics of an agent; they are one network whose leaves have an axis of 2 in front."""
    rows = jnp.concatenate([obs, action], axis=1)
    return jax.vmap(lambda critic: forward(critic, rows)[:, 0])(critics)


def sample(
    actor: Network, obs: Float[Array, "B O"], key: PRNGKeyArray
) -> tuple[Float[Array, "B A"], Float[Array, "B"]]:
    """obs[B] -> a ~ π(a|s), a Gaussian squashed into [-1, 1] by tanh, and log π(a|s)."""
    mean, log_std = jnp.split(forward(actor, obs), 2, axis=1)
    log_std = jnp.clip(log_std, -20, 2)
    noise = jax.random.normal(key, mean.shape)
    action = jnp.tanh(mean + jnp.exp(log_std) * noise)
    log_prob = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi) - jnp.log(1 - action**2 + 1e-6)
    return action, log_prob.sum(axis=1)


# -- one SAC agent -----------------------------------------------------------------------------------------------------


class Agent(NamedTuple):
    """All that one agent learns. An ensemble is the same with an axis of N in front of every leaf."""

    actor: Network
    critics: Network
    targets: Network
    log_alpha: Float[Array, ""]
    actor_opt: Any
    critic_opt: Any
    alpha_opt: Any


class Batch(NamedTuple):
    """Transitions, one a row."""

    obs: Float[Array, "B O"]
    action: Float[Array, "B A"]
    reward: Float[Array, "B"]
    discount: Float[Array, "B"]
    """γ, or 0 where the episode terminated: a state that is final has no value, one that is merely the last has."""
    next_obs: Float[Array, "B O"]


def new_agent(args: Args, key: PRNGKeyArray, obs_dim: int, action_dim: int) -> Agent:
    """An agent with random weights of its own; its target critics are a copy of its critics."""
    k_actor, k_critics = jax.random.split(key)
    actor = new_network(k_actor, (obs_dim, *args.hidden, 2 * action_dim))
    sizes = (obs_dim + action_dim, *args.hidden, 1)
    critics = jax.vmap(lambda k: new_network(k, sizes))(jax.random.split(k_critics))
    adam, log_alpha = optax.adam(args.learning_rate), jnp.zeros(())
    opts = adam.init(actor), adam.init(critics), adam.init(log_alpha)
    return Agent(actor, critics, critics, log_alpha, *opts)


def backup(agent: Agent, batch: Batch, key: PRNGKeyArray) -> tuple[Float[Array, "B"], Float[Array, "2 B"]]:
    """The target r + γ V̄(s') of equation (2), and what both target critics think of (s', a'): their votes."""
    action, log_prob = sample(agent.actor, batch.next_obs, key)
    votes = q_values(agent.targets, batch.next_obs, action)
    value = votes.min(axis=0) - jnp.exp(agent.log_alpha) * log_prob
    return batch.reward + batch.discount * value, votes


def learn(
    args: Args,
    agent: Agent,
    batch: Batch,
    mask: Float[Array, "B"],
    target: Float[Array, "B"],
    weight: Float[Array, "B"],
    key: PRNGKeyArray,
) -> tuple[Agent, dict[str, Array]]:
    """Lines 14 and 15: a step of the critics on (5), of the actor on (4) and of α, all masked; critics are weighted."""
    adam = optax.adam(args.learning_rate)
    alpha, rows = jnp.exp(agent.log_alpha), mask.size

    def critic_loss(critics: Network) -> Array:
        error = q_values(critics, batch.obs, batch.action) - target
        return jnp.sum(mask * weight * error**2) / rows

    critic_value, gradient = jax.value_and_grad(critic_loss)(agent.critics)
    change, critic_opt = adam.update(gradient, agent.critic_opt)
    critics = optax.apply_updates(agent.critics, change)

    def actor_loss(actor: Network) -> tuple[Array, Array]:
        action, log_prob = sample(actor, batch.obs, key)
        q = q_values(critics, batch.obs, action).min(axis=0)
        return jnp.sum(mask * (alpha * log_prob - q)) / rows, log_prob

    (actor_value, log_prob), gradient = jax.value_and_grad(actor_loss, has_aux=True)(agent.actor)
    change, actor_opt = adam.update(gradient, agent.actor_opt)
    actor = optax.apply_updates(agent.actor, change)

    # α grows while the entropy is below its goal of −A (SAC's automatic entropy adjustment).
    goal = -batch.action.shape[1]
    gradient = -jnp.sum(mask * (log_prob + goal)) / rows
    change, alpha_opt = adam.update(gradient, agent.alpha_opt)
    log_alpha = agent.log_alpha + change

    targets = jax.tree.map(lambda slow, fast: slow + args.tau * (fast - slow), agent.targets, critics)
    new = Agent(actor, critics, targets, log_alpha, actor_opt, critic_opt, alpha_opt)
    return new, {"critic_loss": critic_value, "actor_loss": actor_value, "alpha": alpha}


# -- the ensemble: all that SUNRISE adds -------------------------------------------------------------------------------


def agent_keys(args: Args, key: PRNGKeyArray, counter: Array | int) -> PRNGKeyArray:
    """A key for each agent, which depends on the counter and on the agent."""
    now = jax.random.fold_in(key, counter)
    return jax.vmap(lambda i: jax.random.fold_in(now, i))(jnp.arange(args.ensemble_size))


@partial(jax.jit, static_argnums=(0, 2, 3))
def new_agents(args: Args, key: PRNGKeyArray, obs_dim: int, action_dim: int) -> Agent:
    """N agents with random weights of their own: the first half of "bootstrap with random initialisation"."""
    return jax.vmap(lambda k: new_agent(args, k, obs_dim, action_dim))(agent_keys(args, key, 0))


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def update(
    args: Args, agents: Agent, batch: Batch, masks: Bool[Array, "B N"], key: PRNGKeyArray, step: Array
) -> tuple[Agent, dict[str, Array]]:
    """Lines 12 to 16: one gradient step of every agent on one minibatch."""
    keys = jax.vmap(jax.random.split)(agent_keys(args, key, step))
    k_now, k_next = keys[:, 0], keys[:, 1]
    target, votes = jax.vmap(backup, (0, None, 0))(agents, batch, k_next)  # [N, B], [N, 2, B]
    # (6): the more all target critics disagree, the less a backup counts. An agent alone disagrees with nobody.
    std = votes.reshape(-1, votes.shape[-1]).std(axis=0) * (args.ensemble_size > 1)
    weight = jax.nn.sigmoid(-std * args.weight_temperature) + 0.5  # [B], in [0.5, 1]
    each = jax.vmap(partial(learn, args), (0, None, 1, 0, None, 0))
    agents, metrics = each(agents, batch, masks.astype(weight.dtype), target, weight, k_now)
    return agents, {name: value.mean() for name, value in metrics.items()} | {"weight": weight.mean()}


@partial(jax.jit, static_argnums=0)
def explore(args: Args, agents: Agent, obs: Float[Array, "O"], key: PRNGKeyArray, counter: Array) -> Float[Array, "A"]:
    """Lines 4 and 5: every agent proposes an action, all critics judge all of them, and the highest UCB (7) wins."""
    proposals, _ = jax.vmap(sample, (0, None, 0))(agents.actor, obs[None], agent_keys(args, key, counter))  # [N, 1, A]
    candidates = proposals[:, 0]
    states = jnp.broadcast_to(obs, (len(candidates), len(obs)))
    votes = jax.vmap(q_values, (0, None, None))(agents.critics, states, candidates).reshape(-1, len(candidates))
    ucb = votes.mean(axis=0) + args.ucb_lambda * votes.std(axis=0)
    return candidates[jnp.argmax(ucb)]


@jax.jit
def exploit(agents: Agent, obs: Float[Array, "O"]) -> Float[Array, "A"]:
    """For evaluation, the mean of all agents' actions without noise (section 4.2, last sentence)."""
    outputs = jax.vmap(forward, (0, None))(agents.actor, obs[None])[:, 0]
    return jnp.tanh(jnp.split(outputs, 2, axis=1)[0]).mean(axis=0)


# -- replay, with the masks --------------------------------------------------------------------------------------------


class Replay:
    """A ring of transitions, each with its bootstrap mask: the other half of "bootstrap with random initialisation"."""

    def __init__(self, args: Args, obs_dim: int, action_dim: int, rng: np.random.Generator) -> None:
        size = args.buffer_size
        shapes = ((obs_dim,), (action_dim,), (), (), (obs_dim,))
        self.columns: list[Any] = [np.zeros((size, *shape), np.float32) for shape in shapes]
        self.masks = np.zeros((size, args.ensemble_size), bool)
        self.prob, self.rng, self.written = args.bootstrap_prob, rng, 0

    def add(self, *transition: Any) -> None:
        """Lines 7 and 8: store a transition with m ~ Bernoulli(β) for each agent."""
        slot = self.written % len(self.masks)
        for column, value in zip(self.columns, transition, strict=True):
            column[slot] = value
        self.masks[slot] = self.rng.random(self.masks.shape[1]) < self.prob
        self.written += 1

    def sample(self, rows: int) -> tuple[Batch, Bool[np.ndarray, "B N"]]:
        """Line 12: a minibatch, uniform, and its masks."""
        index = self.rng.integers(min(self.written, len(self.masks)), size=rows)
        return Batch(*(column[index] for column in self.columns)), self.masks[index]


# -- acting ------------------------------------------------------------------------------------------------------------


def make_env(args: Args) -> gym.Env[np.ndarray, np.ndarray]:
    """An environment that takes flat observations and actions in [-1, 1], where our policies live."""
    env: Any = gym.make(args.env_id)
    if not isinstance(env.action_space, gym.spaces.Box):
        raise SystemExit(f"{args.env_id} has no continuous actions.")
    return gym.wrappers.RescaleAction(gym.wrappers.FlattenObservation(env), np.float32(-1), np.float32(1))


def evaluate(args: Args, agents: Agent) -> float:
    """The mean return of the ensemble's own action, in an environment of its own."""
    env, returns = make_env(args), []
    for episode in range(args.eval_episodes):
        obs, _ = env.reset(seed=10_000 + args.seed + episode)
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(np.asarray(exploit(agents, np.float32(obs))))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    env.close()
    return float(np.mean(returns))


def train(args: Args) -> list[dict[str, float]]:
    """Algorithm 1, with one gradient step after each timestep -> a row for each evaluation."""
    env, rng = make_env(args), np.random.default_rng(args.seed)
    assert env.observation_space.shape is not None
    assert env.action_space.shape is not None
    obs_dim, action_dim = env.observation_space.shape[0], env.action_space.shape[0]
    k_init, k_explore, k_update = jax.random.split(jax.random.key(args.seed), 3)
    agents, replay = new_agents(args, k_init, obs_dim, action_dim), Replay(args, obs_dim, action_dim, rng)
    metrics: dict[str, Array] = {}
    rows, started = [], time.perf_counter()
    obs, _ = env.reset(seed=args.seed)
    for timestep in range(1, args.total_timesteps + 1):
        if timestep <= args.learning_starts:
            action = rng.uniform(-1, 1, action_dim).astype(np.float32)
        else:
            action = np.asarray(explore(args, agents, np.float32(obs), k_explore, timestep))
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, args.gamma * (not terminated), next_obs)
        obs = env.reset()[0] if terminated or truncated else next_obs
        if timestep > args.learning_starts:
            batch, masks = replay.sample(args.batch_size)
            agents, metrics = update(args, agents, batch, masks, k_update, timestep)
        if timestep % args.eval_freq == 0 or timestep == args.total_timesteps:
            row = {"timesteps": timestep, "mean_return": evaluate(args, agents)}
            row |= {name: float(value) for name, value in metrics.items()}
            rows.append(row | {"seconds": time.perf_counter() - started})
            print(json.dumps({name: round(value, 4) for name, value in rows[-1].items()}), flush=True)
    env.close()
    return rows


if __name__ == "__main__":
    train(tyro.cli(Args))
