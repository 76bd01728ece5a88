"""A convolution that is fast on a CPU, also under `vmap` over members.

XLA's own is slow there: members become a grouped convolution, and the kernel's gradient is slower still. Here each
pass is a loop over a few pictures at a time, small enough to stay in the cache, with one matrix product in its body.
Other devices get XLA's convolution and its gradients. See docs/decisions/0005-convolutions.md.

Letters: G groups with pictures of their own, N kernels that see the same pictures, B pictures, h x w the kernel.
`vmap` adds to G where the pictures differ and to N where they are shared, as they are in an encoder's first layer.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

STEP_BYTES = 4 * 2**20
"""What the widest array of one step may take: about what two cores' caches hold."""


def conv(x: Float[Array, "B H W C"], kernel: Float[Array, "h w C O"], stride: int = 1) -> Float[Array, "B H2 W2 O"]:
    """Slide `kernel` over pictures, without padding; differentiable once, in reverse."""
    return _conv(x, kernel, stride)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _conv(x: Array, kernel: Array, stride: int) -> Array:
    def products(x: Array, kernel: Array) -> Array:
        y: Array = _passes(stride, x.shape[1:3], kernel.shape[:2]).forward(x[None], kernel[None, None])
        return y[0, 0]

    y: Array = lax.platform_dependent(x, kernel, cpu=products, default=partial(_plain, stride=stride))
    return y


def _conv_forward(x: Array, kernel: Array, stride: int) -> tuple[Array, tuple[Array, Array]]:
    return _conv(x, kernel, stride), (x, kernel)


def _conv_backward(stride: int, saved: tuple[Array, Array], dy: Array) -> tuple[Array, Array]:
    """The two gradients are apart, so that one nobody asks for is not computed."""
    x, kernel = saved
    passes = _passes(stride, x.shape[1:3], kernel.shape[:2])

    def input_products(kernel: Array, dy: Array) -> Array:
        return passes.input_gradient(dy[None], kernel[None])[0]

    def kernel_products(x: Array, dy: Array) -> Array:
        return passes.kernel_gradient(x[None], dy[None, None])[0, 0]

    def input_plain(kernel: Array, dy: Array) -> Array:
        dx: Array = jax.linear_transpose(lambda x: _plain(x, kernel, stride), x)(dy)[0]
        return dx

    def kernel_plain(x: Array, dy: Array) -> Array:
        gradient: Array = jax.linear_transpose(lambda kernel: _plain(x, kernel, stride), kernel)(dy)[0]
        return gradient

    return (
        lax.platform_dependent(kernel, dy, cpu=input_products, default=input_plain),
        lax.platform_dependent(x, dy, cpu=kernel_products, default=kernel_plain),
    )


_conv.defvjp(_conv_forward, _conv_backward)


