"""The convolutions of five of RAD's encoders, forward and backward: ours, XLA's under vmap, a PyTorch loop, in turns.

It keeps its last output in benchmarks/results/convolution.json.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from run import HERE, Peer
from sunrise.bench import best_of, sgemm_peak
from sunrise.compilation import use_cache
from sunrise.convolution import conv
from sunrise.record import machine, versions

MEMBERS, SIZE, CHANNELS, FILTERS, LAYERS = 5, 84, 9, 32, 4
ROUNDS, SLOW_ROUNDS = 5, 1
LARGE, LARGE_ROWS = 256, 128

Layer = tuple[Float[Array, "N h w C O"], Float[Array, "N O"]]
Convolution = Callable[[Array, Array, int], Array]


def xla_conv(x: Array, kernel: Array, stride: int) -> Array:
    """XLA's convolution; under vmap a grouped one."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def encode(convolution: Convolution, layers: list[Layer], pictures: Array) -> Array:
    """One member's features."""
    x = pictures
    for depth, (kernel, bias) in enumerate(layers):
        x = jax.nn.relu(convolution(x, kernel, 1 if depth else 2) + bias)
    return x


def passes(convolution: Convolution, layers: list[Layer], pictures: Array, cotangent: Array) -> tuple[Any, Array]:
    """Forward and backward for every member; the pictures are shared and need no gradient."""

    def one(layers: list[Layer], cotangent: Array) -> tuple[Any, Array]:
        features, pull = jax.vjp(lambda layers: encode(convolution, layers, pictures), layers)
        return pull(cotangent)[0], features

    return jax.vmap(one)(layers, cotangent)


def random_layers(key: Array) -> list[Layer]:
    """Kernels of He's size, so that features neither vanish nor grow."""
    sizes = [CHANNELS] + [FILTERS] * LAYERS
    return [
        (
            jax.random.normal(jax.random.fold_in(key, depth), (MEMBERS, 3, 3, sizes[depth], FILTERS))
            * (2 / (9 * sizes[depth])) ** 0.5,
            jnp.zeros((MEMBERS, FILTERS)),
        )
        for depth in range(LAYERS)
    ]


def gflop(rows: int) -> float:
    """Multiply-adds, counted as two: forward, the kernels' gradients, and the inputs' but for the first layer."""
    side, total = SIZE, 0
    for depth in range(LAYERS):
        side = side - 2 if depth else (side - 3) // 2 + 1
        products = 2 * rows * MEMBERS * side**2 * 9 * (FILTERS if depth else CHANNELS) * FILTERS
        total += products * (3 if depth else 2)
    return total / 1e9


def compare(rows: int) -> dict[str, Any]:
    """One batch size: milliseconds, ratios, and the largest difference from XLA's answer."""
    key = jax.random.key(0)
    side = (SIZE - 3) // 2 + 1 - 2 * (LAYERS - 1)
    layers, pictures = random_layers(key), jax.random.uniform(key, (rows, SIZE, SIZE, CHANNELS))
    cotangent = jax.random.normal(key, (MEMBERS, rows, side, side, FILTERS))
    compiled = {
        name: jax.jit(partial(passes, function)).lower(layers, pictures, cotangent).compile()
        for name, function in (("sunrise_5", conv), ("xla_vmap_5", xla_conv))
    }
    subjects = {name: partial(call, layers, pictures, cotangent) for name, call in compiled.items()}
    differences = jax.tree.map(
        lambda ours, theirs: float(jnp.abs(ours - theirs).max() / jnp.abs(theirs).max()),
        *(subject() for subject in subjects.values()),
    )
    peer = Peer("torch_conv.py", str(MEMBERS), str(rows))
    times: dict[str, list[float]] = {"sunrise_5": [], "xla_vmap_5": [], "torch_loop_5": []}
    for turn in range(ROUNDS):
        times["sunrise_5"].append(best_of(subjects["sunrise_5"], 2))
        times["torch_loop_5"].append(peer.turn())
        if turn < SLOW_ROUNDS:
            times["xla_vmap_5"].append(best_of(subjects["xla_vmap_5"], 2))
    peer.process.terminate()
    best = {name: min(values) for name, values in times.items()}
    memory = {name: call.memory_analysis() for name, call in compiled.items()}
    return {
        "ms": {name: 1e3 * seconds for name, seconds in best.items()},
        "gflop": gflop(rows),
        "gflop_per_s": {name: gflop(rows) / seconds for name, seconds in best.items()},
        "times_torch": best["sunrise_5"] / best["torch_loop_5"],
        "faster_than_xla_vmap": best["xla_vmap_5"] / best["sunrise_5"],
        "temporary_gb": {name: sizes.temp_size_in_bytes / 1e9 for name, sizes in memory.items()},
        "largest_relative_difference": max(jax.tree.leaves(differences)),
        "peer_threads": peer.threads,
        "sgemm_peak": sgemm_peak(),
    }


def main() -> None:
    """Measure, print, and keep the last output."""
    use_cache()
    result = {"batch": {"128": compare(128)}, "machine": machine(), "versions": versions()}
    text = json.dumps(result, indent=2)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "convolution.json").write_text(text + "\n")
    print(text, file=sys.stdout)


if __name__ == "__main__":
    main()
