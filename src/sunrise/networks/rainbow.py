"""Rainbow's network: strided convolutions as matrix products, dueling streams, noisy layers.

A noisy network is not evaluated: `perturb` draws an ordinary one from it, and that is evaluated. For 32 rows this is
faster than to multiply by means and deviations apart (a layer's forward pass takes a little over half the time): it
halves the products, and a deviation's gradient is its mean's times the noise, which needs no product at all. Each
agent has one noise for a whole batch, as in Fortunato et al. (2018).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from sunrise.errors import SunriseError
from sunrise.networks.augmentation import PictureShape, Sight
from sunrise.networks.layers import Linear, flatten
from sunrise.networks.observations import Seen
from sunrise.networks.rainbow_pictures import STRIDE, Contrast, depth_for
from sunrise.types import Observation

T = TypeVar("T")
CHANNELS = (32, 64)
"""The data-efficient convolutions (van Hasselt et al., 2019): kernels of 5 x 5 that do not overlap."""


class NoisyLinear(eqx.Module):
    """Means and standard deviations of a linear layer's weights, with factorised Gaussian noise."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]
    weight_std: Float[Array, "in out"]
    bias_std: Float[Array, "out"]

    def draw(self, noise_in: Float[Array, "in"], noise_out: Float[Array, "out"]) -> Linear:
        """W = μ + σ f(ε_in) f(ε_out), b = μ + σ f(ε_out)."""
        return Linear(
            self.weight + self.weight_std * (noise_in[:, None] * noise_out), self.bias + self.bias_std * noise_out
        )


Layer: TypeAlias = Linear | NoisyLinear


class TiledConvolutions(eqx.Module):
    """5 x 5 convolutions of stride 5 without padding. They do not overlap, so a picture is cut once into the tiles of
    the first layer, grouped by the tile of the next layer they fall into; then each layer is one matrix product.

    It is exact: what is cut off at the edges is what the last layer would not see. XLA's own convolution is several
    times slower under `vmap`, above all in the weights' gradient. Tiles are columns, not rows: so the members' axis
    comes first in every product, and nothing is transposed on the way.
    """

    layers: tuple[Linear, ...]
    """Weights are [channels · height · width of a tile, out]."""

    def __call__(self, frames: Shaped[Array, "B C H W"]) -> Float[Array, "B features"]:
        x = tiles(frames, len(self.layers)).astype(self.layers[0].weight.dtype) / 255
        for layer in self.layers:
            x = jax.nn.relu(layer.weight.T @ x.reshape(layer.weight.shape[0], -1) + layer.bias[:, None])
        return x.reshape(-1, frames.shape[0]).T


class Dense(eqx.Module):
    """One hidden layer, for observations that are no pictures."""

    layer: Linear

    def __call__(self, obs: Observation) -> Float[Array, "B features"]:
        return jax.nn.relu(self.layer(flatten(obs).astype(self.layer.weight.dtype)))


class Glance(eqx.Module):
    """Convolutions for each of several pictures; what stands beside the pictures comes after their features."""

    each: tuple[TiledConvolutions, ...]

    def __call__(self, seen: Seen) -> Float[Array, "B features"]:
        return seen.beside(self.views(seen))

    def views(self, seen: Seen) -> list[Float[Array, "B _"]]:
        """The features of each picture."""
        return [encoder(picture) for encoder, picture in zip(self.each, seen.pictures, strict=True)]


Trunk: TypeAlias = TiledConvolutions | Glance | Dense


def of_pictures(trunk: Trunk, obs: Observation) -> Float[Array, "B features"]:
    """What a trunk makes of pictures, without what stands beside them."""
    return jnp.concatenate(trunk.views(obs), axis=1) if isinstance(trunk, Glance) else trunk(obs)


class RainbowNetwork(eqx.Module):
    """A trunk and one or two streams: the advantage of each action, and the value of the state if it is dueling."""

    trunk: Trunk
    advantage: tuple[Layer, ...]
    value: tuple[Layer, ...]
    """Empty where the advantage stream alone is the answer."""
    contrast: Contrast | tuple[()] = ()
    """What tells views of observations apart, where that is learned too."""

    def __call__(self, obs: Observation, n_actions: int) -> Float[Array, "B C atoms"]:
        """A logit for each action and atom; with one atom, a value for each action. To be called once perturbed."""
        features = self.trunk(obs)
        advantage = stream(self.advantage, features)
        advantage = advantage.reshape(advantage.shape[0], n_actions, -1)
        if not self.value:
            return advantage
        # v + a − mean_a: shifting all advantages changes nothing (Wang et al., 2016, eq. 9)
        value: Array = stream(self.value, features)[:, None]
        return value + (advantage - advantage.mean(axis=1, keepdims=True))


def tiles(frames: Shaped[Array, "B C H W"], depth: int) -> Shaped[Array, "C ... h w B"]:
    """frames[B, C, H, W] -> tiles of tiles[C, 5, 5, ..., h, w, B]: a pair of fives for each of `depth` layers.

    Rows come last, as the longest axis should.
    """
    rows, channels, height, width = frames.shape
    size = STRIDE**depth
    h, w, side = height // size, width // size, (STRIDE,) * depth
    whole = frames[:, :, : h * size, : w * size].reshape(rows, channels, h, *side, w, *side)
    pairs = [axis for level in range(depth, 0, -1) for axis in (2 + level, 3 + depth + level)]
    return whole.transpose(1, *pairs, 2, 3 + depth, 0)


def stream(layers: tuple[Layer, ...], x: Float[Array, "B in"]) -> Float[Array, "B out"]:
    """x[B, in] -> [B, out] through linear layers with ReLU between them."""
    for depth, layer in enumerate(layers):
        if isinstance(layer, NoisyLinear):
            raise TypeError("a noisy network is perturbed before it is called")
        x = layer(x if depth == 0 else jax.nn.relu(x))
    return x