def _plain(x: Array, kernel: Array, stride: int) -> Array:
    return lax.conv_general_dilated(x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


class Passes(NamedTuple):
    """The three passes of one shape of convolution, each with its own rule for `vmap`."""

    forward: Callable[[Array, Array], Array]
    """[G B H W C], [G N h w C O] -> [G N B H2 W2 O]"""
    kernel_gradient: Callable[[Array, Array], Array]
    """[G B H W C], [G N B H2 W2 O] -> [G N h w C O]"""
    input_gradient: Callable[[Array, Array], Array]
    """[G B H2 W2 O], [G h w C O] -> [G B H W C]"""


@cache
def _passes(stride: int, picture: tuple[int, int], window: tuple[int, int]) -> Passes:
    (height, width), (h, w) = picture, window
    if h > height or w > width:
        raise ValueError(f"a kernel of {h} x {w} does not fit into pictures of {height} x {width}")
    down, across = (height - h) // stride + 1, (width - w) // stride + 1

    def patches(x: Array) -> Array:
        """[b H W C] -> [b H2 W2 h·w·C]: what the kernel sees at each place."""
        rows, columns = stride * (down - 1) + 1, stride * (across - 1) + 1
        seen = [x[:, i : i + rows : stride, j : j + columns : stride] for i in range(h) for j in range(w)]
        return jnp.concatenate(seen, axis=-1)

    def columns(x: Array) -> Array:
        """[b H W C] -> [b H W2 w·C]: what one row of the kernel sees; a third of the patches for 3 x 3."""
        return jnp.concatenate([x[:, :, j : j + across] for j in range(w)], axis=-1)

    def rows(dy: Array) -> Array:
        """[b H2 W2 O] -> [b H W2 h·O]: the output that row i of the kernel gives to from each row of the picture."""
        padded = jnp.pad(dy, ((0, 0), (h - 1, h - 1), (0, 0), (0, 0)))
        return jnp.concatenate([padded[:, h - 1 - i : h - 1 - i + height] for i in range(h)], axis=-1)

    def bytes_each(channels: int, out: int, kind: jnp.dtype) -> int:
        """What one picture takes in the forward pass and in the kernel's gradient."""
        wide = height * across * (w * channels + h * out) if stride == 1 else down * across * (h * w * channels + out)
        return wide * kind.itemsize

    @custom_vmap
    def forward(x: Array, kernels: Array) -> Array:
        groups, members, *_, channels, out = kernels.shape
        size = _pictures_per_step(x.shape[1], bytes_each(channels, members * out, x.dtype))
        steps, chunks = x.shape[1] // size, x.reshape(-1, size, height, width, channels)
        order = (0, 3, 4, 2, 1, 5) if stride == 1 else (0, 2, 3, 4, 1, 5)
        weights = kernels.transpose(order).reshape(groups, -1, (h if stride == 1 else 1) * members * out)

        def step(index: Array, y: Array) -> Array:
            group, place = jnp.divmod(index, steps)
            if stride == 1:
                products = (columns(chunks[index]) @ weights[group]).reshape(size, height, across, h, members * out)
                part = sum((products[:, i : i + down, :, i] for i in range(1, h)), products[:, :down, :, 0])
            else:
                part = patches(chunks[index]) @ weights[group]
            part = part.reshape(size, down, across, members, out).transpose(3, 0, 1, 2, 4)
            return lax.dynamic_update_slice(y, part, (group * members, place * size, 0, 0, 0))

        empty = jnp.zeros((groups * members, x.shape[1], down, across, out), x.dtype)
        y: Array = lax.fori_loop(0, len(chunks), step, empty)
        return y.reshape(groups, members, *y.shape[1:])

    @forward.def_vmap
    def forward_rule(size: int, batched: list[bool], x: Array, kernels: Array) -> tuple[Array, bool]:
        if batched[0]:
            return _split(forward(_merge(x), _merge(_every(size, batched[1], kernels))), size), True
        return _members_out(forward(x, _members_in(kernels)), size), True

    @custom_vmap
    def kernel_gradient(x: Array, dy: Array) -> Array:
        (groups, members, pictures), channels, out = dy.shape[:3], x.shape[-1], dy.shape[-1]
        size = _pictures_per_step(pictures, bytes_each(channels, members * out, x.dtype))
        steps, chunks = pictures // size, x.reshape(-1, size, height, width, channels)
        # An axis of length one, as N is after the first layer, could have XLA copy all of `dy`.
        flat = dy.reshape(groups * members, pictures, down, across, out)

        def step(index: Array, total: Array) -> Array:
            group, place = jnp.divmod(index, steps)
            start = (group * members, place * size, 0, 0, 0)
            part = lax.dynamic_slice(flat, start, (members, size, down, across, out))
            part = part.transpose(1, 2, 3, 0, 4).reshape(size, down, across, members * out)
            left, right = (columns(chunks[index]), rows(part)) if stride == 1 else (patches(chunks[index]), part)
            # As matrices: XLA would write out a transpose of anything with more axes.
            left, right = left.reshape(-1, left.shape[-1]), right.reshape(-1, right.shape[-1])
            return total.at[group].add(left.T @ right)

        shape = (w, channels, h, members, out) if stride == 1 else (h, w, channels, members, out)
        order = (0, 4, 3, 1, 2, 5) if stride == 1 else (0, 4, 1, 2, 3, 5)
        columns_out = (h if stride == 1 else 1) * members * out
        zeros = jnp.zeros((groups, math.prod(shape) // columns_out, columns_out), x.dtype)
        total: Array = lax.fori_loop(0, len(chunks), step, zeros)
        return total.reshape(groups, *shape).transpose(order)

    @kernel_gradient.def_vmap
    def kernel_gradient_rule(size: int, batched: list[bool], x: Array, dy: Array) -> tuple[Array, bool]:
        if batched[0]:
            return _split(kernel_gradient(_merge(x), _merge(_every(size, batched[1], dy))), size), True
        return _members_out(kernel_gradient(x, _members_in(dy)), size), True

    @custom_vmap
    def input_gradient(dy: Array, kernels: Array) -> Array:
        (groups, pictures), channels, out = dy.shape[:2], kernels.shape[3], dy.shape[-1]
        size = _pictures_per_step(pictures, down * across * h * w * channels * dy.dtype.itemsize)
        chunks = dy.reshape(-1, size, *dy.shape[2:])
        weights = kernels.transpose(0, 4, 1, 2, 3).reshape(groups, out, h * w * channels)

        def back(part: Array, i: int, j: int) -> Array:
            """A product of one place of the kernel, put where that place reads."""
            below = height - i - stride * (down - 1) - 1
            right = width - j - stride * (across - 1) - 1
            spread = ((0, 0, 0), (i, below, stride - 1), (j, right, stride - 1), (0, 0, 0))
            return lax.pad(part, jnp.zeros((), part.dtype), spread)

        def step(index: Array, dx: Array) -> Array:
            products = chunks[index] @ weights[index // (pictures // size)]
            products = products.reshape(size, down, across, h, w, channels)
            places = [back(products[:, :, :, i, j], i, j) for i in range(h) for j in range(w)]
            moved: Array = lax.dynamic_update_index_in_dim(dx, sum(places[1:], places[0]), index, 0)
            return moved

        empty = jnp.zeros((len(chunks), size, height, width, channels), dy.dtype)
        dx: Array = lax.fori_loop(0, len(chunks), step, empty)
        return dx.reshape(groups, pictures, height, width, channels)

    @input_gradient.def_vmap
    def input_gradient_rule(size: int, batched: list[bool], dy: Array, kernels: Array) -> tuple[Array, bool]:
        dy, kernels = _every(size, batched[0], dy), _every(size, batched[1], kernels)
        return _split(input_gradient(_merge(dy), _merge(kernels)), size), True

    return Passes(forward, kernel_gradient, input_gradient)


def _pictures_per_step(pictures: int, bytes_each: int) -> int:
    """The largest divisor whose arrays fit into the cache."""
    most = max(1, STEP_BYTES // max(1, bytes_each))
    return max(size for size in range(1, min(pictures, most) + 1) if pictures % size == 0)


def _every(size: int, batched: bool, x: Array) -> Array:
    return x if batched else jnp.broadcast_to(x, (size, *x.shape))


def _merge(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])


def _split(x: Array, size: int) -> Array:
    return x.reshape(size, -1, *x.shape[1:])


def _members_in(x: Array) -> Array:
    """[A G N ...] -> [G A·N ...]"""
    x = jnp.moveaxis(x, 0, 1)
    return x.reshape(x.shape[0], -1, *x.shape[3:])


def _members_out(x: Array, size: int) -> Array:
    """[G A·N ...] -> [A G N ...]"""
    return jnp.moveaxis(x.reshape(x.shape[0], size, -1, *x.shape[2:]), 1, 0)
