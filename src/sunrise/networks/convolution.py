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
"""What the arrays of one step may take: about the best of what was tried, which were 2, 4 and 8 MB."""


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


class Form(NamedTuple):
    """A convolution as one matrix product, `fold(expand(x) @ matrix)`, where `matrix` holds the kernel's numbers."""

    expand: Callable[[Array], Array]
    """[b H W C] -> [b . . K]"""
    fold: Callable[[Array], Array]
    """[b . . L] -> [b H2 W2 O]"""
    unfold: Callable[[Array], Array]
    """[b H2 W2 O] -> [b . . L], the transpose of `fold`: so the matrix's gradient is expand(x)ᵀ unfold(dy)."""
    order: tuple[int, ...]
    """The axes of [G N h w C O] as the matrix has them."""
    inner: int
    """How many of them, after G, are summed over."""
    places: int
    """How many rows of the product a picture makes."""


def _form(stride: int, picture: tuple[int, int], window: tuple[int, int]) -> Form:
    """With stride 1 columns are shifted in the picture and rows in the output: for 3 x 3 a third of the patches' size.

    With a larger stride that would compute rows nobody reads, and the patches are smaller anyway.
    """
    (height, width), (h, w) = picture, window
    down, across = (height - h) // stride + 1, (width - w) // stride + 1

    def patches(x: Array) -> Array:
        tall, wide = stride * (down - 1) + 1, stride * (across - 1) + 1
        seen = [x[:, i : i + tall : stride, j : j + wide : stride] for i in range(h) for j in range(w)]
        return jnp.concatenate(seen, axis=-1)

    def columns(x: Array) -> Array:
        return jnp.concatenate([x[:, :, j : j + across] for j in range(w)], axis=-1)

    def sum_rows(products: Array) -> Array:
        parts = jnp.split(products, h, axis=-1)
        return sum((part[:, i : i + down] for i, part in enumerate(parts[1:], 1)), parts[0][:, :down])

    def shift_rows(dy: Array) -> Array:
        padded = jnp.pad(dy, ((0, 0), (h - 1, h - 1), (0, 0), (0, 0)))
        return jnp.concatenate([padded[:, h - 1 - i : h - 1 - i + height] for i in range(h)], axis=-1)

    if stride == 1:
        return Form(columns, sum_rows, shift_rows, (0, 3, 4, 2, 1, 5), 2, height * across)
    return Form(patches, lambda y: y, lambda dy: dy, (0, 2, 3, 4, 1, 5), 3, down * across)


@cache
def _passes(stride: int, picture: tuple[int, int], window: tuple[int, int]) -> Passes:
    (height, width), (h, w) = picture, window
    if h > height or w > width:
        raise ValueError(f"a kernel of {h} x {w} does not fit into pictures of {height} x {width}")
    down, across = (height - h) // stride + 1, (width - w) // stride + 1
    form = _form(stride, picture, window)

    def matrix_shape(kernels: tuple[int, ...]) -> tuple[int, ...]:
        groups, *axes = (kernels[axis] for axis in form.order)
        return groups, math.prod(axes[: form.inner]), math.prod(axes[form.inner :])

    def few(x: Array, matrices: tuple[int, ...]) -> Array:
        """[G B ...] -> [steps b ...]"""
        size = _pictures_per_step(x.shape[1], form.places * sum(matrices[1:]) * x.dtype.itemsize)
        return x.reshape(-1, size, *x.shape[2:])

    @custom_vmap
    def forward(x: Array, kernels: Array) -> Array:
        groups, members, *_, out = kernels.shape
        matrices = kernels.transpose(form.order).reshape(matrix_shape(kernels.shape))
        chunks = few(x, matrices.shape)
        size, steps = chunks.shape[1], len(chunks) // groups

        def step(index: Array, y: Array) -> Array:
            group, place = jnp.divmod(index, steps)
            part = form.fold(form.expand(chunks[index]) @ matrices[group])
            part = part.reshape(size, down, across, members, out).transpose(3, 0, 1, 2, 4)
            return lax.dynamic_update_slice(y, part, (group * members, place * size, 0, 0, 0))

        empty = jnp.zeros((groups * members, x.shape[1], down, across, out), x.dtype)
        y: Array = lax.fori_loop(0, len(chunks), step, empty)
        return y.reshape(groups, members, *y.shape[1:])

    @custom_vmap
    def kernel_gradient(x: Array, dy: Array) -> Array:
        (groups, members, pictures), out = dy.shape[:3], dy.shape[-1]
        shape = (groups, members, h, w, x.shape[-1], out)
        chunks = few(x, matrix_shape(shape))
        size, steps = chunks.shape[1], len(chunks) // groups
        # An axis of length one, as N is after the first layer, could have XLA copy all of `dy`.
        flat = dy.reshape(groups * members, pictures, down, across, out)

        def step(index: Array, total: Array) -> Array:
            group, place = jnp.divmod(index, steps)
            start = (group * members, place * size, 0, 0, 0)
            part = lax.dynamic_slice(flat, start, (members, size, down, across, out))
            part = part.transpose(1, 2, 3, 0, 4).reshape(size, down, across, members * out)
            left, right = form.expand(chunks[index]), form.unfold(part)
            # As matrices: XLA would write out a transpose of anything with more axes.
            return total.at[group].add(left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1]))

        total: Array = lax.fori_loop(0, len(chunks), step, jnp.zeros(matrix_shape(shape), x.dtype))
        back = sorted(range(len(shape)), key=form.order.__getitem__)
        return total.reshape([shape[axis] for axis in form.order]).transpose(back)

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

    forward.def_vmap(_more_groups_or_members(forward))
    kernel_gradient.def_vmap(_more_groups_or_members(kernel_gradient))
    input_gradient.def_vmap(_more_groups(input_gradient))
    return Passes(forward, kernel_gradient, input_gradient)


def _pictures_per_step(pictures: int, bytes_each: int) -> int:
    """The largest divisor whose arrays fit into the cache."""
    most = max(1, STEP_BYTES // max(1, bytes_each))
    return max(size for size in range(1, min(pictures, most) + 1) if pictures % size == 0)


def _more_groups(two_arrays: Callable[[Array, Array], Array]) -> Callable[..., tuple[Array, bool]]:
    """The rule for `vmap` where each mapped copy has pictures of its own: [A G ...] -> [A·G ...] and back."""

    def rule(size: int, batched: list[bool], *arrays: Array) -> tuple[Array, bool]:
        every = [x if own else jnp.broadcast_to(x, (size, *x.shape)) for own, x in zip(batched, arrays, strict=True)]
        first, second = (x.reshape(-1, *x.shape[2:]) for x in every)
        result = two_arrays(first, second)
        return result.reshape(size, -1, *result.shape[1:]), True

    return rule


def _more_groups_or_members(two_arrays: Callable[[Array, Array], Array]) -> Callable[..., tuple[Array, bool]]:
    """The same, but copies that share their pictures become members: [A G N ...] -> [G A·N ...] and back."""

    def rule(size: int, batched: list[bool], x: Array, other: Array) -> tuple[Array, bool]:
        if batched[0]:
            return _more_groups(two_arrays)(size, batched, x, other)
        joined = jnp.moveaxis(other, 0, 1)
        result = two_arrays(x, joined.reshape(joined.shape[0], -1, *joined.shape[3:]))
        return jnp.moveaxis(result.reshape(result.shape[0], size, -1, *result.shape[2:]), 1, 0), True

    return rule
