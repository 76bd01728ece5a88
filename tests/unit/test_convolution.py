"""Our convolution equals NumPy's sums in value and gradient, alone and under every `vmap`, and costs what it should."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sunrise.networks import convolution
from sunrise.networks.convolution import conv

N, ROWS, CHANNELS, OUT = 3, 6, 2, 4
BYTES_OF_NUMBER = 8


@pytest.fixture
def double() -> Iterator[None]:
    """Sums in another order differ in single precision."""
    with jax.enable_x64(True):
        yield


def numpy_conv(x: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], (1, 2))[:, ::stride, ::stride]
    return np.asarray(np.einsum("bpqchw,hwco->bpqo", windows, kernel))


def numpy_gradients(x: np.ndarray, kernel: np.ndarray, stride: int, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h, w = kernel.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (h, w), (1, 2))[:, ::stride, ::stride]
    dx = np.zeros_like(x)
    for p in range(dy.shape[1]):
        for q in range(dy.shape[2]):
            seen = np.einsum("bo,hwco->bhwc", dy[:, p, q], kernel)
            dx[:, p * stride : p * stride + h, q * stride : q * stride + w] += seen
    return dx, np.einsum("bpqchw,bpqo->hwco", windows, dy)


def ours(mapped: Callable[..., Any], x: np.ndarray, kernel: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, ...]:
    """Value, gradient of the pictures and gradient of the kernel, compiled together."""

    def passes(x: jax.Array, kernel: jax.Array, dy: jax.Array) -> tuple[jax.Array, ...]:
        y, pull = jax.vjp(mapped, x, kernel)
        return y, *pull(dy)

    return tuple(np.asarray(part) for part in jax.jit(passes)(x, kernel, dy))


def expected(x: np.ndarray, kernel: np.ndarray, stride: int, dy: np.ndarray) -> tuple[np.ndarray, ...]:
    return numpy_conv(x, kernel, stride), *numpy_gradients(x, kernel, stride, dy)


def noise(picture: tuple[int, int], window: tuple[int, int], stride: int, lead: tuple[int, ...] = ()) -> Any:
    """Pictures, a kernel and a cotangent, each with the leading axes `lead`."""
    rng = np.random.default_rng(0)
    out = [(size - side) // stride + 1 for size, side in zip(picture, window, strict=True)]
    shapes = (ROWS, *picture, CHANNELS), (*window, CHANNELS, OUT), (ROWS, *out, OUT)
    return [rng.standard_normal((*lead, *shape)) for shape in shapes]


def assert_close(found: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...], tolerance: float = 1e-12) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_a_picture_worked_out_by_hand() -> None:
    x = jnp.arange(9.0).reshape(1, 3, 3, 1)
    kernel = jnp.asarray([[1.0, 10.0], [100.0, 1000.0]]).reshape(2, 2, 1, 1)
    # the upper left window is 0 1 / 3 4: 0 + 10 + 300 + 4000
    assert conv(x, kernel).ravel().tolist() == [4310.0, 5421.0, 7643.0, 8754.0]
    assert conv(x, kernel, 2).ravel().tolist() == [4310.0]


@pytest.mark.parametrize(
    ("picture", "window", "stride"),
    [
        ((7, 6), (3, 3), 1),
        ((8, 9), (3, 3), 2),
        ((9, 8), (3, 3), 2),
        ((5, 7), (1, 1), 1),
        ((6, 5), (2, 3), 1),
        ((6, 7), (2, 2), 3),
        ((6, 5), (5, 5), 1),
        ((11, 10), (5, 5), 5),
        ((5, 8), (1, 2), 2),
    ],
)
def test_value_and_gradients_are_numpy_s(
    double: None, picture: tuple[int, int], window: tuple[int, int], stride: int
) -> None:
    x, kernel, dy = noise(picture, window, stride)
    assert_close(ours(lambda x, kernel: conv(x, kernel, stride), x, kernel, dy), expected(x, kernel, stride, dy))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pictures_per_step", [1, 4, 100])
@pytest.mark.parametrize("mapped", ["kernels", "pictures", "both"])
def test_members_by_vmap_are_a_loop_over_members(
    double: None, monkeypatch: pytest.MonkeyPatch, mapped: str, pictures_per_step: int, stride: int
) -> None:
    picture, window = (7, 8), (3, 3)
    wide = 7 * 6 * 3 * (CHANNELS + OUT) * BYTES_OF_NUMBER if stride == 1 else 3 * 3 * (9 * CHANNELS + OUT) * 8
    monkeypatch.setattr(convolution, "STEP_BYTES", pictures_per_step * wide)
    x, kernel, dy = noise(picture, window, stride, (N,))
    if mapped == "kernels":
        x = x[0]
    if mapped == "pictures":
        kernel = kernel[0]
    axes = (None if mapped == "kernels" else 0, None if mapped == "pictures" else 0)
    y, dx, dk = ours(jax.vmap(lambda x, kernel: conv(x, kernel, stride), axes), x, kernel, dy)
    members = [
        expected(x if mapped == "kernels" else x[i], kernel if mapped == "pictures" else kernel[i], stride, dy[i])
        for i in range(N)
    ]
    wanted_y, wanted_dx, wanted_dk = (np.stack(parts) for parts in zip(*members, strict=True))
    wanted_dx = wanted_dx.sum(0) if mapped == "kernels" else wanted_dx
    wanted_dk = wanted_dk.sum(0) if mapped == "pictures" else wanted_dk
    assert_close((y, dx, dk), (wanted_y, wanted_dx, wanted_dk))


@pytest.mark.parametrize("members_first", [True, False])
def test_views_and_members_nest(double: None, members_first: bool) -> None:
    """Two views of the pictures, N kernels that see both: as DrQ does it."""
    views, kernels, dy = noise((5, 6), (3, 3), 1, (2 * N,))
    views, kernels, dy = views[:2], kernels[:N], dy.reshape(N, 2, *dy.shape[1:])
    over_views = jax.vmap(conv, (0, None))
    over_members = jax.vmap(conv, (None, 0))
    if members_first:
        found = ours(jax.vmap(over_views, (None, 0)), views, kernels, dy)
    else:
        found = ours(jax.vmap(over_members, (0, None), out_axes=1), views, kernels, dy)
    parts = [[expected(views[v], kernels[i], 1, dy[i, v]) for v in range(2)] for i in range(N)]
    y, dx, dk = (np.stack([[part[k] for part in row] for row in parts]) for k in range(3))
    assert_close(found, (y, dx.sum(0), dk.sum(1)))


def test_single_precision_is_kept_to_its_rounding() -> None:
    x, kernel, dy = (part.astype(np.float32) for part in noise((7, 6), (3, 3), 1))
    found = ours(conv, x, kernel, dy)
    assert {part.dtype for part in found} == {np.dtype(np.float32)}
    assert_close(found, expected(x, kernel, 1, dy), 1e-4)


def test_other_devices_get_xla_s_convolution() -> None:
    def passes(x: jax.Array, kernel: jax.Array) -> Any:
        return jax.value_and_grad(lambda *both: jax.vmap(conv, (None, 0))(*both).sum(), (0, 1))(x, kernel)

    traced = jax.jit(passes).trace(jnp.ones((ROWS, 5, 5, CHANNELS)), jnp.ones((N, 3, 3, CHANNELS, OUT)))
    convolutions = {
        platform: traced.lower(lowering_platforms=(platform,)).as_text().count("stablehlo.convolution")
        for platform in ("cpu", "cuda", "tpu")
    }
    assert convolutions == {"cpu": 0, "cuda": 3, "tpu": 3}


@pytest.mark.parametrize("stride", [1, 2])
def test_other_devices_gradients_are_numpy_s(double: None, monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
    monkeypatch.setattr(lax, "platform_dependent", lambda *arguments, cpu, default: default(*arguments))
    x, kernel, dy = noise((6, 7), (3, 3), stride)
    assert_close(ours(lambda x, kernel: conv(x, kernel, stride), x, kernel, dy), expected(x, kernel, stride, dy))


def loops(function: Callable[..., Any], *arguments: Any) -> int:
    """How many loops over pictures are left once XLA has removed what nobody reads."""
    return str(jax.jit(function).lower(*arguments).compile().as_text()).count(" while(")


def test_a_gradient_nobody_asks_for_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "STEP_BYTES", 1)
    x, kernel, dy = (jnp.asarray(part, jnp.float32) for part in noise((5, 6), (3, 3), 2))

    def gradients(x: jax.Array, kernel: jax.Array, dy: jax.Array) -> Any:
        return jax.vjp(lambda x, kernel: conv(x, kernel, 2), x, kernel)[1](dy)

    assert loops(gradients, x, kernel, dy) == 2
    assert loops(lambda *three: gradients(*three)[1], x, kernel, dy) == 1


def test_shared_pictures_are_not_copied_for_each_member() -> None:
    x, kernel, dy = noise((5, 7), (3, 3), 2, (N,))

    def gradient(x: jax.Array, kernel: jax.Array, dy: jax.Array) -> jax.Array:
        return jax.vjp(lambda kernel: conv(x, kernel, 2), kernel)[1](dy)[0]  # type: ignore[no-any-return]

    text = jax.jit(jax.vmap(gradient, (None, 0, 0))).lower(x[0], kernel, dy).as_text()
    assert f"tensor<1x{ROWS}x5x7x{CHANNELS}x" in text
    assert f"{N}x{ROWS}x5x7x{CHANNELS}x" not in text


@pytest.mark.parametrize(
    ("pictures", "bytes_each", "size"), [(12, 30, 3), (12, 25, 4), (7, 30, 1), (4, 1, 4), (4, 999, 1)]
)
def test_a_step_takes_the_largest_divisor_that_fits(
    monkeypatch: pytest.MonkeyPatch, pictures: int, bytes_each: int, size: int
) -> None:
    monkeypatch.setattr(convolution, "STEP_BYTES", 100)
    assert convolution._pictures_per_step(pictures, bytes_each) == size


def test_a_kernel_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"3 x 5 does not fit into pictures of 4 x 4"):
        conv(jnp.zeros((1, 4, 4, 1)), jnp.zeros((3, 5, 1, 1)))
