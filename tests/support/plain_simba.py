"""SAC with SimBa's networks (Lee et al., 2024) from the paper and its authors' code.

The actor steps first, weights decay, and observations are in units of their deviations so far. None of our code is used
but the containers.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sunrise.types import Sample
from tests.support import tiny
from tests.support.plain import Adam, follow, member, member_key

RATE, DECAY = 1e-4, 1e-2


class AdamW(Adam):
    """Adam whose weights also decay by themselves."""

    def step(self, value: Any, gradient: Any) -> Any:
        moved = super().step(value, gradient)
        return jax.tree.map(lambda new, old: new - self.rate * DECAY * old, moved, value)


def norm(layer: Any, x: Any) -> Any:
    """A layer norm with flax's 1e-6."""
    mean, variance = jnp.mean(x, 1)[:, None], jnp.var(x, 1)[:, None]
    return (x - mean) / jnp.sqrt(variance + 1e-6) * layer.scale + layer.shift


def dense(layer: Any, x: Any) -> Any:
    return jnp.einsum("bi,io->bo", x, layer.weight) + layer.bias


def forward(net: Any, x: Any) -> Any:
    """Embedding, pre-norm residual blocks, a last norm, a head."""
    x = dense(net.embed, x)
    for block in net.blocks:
        x = x + dense(block.narrow, jnp.maximum(dense(block.wide, norm(block.norm, x)), 0))
    return dense(net.head, norm(net.norm, x))


class Statistics:
    """Mean and variance of everything seen, in two passes over all of it."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def standard(self, obs: Any) -> Any:
        rows = np.concatenate(self.seen)
        weight, total = 1e-4, 1e-4 + len(rows)  # the first mean of 0 and variance of 1 count a little
        mean = rows.sum(0) / total
        variance = (weight * (1 + mean**2) + ((rows - mean) ** 2).sum(0)) / total
        return (obs - mean) / np.sqrt(variance + 1e-8)


class PlainSimba:
    """One agent."""

    def __init__(self, state: Any) -> None:
        start = state.inner
        self.count = start.critics.embed.weight.shape[0]
        self.actor, self.log_alpha = start.actor, start.log_alpha
        self.critics = [member(start.critics, k) for k in range(self.count)]
        self.targets = [member(start.targets, k) for k in range(self.count)]
        self.adams = [AdamW(part, RATE) for part in (self.actor, *self.critics)]
        self.alpha_adam = Adam(self.log_alpha, RATE)
        self.statistics = Statistics()

    def policy(self, actor: Any, obs: Any, key: Any) -> tuple[Any, Any]:
        out = forward(actor, obs)
        mean, log_std = out[:, : tiny.ACTION], -10 + 6 * (1 + jnp.tanh(out[:, tiny.ACTION :]))
        before = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)
        slope = jnp.log(1 / jnp.cosh(before) ** 2)  # of tanh, exactly
        return jnp.tanh(before), (jax.scipy.stats.norm.logpdf(before, mean, jnp.exp(log_std)) - slope).sum(1)

    def lowest(self, nets: list[Any], obs: Any, action: Any) -> Any:
        rows = jnp.concatenate([obs, action], 1)
        return jnp.min(jnp.stack([forward(net, rows)[:, 0] for net in nets]), axis=0)

    def update(self, sample: Sample, step: int) -> None:
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        obs, next_obs = (jnp.asarray(self.statistics.standard(np.asarray(o))) for o in (b.obs, b.next_obs))
        k_now, k_next, _ = jax.random.split(member_key(step), 3)

        def actor_loss(actor: Any) -> tuple[Any, Any]:
            action, log_prob = self.policy(actor, obs, k_now)
            loss = (mask * (jnp.exp(self.log_alpha) * log_prob - self.lowest(self.critics, obs, action))).mean()
            return loss, log_prob

        gradient, log_prob = jax.grad(actor_loss, has_aux=True)(self.actor)
        self.actor = self.adams[0].step(self.actor, gradient)
        surplus = (mask * (-log_prob + 0.5 * tiny.ACTION)).mean()
        self.log_alpha = self.alpha_adam.step(self.log_alpha, jnp.exp(self.log_alpha) * surplus)

        next_action, next_log_prob = self.policy(self.actor, next_obs, k_next)
        value = self.lowest(self.targets, next_obs, next_action) - jnp.exp(self.log_alpha) * next_log_prob
        target = b.reward + b.discount * value
        rows = jnp.concatenate([obs, b.action], 1)
        for k in range(self.count):
            gradient = jax.grad(lambda c: (mask * (forward(c, rows)[:, 0] - target) ** 2).mean())(self.critics[k])
            self.critics[k] = self.adams[1 + k].step(self.critics[k], gradient)
            self.targets[k] = follow(self.targets[k], self.critics[k])
