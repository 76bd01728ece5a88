"""Adam in as few passes over memory as it takes: for large networks that learn from small batches."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

T = TypeVar("T")
BETA_1, BETA_2 = 0.9, 0.999
"""How much of the means of the gradient and of its square stays in a step."""


def separate(tree: T) -> T:
    """The same arrays, which XLA is not to compute together with what follows."""
    same: T = jax.lax.optimization_barrier(tree)  # type: ignore[no-untyped-call]
    return same


def adam_step(
    parameters: T,
    first: T,
    second: T,
    gradient: T,
    scale: Float[Array, ""],
    step: Int[Array, ""],
    rate: Float[Array, ""] | float,
    eps: Float[Array, ""] | float,
) -> tuple[T, T, T]:
    """Parameters, both moments, gradient, steps before this one -> parameters, both moments after it.

    Adam (Kingma & Ba, 2015) of `scale` · gradient, with the corrections of both biases folded into two numbers. It is
    bound by memory, so every array is passed over once, with one division and one root. The moments are computed where
    they are stored, and once more on the way to the parameters: to keep them in between would cost another pass.
    """
    count = step + 1
    corrected = rate / (1 - BETA_1**count)
    spread = 1 / jnp.sqrt(1 - BETA_2**count)

    def moments(first: T, second: T) -> tuple[T, T]:
        return (
            jax.tree.map(lambda m, g: BETA_1 * m + (1 - BETA_1) * (scale * g), first, gradient),
            jax.tree.map(lambda v, g: BETA_2 * v + (1 - BETA_2) * (scale * g) ** 2, second, gradient),
        )

    new: T = jax.tree.map(
        lambda p, m, v: p - corrected * m / (spread * jnp.sqrt(v) + eps),
        parameters,
        *moments(*separate((first, second))),
    )
    return new, *moments(first, second)
