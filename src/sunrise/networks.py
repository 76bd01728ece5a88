"""Layers and networks. They act on rows, [B, in] -> [B, out], and every leaf of them is an array."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.types import Observation

T = TypeVar("T")
Init: TypeAlias = Literal["default", "rlkit", "xavier"]


class Linear(eqx.Module):
    """x W + b. W is [in, out], so that a batch of rows is one matrix product with no transpose."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]

    def __call__(self, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
        return x @ self.weight + self.bias


class MLP(eqx.Module):
    """Linear layers with ReLU between them."""

    layers: tuple[Linear, ...]

    def __call__(self, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


def mlp(key: PRNGKeyArray, sizes: Sequence[int], init: Init, last_bound: float) -> MLP:
    """A fresh MLP with `sizes` = (in, hidden..., out).

    `default` is U(±1/√in) for weights and biases, as most frameworks do. `rlkit` is what the authors' code does:
    U(±1/√out) with biases of 0.1, and U(±last_bound) in the last layer. `xavier` is U(±√(6 / (in + out))), biases 0.
    """
    pairs = list(pairwise(sizes))
    # One draw for the whole network: a draw is most of what the compiler has to chew on.
    draw = jax.random.uniform(key, (sum((i + 1) * o for i, o in pairs),), minval=-1.0, maxval=1.0)
    layers, used = [], 0
    for depth, (i, o) in enumerate(pairs):
        rows = draw[used : used + (i + 1) * o].reshape(i + 1, o)
        used += (i + 1) * o
        last = depth == len(pairs) - 1
        if init == "default":
            layers.append(Linear(rows[:-1] * i**-0.5, rows[-1] * i**-0.5))
        elif init == "xavier":
            layers.append(Linear(rows[:-1] * (6 / (i + o)) ** 0.5, jnp.zeros(o)))
        elif last:
            layers.append(Linear(rows[:-1] * last_bound, rows[-1] * last_bound))
        else:
            layers.append(Linear(rows[:-1] * o**-0.5, jnp.full(o, 0.1)))
    return MLP(tuple(layers))


def polyak(target: T, source: T, tau: Float[Array, ""] | float) -> T:
    """A step of `tau` from target towards source; where they are equal nothing moves, not even a last bit."""
    moved: T = jax.tree.map(lambda t, s: t + tau * (s - t), target, source)
    return moved


def flatten(obs: Observation) -> Float[Array, "B in"]:
    """Every leaf of an observation, side by side in one row."""
    leaves = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(obs)]
    return jnp.concatenate(leaves, axis=1) if len(leaves) > 1 else leaves[0]
