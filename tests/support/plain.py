"""Algorithms written from their papers, with none of our code but the containers: the tests' independent word."""

import copy
from typing import Any

import jax
import jax.numpy as jnp

from sunrise.networks.layers import MLP
from sunrise.types import Sample
from tests.support import tiny

KEY = jax.random.key(11)


def member(tree: Any, i: int) -> Any:
    """Row i of every leaf."""
    return jax.tree.map(lambda leaf: leaf[i], tree)


def member_key(step: int) -> Any:
    """The key of member 0 in an update."""
    return jax.random.fold_in(jax.random.fold_in(KEY, step), 0)


class Adam:
    """Adam by hand."""

    def __init__(self, start: Any, rate: float) -> None:
        self.first = [jnp.zeros_like(x) for x in jax.tree.leaves(start)]
        self.second = [jnp.zeros_like(x) for x in jax.tree.leaves(start)]
        self.rate, self.count = rate, 0

    def step(self, value: Any, gradient: Any) -> Any:
        self.count += 1
        leaves, tree = jax.tree.flatten(value)
        gradients = jax.tree.leaves(gradient)
        self.first = [0.9 * m + 0.1 * g for m, g in zip(self.first, gradients, strict=True)]
        self.second = [0.999 * v + 0.001 * g**2 for v, g in zip(self.second, gradients, strict=True)]
        moved = [
            x - self.rate * (m / (1 - 0.9**self.count)) / (jnp.sqrt(v / (1 - 0.999**self.count)) + 1e-8)
            for x, m, v in zip(leaves, self.first, self.second, strict=True)
        ]
        return jax.tree.unflatten(tree, moved)


def forward(net: MLP, x: Any) -> Any:
    """Linear layers with ReLU between them."""
    for layer in net.layers[:-1]:
        x = jnp.maximum(jnp.einsum("bi,io->bo", x, layer.weight) + layer.bias, 0)
    return jnp.einsum("bi,io->bo", x, net.layers[-1].weight) + net.layers[-1].bias


def q_value(net: MLP, obs: Any, action: Any) -> Any:
    """Q(s, a) of one network."""
    return forward(net, jnp.concatenate([obs, action], 1))[:, 0]


def follow(target: Any, source: Any) -> Any:
    """A Polyak step of 0.005."""
    return jax.tree.map(lambda t, s: 0.995 * t + 0.005 * s, target, source)


class PlainSAC:
    """SAC with two critics by name."""

    def __init__(self, start: Any, authors: bool = False, actor_first: bool = False) -> None:
        self.actor, self.log_alpha, self.authors = start.actor, start.log_alpha, authors
        self.actor_first = actor_first
        self.critics = [member(start.critics, k) for k in range(2)]
        self.targets = [member(start.targets, k) for k in range(2)]
        self.adams = [Adam(part, 3e-4) for part in (self.actor, *self.critics, self.log_alpha)]

    def policy(self, actor: MLP, obs: Any, key: Any) -> tuple[Any, Any]:
        out = forward(actor, obs)
        mean, log_std = out[:, : tiny.ACTION], jnp.clip(out[:, tiny.ACTION :], -20, 2)
        noise = jax.random.normal(key, mean.shape)
        before = mean + jnp.exp(log_std) * noise
        action = jnp.tanh(before)
        density = jax.scipy.stats.norm.logpdf(before, mean, jnp.exp(log_std)) - jnp.log(1 - action**2 + 1e-6)
        return action, density.sum(1)

    def update(self, sample: Sample, step: int, weights: Any = (1.0, 1.0), key: Any = None) -> None:
        """One update; `weights` multiply the two critics' losses, row by row."""
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        rows = mask.sum() + 1 if self.authors else len(mask)
        k_now, k_next, _ = jax.random.split(member_key(step) if key is None else key, 3)
        log_prob_now = self.policy(self.actor, b.obs, k_now)[1]
        alpha_gradient = -(mask * (log_prob_now - tiny.ACTION)).sum() / rows
        old_log_alpha = self.log_alpha
        self.log_alpha = self.adams[3].step(self.log_alpha, alpha_gradient)
        alpha = jnp.exp(self.log_alpha if self.authors else old_log_alpha)

        def actor_loss(actor: MLP) -> Any:
            action, log_prob = self.policy(actor, b.obs, k_now)
            worst = jnp.minimum(*[q_value(c, b.obs, action) for c in self.critics])
            return (mask * (alpha * log_prob - worst)).sum() / rows

        if self.actor_first:  # on the old critics; then the target is of the new actor and the new alpha
            self.actor = self.adams[0].step(self.actor, jax.grad(actor_loss)(self.actor))
        next_action, next_log_prob = self.policy(self.actor, b.next_obs, k_next)
        values = [q_value(t, b.next_obs, next_action) for t in self.targets]
        target_alpha = jnp.exp(self.log_alpha) if self.actor_first else alpha
        target = b.reward + b.discount * (jnp.minimum(*values) - target_alpha * next_log_prob)
        self.errors = [jnp.abs(q_value(c, b.obs, b.action) - target) for c in self.critics]
        for k in range(2):
            gradient = jax.grad(
                lambda c, k=k: (mask * weights[k] * (q_value(c, b.obs, b.action) - target) ** 2).sum() / rows
            )(self.critics[k])
            self.critics[k] = self.adams[1 + k].step(self.critics[k], gradient)
        if not self.actor_first:
            self.actor = self.adams[0].step(self.actor, jax.grad(actor_loss)(self.actor))
        for k in range(2):
            self.targets[k] = jax.tree.map(lambda t, c: 0.995 * t + 0.005 * c, self.targets[k], self.critics[k])