def is_noisy(node: object) -> bool:
    """Whether a node of a network is a noisy layer."""
    return isinstance(node, NoisyLinear)


def signed_root(x: Float[Array, "size"]) -> Float[Array, "size"]:
    """f(x) = sign(x) √|x| = √x⁺ − √x⁻.

    The difference is written as a product with (1, −1): XLA would otherwise draw the noise again for every weight.
    """
    signs = jnp.asarray([1.0, -1.0], x.dtype)
    return jnp.sqrt(jax.nn.relu(x[:, None] * signs)) @ signs


def perturb(network: T, key: PRNGKeyArray | None) -> T:
    """Noisy network, key -> an ordinary one drawn from it; without a key, the one of the mean weights."""
    nodes, tree = jax.tree.flatten(network, is_leaf=is_noisy)
    size = sum(sum(node.weight.shape) for node in nodes if isinstance(node, NoisyLinear))
    noise = signed_root(jax.random.normal(key, (size,))) if key is not None and size else jnp.zeros(size)
    drawn, used = [], 0
    for node in nodes:
        if not isinstance(node, NoisyLinear):
            drawn.append(node)
        elif key is None:
            drawn.append(Linear(node.weight, node.bias))
        else:
            i, o = node.weight.shape
            drawn.append(node.draw(noise[used : used + i], noise[used + i : used + i + o]))
            used += i + o
    result: T = jax.tree.unflatten(tree, drawn)
    return result


def linear(key: PRNGKeyArray, i: int, o: int) -> Linear:
    """key, in, out -> a fresh layer: U(±1/√in) for weights and biases."""
    rows = jax.random.uniform(key, (i + 1, o), minval=-1.0, maxval=1.0) * i**-0.5
    return Linear(rows[:-1], rows[-1])


def streams(
    key: PRNGKeyArray, sizes: Sequence[int], noisy: bool, noisy_std: Float[Array, ""] | float
) -> tuple[Layer, ...]:
    """key, sizes -> the fresh layers of one stream; noisy ones deviate by σ₀/√in in weights and σ₀/√out in biases."""
    pairs = list(pairwise(sizes))
    layers: list[Layer] = []
    for k, (i, o) in zip(jax.random.split(key, len(pairs)), pairs, strict=True):
        mean = linear(k, i, o)
        std = jnp.asarray(noisy_std, mean.weight.dtype)
        noise = jnp.full((i, o), std * i**-0.5), jnp.full(o, std * o**-0.5)
        layers.append(NoisyLinear(mean.weight, mean.bias, *noise) if noisy else mean)
    return tuple(layers)


def sight_of(space: gym.Space[object] | Sight) -> Sight | None:
    """The pictures [channels, height, width] of a space; None for a space of plain numbers."""
    if isinstance(space, Sight):
        return space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) < 3:
        return None
    if space.dtype != "uint8" or len(space.shape) != 3 or min(space.shape[1:]) < STRIDE:
        raise SunriseError(f"Rainbow takes pictures of uint8; the environment shows {space.dtype} of {space.shape}.")
    return Sight((PictureShape(*space.shape, 1),), 0)


def tiled_convolutions(key: PRNGKeyArray, picture: PictureShape) -> tuple[TiledConvolutions, int]:
    """Fresh convolutions for pictures of a shape, and how many features they give."""
    depth = depth_for(picture.height, picture.width)
    pairs = list(pairwise((picture.stack, *CHANNELS[:depth])))
    keys, shrink = jax.random.split(key, len(pairs)), STRIDE**depth
    layers = tuple(linear(k, STRIDE**2 * i, o) for k, (i, o) in zip(keys, pairs, strict=True))
    return TiledConvolutions(layers), (picture.height // shrink) * (picture.width // shrink) * pairs[-1][1]


def new_trunk(key: PRNGKeyArray, space: gym.Space[object] | Sight, width: int) -> tuple[Trunk, int]:
    """A fresh trunk for observations, `width` wide where they are no pictures, and how many features it gives."""
    sight = sight_of(space)
    if sight is None:
        assert not isinstance(space, Sight)
        return Dense(linear(key, gym.spaces.flatdim(space), width)), width
    if not isinstance(space, Sight):
        return tiled_convolutions(key, sight.pictures[0])
    keys = jax.random.split(key, len(sight.pictures))
    eyes, features = zip(*map(tiled_convolutions, keys, sight.pictures), strict=True)
    return Glance(eyes), sum(features) + sight.beside


def rainbow_network(
    key: PRNGKeyArray,
    space: gym.Space[object] | Sight,
    outputs: tuple[int, int],
    hidden: Sequence[int],
    dueling: bool,
    noisy_std: Float[Array, ""] | float | None,
    trunk_width: int | None = None,
) -> RainbowNetwork:
    """key, space, `outputs` = (C, atoms) -> a fresh network; without `noisy_std` its layers are ordinary.

    `trunk_width` is that of the layer before the streams, for states, where it is not the first of `hidden`.
    """
    n_actions, atoms = outputs
    k_trunk, k_advantage, k_value = jax.random.split(key, 3)
    trunk, features = new_trunk(k_trunk, space, hidden[0] if trunk_width is None else trunk_width)
    noisy, std = noisy_std is not None, 0.0 if noisy_std is None else noisy_std
    return RainbowNetwork(
        trunk,
        streams(k_advantage, (features, *hidden, n_actions * atoms), noisy, std),
        streams(k_value, (features, *hidden, atoms), noisy, std) if dueling else (),
    )
