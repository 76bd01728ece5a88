"""SimBa (Lee et al., 2024): residual blocks with layer norm in front, so that larger networks stay simple functions."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.networks.encoder import orthogonal_matrices
from sunrise.networks.layers import Dropout, LayerNorm, Linear, layer_norm

EPS = 1e-6
"""Of the layer norms: that of the framework SimBa is written in."""
WIDER = 4
"""How much wider a block is inside."""
TRUNCATED_STD = 0.87962566103423978
"""Standard deviation of a normal that is cut off at ±2."""


class ResidualBlock(eqx.Module):
    """x + W ReLU(V norm(x))."""

    norm: LayerNorm
    wide: Linear
    narrow: Linear

    def __call__(self, x: Float[Array, "B width"]) -> Float[Array, "B width"]:
        return x + self.narrow(jax.nn.relu(self.wide(self.norm(x, EPS))))


class Simba(eqx.Module):
    """A linear embedding, residual blocks, a last norm and a linear head."""

    embed: Linear
    blocks: tuple[ResidualBlock, ...]
    norm: LayerNorm
    head: Linear

    def __call__(self, x: Float[Array, "B in"], dropout: Dropout | None = None) -> Float[Array, "B out"]:
        if dropout is not None:
            raise TypeError("a SimBa network has no dropout")
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x, EPS))


def unbiased(weight: Float[Array, "in out"]) -> Linear:
    """weight[in, out] -> a layer whose bias starts at 0."""
    return Linear(weight, jnp.zeros(weight.shape[1]))


def simba(key: PRNGKeyArray, inputs: int, size: tuple[int, int], heads: Sequence[int]) -> Simba:
    """A fresh network [B, in] -> [B, sum of heads] of `size` = (width, blocks).

    The embedding and each head are orthogonal; layers of the blocks are He's normal, cut off at two deviations.
    """
    width, blocks = size
    k_outer, k_blocks = jax.random.split(key)
    embed, *ends = orthogonal_matrices(k_outer, [(inputs, width), *((width, head) for head in heads)])
    inner = WIDER * width
    draw = jax.random.truncated_normal(k_blocks, -2.0, 2.0, (blocks, 2, width * inner)) / TRUNCATED_STD
    return Simba(
        unbiased(embed),
        tuple(
            ResidualBlock(
                layer_norm(width),
                unbiased(wide.reshape(width, inner) * (2 / width) ** 0.5),
                unbiased(narrow.reshape(inner, width) * (2 / inner) ** 0.5),
            )
            for wide, narrow in draw
        ),
        layer_norm(width),
        unbiased(jnp.concatenate(ends, axis=1)),
    )
