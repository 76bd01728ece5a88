"""The convolutions of five of RAD's encoders, forward and backward: ours, XLA's under vmap, a PyTorch loop, in turns.

An argument is the batch size, 128 without it. The last output is kept in benchmarks/results/convolution.json.
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
from sunrise.compilation import use_cache
from sunrise.experiments.speed import best_of, sgemm_peak
from sunrise.networks.convolution import conv
from sunrise.store.machine import machine, versions

MEMBERS, SIZE, CHANNELS, FILTERS, LAYERS = 5, 84, 9, 32, 4
ROUNDS, REPEATS = 4, 3

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


class Subject:
    """Five members' passes on one batch, compiled and ready to be timed."""

    def __init__(self, convolution: Convolution, rows: int) -> None:
        key, side = jax.random.key(0), (SIZE - 3) // 2 + 1 - 2 * (LAYERS - 1)
        self.arguments = (
            random_layers(key),
            jax.random.uniform(key, (rows, SIZE, SIZE, CHANNELS)),
            jax.random.normal(key, (MEMBERS, rows, side, side, FILTERS)),
        )
        self.call = jax.jit(partial(passes, convolution)).lower(*self.arguments).compile()

    def passes(self) -> Any:
        return self.call(*self.arguments)

    def gigabytes(self) -> float:
        """Everything that is alive during a call: what comes in, what goes out and what is made between."""
        sizes: Any = self.call.memory_analysis()
        total = sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        return float(total / 1e9)


def compare(rows: int) -> dict[str, Any]:
    """Milliseconds, ratios, and the largest difference from XLA's answer relative to a tensor's largest number."""
    ours, xla = Subject(conv, rows), Subject(xla_conv, rows)
    differences = jax.tree.map(
        lambda one, other: float(jnp.abs(one - other).max() / jnp.abs(other).max()), ours.passes(), xla.passes()
    )
    peer = Peer("torch_conv.py", str(MEMBERS), str(rows))
    times: dict[str, list[float]] = {"sunrise_5": [], "xla_vmap_5": [], "torch_loop_5": []}
    peaks = []
    for _ in range(ROUNDS):
        times["sunrise_5"].append(best_of(ours.passes, REPEATS))
        times["torch_loop_5"].append(peer.turn())
        peaks.append(sgemm_peak())
    times["xla_vmap_5"].append(best_of(xla.passes, 1))
    peer.process.terminate()
    best = {name: min(values) for name, values in times.items()}
    return {
        "ms": {name: 1e3 * seconds for name, seconds in best.items()},
        "gflop": gflop(rows),
        "gflop_per_s": {name: gflop(rows) / seconds for name, seconds in best.items()},
        "sgemm_peak": max(peaks),
        "times_torch": best["sunrise_5"] / best["torch_loop_5"],
        "times_torch_by_round": [a / b for a, b in zip(times["sunrise_5"], times["torch_loop_5"], strict=True)],
        "faster_than_xla_vmap": best["xla_vmap_5"] / best["sunrise_5"],
        "gigabytes": {"sunrise_5": ours.gigabytes(), "xla_vmap_5": xla.gigabytes()},
        "gigabytes_of_batch_256": Subject(conv, 256).gigabytes(),
        "largest_difference_from_xla": max(jax.tree.leaves(differences)),
        "peer_threads": peer.threads,
    }


def main() -> None:
    """Measure, print, and keep the last output."""
    use_cache()
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    result = {"rows": rows, **compare(rows), "machine": machine(), "versions": versions()}
    text = json.dumps(result, indent=2)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "convolution.json").write_text(text + "\n")
    print(text, file=sys.stdout)


if __name__ == "__main__":
    main()