class PlainTD3:
    """TD3 with two critics by name."""

    def __init__(self, start: Any) -> None:
        self.actor, self.target_actor = start.slow.actor, start.slow.target_actor
        self.critics = [member(start.critics, k) for k in range(2)]
        self.targets = [member(start.slow.target_critics, k) for k in range(2)]
        self.adams = [Adam(part, 1e-3) for part in (self.actor, *self.critics)]

    def update(self, sample: Sample, step: int) -> None:
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        smooth = jnp.tanh(forward(self.target_actor, b.next_obs))
        noise = jnp.clip(0.2 * jax.random.normal(member_key(step), smooth.shape), -0.5, 0.5)
        next_action = jnp.clip(smooth + noise, -1, 1)
        worst = jnp.minimum(*[q_value(t, b.next_obs, next_action) for t in self.targets])
        target = b.reward + b.discount * worst
        for k in range(2):
            gradient = jax.grad(lambda c: (mask * (q_value(c, b.obs, b.action) - target) ** 2).mean())(self.critics[k])
            self.critics[k] = self.adams[1 + k].step(self.critics[k], gradient)
        if step % 2 == 1:
            gradient = jax.grad(
                lambda a: -(mask * q_value(self.critics[0], b.obs, jnp.tanh(forward(a, b.obs)))).mean()
            )(self.actor)
            self.actor = self.adams[0].step(self.actor, gradient)
            self.target_actor = follow(self.target_actor, self.actor)
            self.targets = [follow(t, c) for t, c in zip(self.targets, self.critics, strict=True)]


class PlainDisCor:
    """DisCor around the plain SAC, with two error networks by name."""

    def __init__(self, start: Any) -> None:
        self.sac = PlainSAC(start.inner, actor_first=True)
        self.errors = [member(start.errors, k) for k in range(2)]
        self.targets = [member(start.targets, k) for k in range(2)]
        self.adams = [Adam(net, 3e-4) for net in self.errors]
        self.temperatures = [10.0, 10.0]

    def update(self, sample: Sample, step: int) -> None:
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        key = member_key(step)
        stepped = copy.copy(self.sac)
        stepped.adams = [copy.copy(adam) for adam in self.sac.adams]
        stepped.critics, stepped.targets = list(self.sac.critics), list(self.sac.targets)
        stepped.update(sample, step, key=key)  # its actor alone is of use: it does not depend on the weights
        policy = stepped.actor
        next_action, _ = self.sac.policy(policy, b.next_obs, jax.random.split(key, 3)[1])
        fresh, _ = self.sac.policy(policy, b.next_obs, jax.random.fold_in(key, 2**32 - 1))
        assert not jnp.allclose(next_action, fresh)  # two samples, not one
        weights = []
        for k in range(2):
            score = jnp.exp(-b.discount * q_value(self.targets[k], b.next_obs, next_action) / self.temperatures[k])
            weights.append(len(mask) * score / score.sum())
        self.sac.update(sample, step, weights, key)
        for k in range(2):
            goal = self.sac.errors[k] + b.discount * q_value(self.targets[k], b.next_obs, fresh)
            estimate = q_value(self.errors[k], b.obs, b.action)
            gradient = jax.grad(lambda e, goal=goal: (mask * (q_value(e, b.obs, b.action) - goal) ** 2).mean())(
                self.errors[k]
            )
            self.errors[k] = self.adams[k].step(self.errors[k], gradient)
            mean = (mask * estimate).sum() / mask.sum()
            self.temperatures[k] = 0.995 * self.temperatures[k] + 0.005 * mean
            self.targets[k] = follow(self.targets[k], self.errors[k])
