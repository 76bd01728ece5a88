"""Layers and networks. They act on rows, [B, in] -> [B, out], and every leaf of them is an array."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import Activation, Init
from sunrise.types import Observation

T = TypeVar("T")
LAYER_NORM_EPS = 1e-5
ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "elu": jax.nn.elu,
    "leaky_relu": jax.nn.leaky_relu,
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "sigmoid": jax.nn.sigmoid,
}
"""As PyTorch defines them."""


class Linear(eqx.Module):
    """x W + b. W is [in, out], so that a batch of rows is one matrix product with no transpose."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]

    def __call__(self, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
        return x @ self.weight + self.bias


class LayerNorm(eqx.Module):
    """Each row with mean 0 and variance 1, then scaled and shifted (Ba et al., 2016)."""

    scale: Float[Array, "width"]
    shift: Float[Array, "width"]

    def __call__(self, x: Float[Array, "B width"], eps: float = LAYER_NORM_EPS) -> Float[Array, "B width"]:
        return standardised(x, eps) * self.scale + self.shift


class Dropout(NamedTuple):
    """Units left out at random in one use of a network (Srivastava et al., 2014); those that stay make up for them."""

    key: PRNGKeyArray
    rate: float

    def __call__(self, x: Float[Array, "B width"], depth: int) -> Float[Array, "B width"]:
        remains = jax.random.bernoulli(jax.random.fold_in(self.key, depth), 1 - self.rate, x.shape)
        return jnp.where(remains, x / (1 - self.rate), 0)


class MLP(eqx.Module):
    """Linear layers with an activation between them; with norms, each hidden layer is normalised before it."""

    layers: tuple[Linear, ...]
    norms: tuple[LayerNorm, ...] = ()
    activation: Activation = eqx.field(default="relu", static=True)

    def __call__(self, x: Float[Array, "B in"], dropout: Dropout | None = None) -> Float[Array, "B out"]:
        for depth, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            if dropout is not None:
                x = dropout(x, depth)
            if self.norms:
                x = self.norms[depth](x)
            x = ACTIVATIONS[self.activation](x)
        return self.layers[-1](x)


def standardised(x: Float[Array, "B width"], eps: float = LAYER_NORM_EPS) -> Float[Array, "B width"]:
    """Each row with mean 0 and variance 1."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + eps)


def layer_norm(width: int) -> LayerNorm:
    """A normalisation whose scale and shift change nothing yet."""
    return LayerNorm(jnp.ones(width), jnp.zeros(width))


def mlp(
    key: PRNGKeyArray,
    sizes: Sequence[int],
    init: Init,
    last_bound: float,
    normed: bool = False,
    activation: Activation = "relu",
) -> MLP:
    """A fresh MLP with `sizes` = (in, hidden..., out).

    `default` is U(±1/√in) for weights and biases, as most frameworks do. `rlkit` is what the authors' code does:
    U(±1/√out) with biases of 0.1, and U(±last_bound) in the last layer. `xavier` is U(±√(6 / (in + out))), biases 0.
    """
    pairs = list(pairwise(sizes))
    # One draw for the whole network: to compile a draw takes longer than all the rest.
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
    norms = tuple(layer_norm(width) for width in sizes[1:-1]) if normed else ()
    return MLP(tuple(layers), norms, activation)


def polyak(target: T, source: T, tau: Float[Array, ""] | float) -> T:
    """A step of `tau` from target towards source; where they are equal nothing moves, not even a last bit."""
    moved: T = jax.tree.map(lambda t, s: t + tau * (s - t), target, source)
    return moved


def flatten(obs: Observation) -> Float[Array, "B in"]:
    """Every leaf of an observation, side by side in one row."""
    leaves = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(obs)]
    return jnp.concatenate(leaves, axis=1) if len(leaves) > 1 else leaves[0]
