"""REDQ (Chen et al., 2021) and DroQ (Hiraoka et al., 2022) from their papers and their authors' code.

Critics have names and are looped over; none of our code is used but the containers.
"""

from typing import Any

import jax
import jax.numpy as jnp

from sunrise.networks.layers import MLP
from sunrise.types import Sample
from tests.support.plain import Adam, PlainSAC, follow, member, member_key

SUBSET, NEXT, CRITIC, ACTOR, NOISE = (2**31 + use for use in (0, 2, 4, 5, 6))


def kept_units(key: Any, rate: float, shape: tuple[int, ...]) -> Any:
    """1 for the units that stay."""
    return jnp.asarray(jax.random.uniform(key, shape) < 1 - rate, float)


def forward(net: MLP, x: Any, keys: list[Any] | None, rate: float) -> Any:
    """Linear, dropout, layer norm, ReLU, for each hidden layer."""
    for depth, layer in enumerate(net.layers[:-1]):
        x = jnp.einsum("bi,io->bo", x, layer.weight) + layer.bias
        if keys is not None:
            x = x * kept_units(keys[depth], rate, x.shape) / (1 - rate)
        if net.norms:
            mean, variance = jnp.mean(x, 1)[:, None], jnp.var(x, 1)[:, None]
            x = net.norms[depth].scale * (x - mean) / jnp.sqrt(variance + 1e-5) + net.norms[depth].shift
        x = jnp.maximum(x, 0)
    return jnp.einsum("bi,io->bo", x, net.layers[-1].weight) + net.layers[-1].bias


class PlainREDQ:
    """SAC with K critics, a random pair of them in the target and their mean for the actor, who steps rarely."""

    policy: Any = PlainSAC.policy

    def __init__(self, start: Any, delay: int, subset: int, rate: float = 0.0) -> None:
        self.count, self.delay, self.subset, self.rate = start.critics.layers[0].weight.shape[0], delay, subset, rate
        self.critics = [member(start.critics, k) for k in range(self.count)]
        self.targets = [member(start.targets, k) for k in range(self.count)]
        self.actor, self.log_alpha = start.actor, start.log_alpha
        self.adams = [Adam(part, 3e-4) for part in (self.actor, self.log_alpha, *self.critics)]

    def values(self, nets: list[MLP], obs: Any, action: Any, key: Any, use: int) -> list[Any]:
        rows = jnp.concatenate([obs, action], 1)
        keys = jax.random.split(jax.random.fold_in(key, use), self.count)
        depths = [[jax.random.fold_in(k, depth) for depth in range(2)] if self.rate else None for k in keys]
        return [forward(net, rows, d, self.rate)[:, 0] for net, d in zip(nets, depths, strict=True)]

    def update(self, sample: Sample, step: int) -> None:
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        key = member_key(step)
        k_now, k_next, _ = jax.random.split(key, 3)
        alpha = jnp.exp(self.log_alpha)
        next_action, next_log_prob = self.policy(self.actor, b.next_obs, k_next)
        drawn = jax.random.permutation(jax.random.fold_in(key, SUBSET), self.count)[: self.subset]
        values = self.values(self.targets, b.next_obs, next_action, key, NEXT)
        lowest = jnp.min(jnp.stack([values[int(k)] for k in drawn]), axis=0)
        target = b.reward + b.discount * (lowest - alpha * next_log_prob)

        def critic_loss(critics: list[MLP]) -> Any:
            errors = [q - target for q in self.values(critics, b.obs, b.action, key, CRITIC)]
            return sum((mask * error**2).mean() for error in errors)

        def actor_loss(actor: MLP) -> Any:
            action, log_prob = self.policy(actor, b.obs, k_now)
            mean = sum(self.values(self.critics, b.obs, action, key, ACTOR)) / self.count
            return (mask * (alpha * log_prob - mean)).mean()

        stepped = [
            adam.step(critic, gradient)
            for adam, critic, gradient in zip(
                self.adams[2:], self.critics, jax.grad(critic_loss)(self.critics), strict=True
            )
        ]
        if (step + 1) % self.delay == 0:  # on the critics before their step
            log_prob = self.policy(self.actor, b.obs, k_now)[1]
            self.actor = self.adams[0].step(self.actor, jax.grad(actor_loss)(self.actor))
            goal = -float(b.action.shape[1])
            self.log_alpha = self.adams[1].step(self.log_alpha, -(mask * (log_prob + goal)).mean())
        self.critics = stepped
        self.targets = [follow(t, c) for t, c in zip(self.targets, self.critics, strict=True)]


class PlainManyTD3:
    """TD3 whose critics are many and normalised, and whose actor climbs their mean."""

    def __init__(self, start: Any, subset: int) -> None:
        self.count, self.subset = start.critics.layers[0].weight.shape[0], subset
        self.actor, self.target_actor = start.slow.actor, start.slow.target_actor
        self.critics = [member(start.critics, k) for k in range(self.count)]
        self.targets = [member(start.slow.target_critics, k) for k in range(self.count)]
        self.adams = [Adam(part, 1e-3) for part in (self.actor, *self.critics)]

    def update(self, sample: Sample, step: int) -> None:
        b, mask, key = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float), member_key(step)

        def value(net: MLP, obs: Any, action: Any) -> Any:
            return forward(net, jnp.concatenate([obs, action], 1), None, 0.0)[:, 0]

        smooth = jnp.tanh(forward(self.target_actor, b.next_obs, None, 0.0))
        noise = jnp.clip(0.2 * jax.random.normal(jax.random.fold_in(key, NOISE), smooth.shape), -0.5, 0.5)
        next_action = jnp.clip(smooth + noise, -1, 1)
        drawn = jax.random.permutation(jax.random.fold_in(key, SUBSET), self.count)[: self.subset]
        lowest = jnp.min(jnp.stack([value(self.targets[int(k)], b.next_obs, next_action) for k in drawn]), axis=0)
        target = b.reward + b.discount * lowest
        for k in range(self.count):
            gradient = jax.grad(lambda c: (mask * (value(c, b.obs, b.action) - target) ** 2).mean())(self.critics[k])
            self.critics[k] = self.adams[1 + k].step(self.critics[k], gradient)
        if step % 2 == 1:

            def loss(actor: MLP) -> Any:
                action = jnp.tanh(forward(actor, b.obs, None, 0.0))
                return -(mask * sum(value(c, b.obs, action) for c in self.critics) / self.count).mean()

            self.actor = self.adams[0].step(self.actor, jax.grad(loss)(self.actor))
            self.target_actor = follow(self.target_actor, self.actor)
            self.targets = [follow(t, c) for t, c in zip(self.targets, self.critics, strict=True)]
