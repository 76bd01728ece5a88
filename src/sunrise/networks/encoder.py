"""From stacked frames to features: convolutions, then a layer to a few numbers that are normalised (SAC-AE, RAD)."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from sunrise.config.learners import KernelInit
from sunrise.errors import SunriseError
from sunrise.networks.augmentation import PictureShape
from sunrise.networks.convolution import conv
from sunrise.networks.layers import MLP, Linear, standardised
from sunrise.networks.observations import Seen

KERNEL, FIRST_STRIDE = 3, 2
RELU_GAIN = 2**0.5
BLOCK = 64
"""Columns that are made orthogonal to each other before the next ones."""


class Convolutions(eqx.Module):
    """3 x 3 convolutions with ReLU, without padding, the first with stride 2. Only the critic's loss trains them."""

    kernels: tuple[Float[Array, "3 3 _ O"], ...]
    biases: tuple[Float[Array, "O"], ...]

    def __call__(self, x: Float[Array, "B H W C"]) -> Float[Array, "B F"]:
        for depth, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            x = jax.nn.relu(conv(x, kernel, FIRST_STRIDE if depth == 0 else 1) + bias)
        return x.reshape(x.shape[0], -1)


class Eyes(eqx.Module):
    """Convolutions for each of several pictures; what stands beside the pictures comes after their features."""

    each: tuple[Convolutions, ...]

    def __call__(self, seen: Seen) -> Float[Array, "B FD"]:
        return seen.beside([eye(picture) for eye, picture in zip(self.each, seen.pictures, strict=True)])


class Projection(eqx.Module):
    """A linear layer, normalised over its outputs; an actor and a critic have one each.

    It is for the features of pictures: what comes after them, as `Eyes` puts it, goes on as it is.
    """

    linear: Linear
    scale: Float[Array, "Z"]
    shift: Float[Array, "Z"]

    def __call__(self, x: Float[Array, "B FD"], tanh: bool) -> Float[Array, "B ZD"]:
        features = self.linear.weight.shape[0]
        if x.shape[1] == features:
            return self.of_pictures(x, tanh)
        return jnp.concatenate([self.of_pictures(x, tanh), x[:, features:]], axis=1)

    def of_pictures(self, x: Float[Array, "B FD"], tanh: bool) -> Float[Array, "B Z"]:
        """What is made of the features alone."""
        x = standardised(self.linear(x[:, : self.linear.weight.shape[0]])) * self.scale + self.shift
        return jnp.tanh(x) if tanh else x


def as_input(pictures: UInt8[Array, "B S H W C"]) -> Float[Array, "B H W SC"]:
    """uint8[B, S, H, W, C] -> [B, H, W, S·C]: stack and colours side by side as channels, in [0, 1]."""
    rows, stack, height, width, colours = pictures.shape
    channels = jnp.moveaxis(pictures, 1, 3).reshape(rows, height, width, stack * colours)
    return channels / jnp.asarray(255, jnp.result_type(float))


def feature_count(shape: PictureShape, filters: int, layers: int) -> int:
    """Shape of a picture, channels, layers -> numbers that the convolutions give; too small pictures are refused."""
    sides = []
    for side in (shape.height, shape.width):
        left = (side - KERNEL) // FIRST_STRIDE + 1 - (KERNEL - 1) * (layers - 1)
        if side < KERNEL or left < 1:
            raise SunriseError(
                f"pictures of {shape.height} x {shape.width} are too small for {layers} convolutions: "
                "make them larger, or lower conv_layers."
            )
        sides.append(left)
    return sides[0] * sides[1] * filters


def orthogonal_matrices(key: PRNGKeyArray, shapes: Sequence[tuple[int, int]]) -> list[Float[Array, "_ _"]]:
    """key, shapes -> matrices of these shapes with orthonormal rows or columns, whichever are fewer.

    They come from one draw for all of them: to compile a draw takes longer than all the rest.
    """
    draw = jax.random.normal(key, (sum(i * o for i, o in shapes),))
    matrices, used = [], 0
    for i, o in shapes:
        q = orthonormal(draw[used : used + i * o].reshape(max(i, o), min(i, o)))
        used += i * o
        matrices.append(q if i >= o else q.T)
    return matrices


def orthonormal(normal: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    """Orthonormal columns, uniform among all such: Gram and Schmidt's way, twice for precision, a block at a time.

    LAPACK would do it in one call. But a batch of its calls takes threads of XLA's pool and then waits for others of
    that pool, so that on two cores two batches can wait for each other for ever.
    """
    columns = normal.shape[1]
    width = next(w for w in range(min(BLOCK, columns), 0, -1) if columns % w == 0)

    def without(part: Array, found: Array) -> Array:
        """What is left of `part` beside the columns found so far; the others are still 0."""
        for _ in range(2):
            part = part - found @ (found.T @ part)
        return part

    def column(j: Array, block: Array) -> Array:
        found = jnp.where(jnp.arange(width) < j, block, 0)
        rest = without(jax.lax.dynamic_slice_in_dim(block, j, 1, 1), found)
        return jax.lax.dynamic_update_slice_in_dim(block, rest / jnp.linalg.norm(rest), j, 1)

    def blockwise(b: Array, found: Array) -> Array:
        block = without(jax.lax.dynamic_slice_in_dim(normal, b * width, width, 1), found)
        return jax.lax.dynamic_update_slice_in_dim(found, jax.lax.fori_loop(0, width, column, block), b * width, 1)

    found: Array = jax.lax.fori_loop(0, columns // width, blockwise, jnp.zeros_like(normal))
    return found


def kernel_rows(channels: int, init: KernelInit) -> int:
    """Channels -> rows of the orthogonal matrix from which a kernel of so many channels is made."""
    return channels if init == "delta" else KERNEL * KERNEL * channels


def convolutions(matrices: Sequence[Float[Array, "_ O"]], init: KernelInit) -> Convolutions:
    """A matrix for each layer -> convolutions, with ReLU's gain and biases of 0.

    A kernel is orthogonal as a whole, or has such a matrix in the middle and zeros around it (Xiao et al., 2018).
    """
    middle = KERNEL // 2
    kernels = [
        RELU_GAIN * matrix.reshape(KERNEL, KERNEL, -1, matrix.shape[1])
        if init == "orthogonal"
        else jnp.zeros((KERNEL, KERNEL, *matrix.shape)).at[middle, middle].set(RELU_GAIN * matrix)
        for matrix in matrices
    ]
    return Convolutions(tuple(kernels), tuple(jnp.zeros(matrix.shape[1]) for matrix in matrices))


def projection(matrix: Float[Array, "F Z"]) -> Projection:
    """matrix[F, Z] -> a layer with a bias of 0, and a normalisation that changes nothing yet."""
    outputs = matrix.shape[1]
    return Projection(Linear(matrix, jnp.zeros(outputs)), jnp.ones(outputs), jnp.zeros(outputs))


def unbiased_mlp(matrices: Sequence[Float[Array, "_ _"]]) -> MLP:
    """A matrix for each layer -> an MLP with these weights and biases of 0."""
    return MLP(tuple(Linear(matrix, jnp.zeros(matrix.shape[1])) for matrix in matrices))
