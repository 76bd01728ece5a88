"""Layers and networks. They act on rows, [B, in] -> [B, out], and every leaf of them is an array."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.types import Observation

Init: TypeAlias = Literal["default", "rlkit"]


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


def uniform_linear(key: PRNGKeyArray, fan_in: int, fan_out: int, bound: float, bias: float | None = None) -> Linear:
    """Weights from U(±bound); the bias too, unless it is given."""
    k_weight, k_bias = jax.random.split(key)
    weight = jax.random.uniform(k_weight, (fan_in, fan_out), minval=-bound, maxval=bound)
    if bias is not None:
        return Linear(weight, jnp.full(fan_out, bias))
    return Linear(weight, jax.random.uniform(k_bias, (fan_out,), minval=-bound, maxval=bound))


def mlp(key: PRNGKeyArray, sizes: Sequence[int], init: Init, last_bound: float) -> MLP:
    """A fresh MLP with `sizes` = (in, hidden..., out).

    `default` is U(±1/√in) for weights and biases, as most frameworks do. `rlkit` is what the authors' code does:
    U(±1/√out) with biases of 0.1, and U(±last_bound) in the last layer.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = list(zip(keys, sizes[:-1], sizes[1:], strict=True))
    if init == "default":
        return MLP(tuple(uniform_linear(k, i, o, i**-0.5) for k, i, o in pairs))
    hidden = tuple(uniform_linear(k, i, o, o**-0.5, bias=0.1) for k, i, o in pairs[:-1])
    k, i, o = pairs[-1]
    return MLP((*hidden, uniform_linear(k, i, o, last_bound)))


def flatten(obs: Observation) -> Float[Array, "B in"]:
    """Every leaf of an observation, side by side in one row."""
    leaves = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(obs)]
    return jnp.concatenate(leaves, axis=1) if len(leaves) > 1 else leaves[0]
