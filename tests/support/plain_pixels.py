"""RAD, DrQ and CURL written from their papers, with none of our code but the containers."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.plain import forward, member


class Adam(NamedTuple):
    """Adam by hand: what it remembers."""

    first: Any
    second: Any
    count: Any


def fresh(value: Any) -> Adam:
    zeros = jax.tree.map(jnp.zeros_like, value)
    return Adam(zeros, zeros, jnp.zeros(()))


def adam(value: Any, gradient: Any, was: Adam, rate: float, beta: float = 0.9) -> tuple[Any, Adam]:
    """A step, with a first memory of one's choice."""
    count = was.count + 1
    first = jax.tree.map(lambda m, g: beta * m + (1 - beta) * g, was.first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, was.second, gradient)

    def step(x: Any, m: Any, v: Any) -> Any:
        return x - rate * (m / (1 - beta**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(step, value, first, second), Adam(first, second, count)


def convolve(net: Any, pictures: Any) -> Any:
    """JAX's own convolution, colours of the frames side by side."""
    x = jnp.concatenate([pictures[:, frame] for frame in range(pictures.shape[1])], -1) / 255.0
    for depth, (kernel, bias) in enumerate(zip(net.kernels, net.biases, strict=True)):
        stride = (2, 2) if depth == 0 else (1, 1)
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jnp.maximum(jax.lax.conv_general_dilated(x, kernel, stride, "VALID", dimension_numbers=numbers) + bias, 0)
    return x.reshape(len(x), -1)


def project(net: Any, x: Any, tanh: bool) -> Any:
    """A layer and its normalisation over features."""
    x = x @ net.linear.weight + net.linear.bias
    x = (x - x.mean(1)[:, None]) / jnp.sqrt(x.var(1)[:, None] + 1e-5) * net.scale + net.shift
    return jnp.tanh(x) if tanh else x


def gaussian(actor: Any, convolved: Any, tanh: bool, noise: Any) -> tuple[Any, Any]:
    """An action and its log-density, by the change of variables: DrQ's exact, RAD's with 1e-6 in the logarithm."""
    mean, raw = jnp.split(forward(actor.policy, project(actor.projection, convolved, tanh)), 2, 1)
    std = jnp.exp(-10 + 6 * (jnp.tanh(raw) + 1))
    before = mean + std * noise
    action = jnp.tanh(before)
    slope = -2 * jnp.log(jnp.cosh(before)) if tanh else jnp.log(1 - action**2 + 1e-6)
    return action, (jax.scipy.stats.norm.logpdf(before, mean, std) - slope).sum(1)


def crops(key: Any, pictures: np.ndarray, size: int) -> np.ndarray:
    """Squares cut out row by row."""
    height, width = pictures.shape[2:4]
    corner = jax.random.randint(key, (len(pictures), 2), 0, jnp.array([height - size + 1, width - size + 1]))
    return np.stack(
        [row[:, t : t + size, c : c + size] for row, (t, c) in zip(pictures, np.asarray(corner).tolist(), strict=True)]
    )


class Plain(NamedTuple):
    """One agent, and its three Adams."""

    critic: Any
    target: Any
    actor: Any
    log_alpha: Any
    adams: tuple[Adam, Adam, Adam]


class Method(NamedTuple):
    """Where RAD and DrQ differ, and which critic judges the actor; the values are RAD's."""

    tanh: bool = False
    actor_critic: str = "after"
    encoder_tau: float = 0.05
    alpha_rate: float = 1e-4
    alpha_beta: float = 0.5


def plain(start: Any) -> Plain:
    parts = (start.critic, start.actor, start.log_alpha)
    return Plain(start.critic, start.target, start.actor, start.log_alpha, tuple(fresh(p) for p in parts))  # type: ignore[arg-type]


def q_values(critic: Any, pictures: Any, action: Any, tanh: bool) -> list[Any]:
    """Both critics by name."""
    latent = project(critic.encoder.projection, convolve(critic.encoder.convolutions, pictures), tanh)
    rows = jnp.concatenate([latent, action], 1)
    return [forward(member(critic.heads, k), rows)[:, 0] for k in range(2)]


@partial(jax.jit, static_argnames=("due", "method"))
def update(
    agent: Plain, sample: Any, obs: list[Any], next_obs: list[Any], key: Any, due: bool, method: Method
) -> Plain:
    """View by view and critic by critic."""
    batch, mask, tanh = sample.batch, jnp.asarray(sample.mask[:, 0], float), method.tanh
    k_now, k_next = jax.random.split(key)
    noise = jax.random.normal(k_next, (len(next_obs), *batch.action.shape))
    alpha, targets = jnp.exp(agent.log_alpha), []
    for view, draw in zip(next_obs, noise, strict=True):
        seen = convolve(agent.critic.encoder.convolutions, view)
        action, log_prob = gaussian(agent.actor, seen, tanh, draw)
        worst = jnp.minimum(*q_values(agent.target, view, action, tanh))
        targets.append(batch.reward + batch.discount * (worst - alpha * log_prob))
    goal = sum(targets) / len(targets)

    def critic_loss(critic: Any) -> Any:
        return sum((mask * (q - goal) ** 2).mean() for view in obs for q in q_values(critic, view, batch.action, tanh))

    critic, critic_adam = adam(agent.critic, jax.grad(critic_loss)(agent.critic), agent.adams[0], 1e-3)
    if not due:
        return agent._replace(critic=critic, adams=(critic_adam, *agent.adams[1:]))
    draw = jax.random.normal(k_now, batch.action.shape)
    judging = {"before": agent.critic, "after": critic}[method.actor_critic]
    seen = convolve(judging.encoder.convolutions, obs[0])

    def actor_loss(actor: Any) -> Any:
        action, log_prob = gaussian(actor, seen, tanh, draw)
        return (mask * (alpha * log_prob - jnp.minimum(*q_values(judging, obs[0], action, tanh)))).mean()

    actor, actor_adam = adam(agent.actor, jax.grad(actor_loss)(agent.actor), agent.adams[1], 1e-3)
    log_prob = gaussian(agent.actor, seen, tanh, draw)[1]
    surplus = -log_prob + batch.action.shape[1]
    gradient = jax.grad(lambda x: (mask * jnp.exp(x) * surplus).mean())(agent.log_alpha)
    log_alpha, alpha_adam = adam(agent.log_alpha, gradient, agent.adams[2], method.alpha_rate, method.alpha_beta)

    def follow(part: str, tau: float) -> Any:
        return jax.tree.map(lambda t, s: (1 - tau) * t + tau * s, getattr(agent.target, part), getattr(critic, part))

    target = type(critic)(follow("encoder", method.encoder_tau), follow("heads", 0.01))
    return Plain(critic, target, actor, log_alpha, (critic_adam, actor_adam, alpha_adam))


class Contrastive(NamedTuple):
    """CURL's own: the similarity, and the original's two Adams, both of which hold the encoder."""

    similarity: Any
    both: Adam
    encoder_only: Adam


@jax.jit
def contrast(agent: Plain, own: Contrastive, anchor: Any, positive: Any) -> tuple[Plain, Contrastive]:
    """The contrastive step after the rest, one pair of crops at a time."""

    def encode(encoder: Any, pictures: Any) -> Any:
        return project(encoder.projection, convolve(encoder.convolutions, pictures), False)

    keys = encode(agent.target.encoder, positive)

    def loss(learned: Any) -> Any:
        total, queries = jnp.zeros(()), encode(learned[0], anchor)
        for i in range(len(anchor)):
            scores = jnp.stack([queries[i] @ learned[1] @ keys[j] for j in range(len(anchor))])
            total = total + jnp.log(jnp.exp(scores - scores[i]).sum())
        return total / len(anchor)

    encoder = agent.critic.encoder
    gradient = jax.grad(loss)((encoder, own.similarity))
    encoder, encoder_only = adam(encoder, gradient[0], own.encoder_only, 1e-3)
    (encoder, similarity), both = adam((encoder, own.similarity), gradient, own.both, 1e-3)
    critic = type(agent.critic)(encoder, agent.critic.heads)
    return agent._replace(critic=critic), Contrastive(similarity, both, encoder_only)
