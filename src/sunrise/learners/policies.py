"""Policies that squash a Gaussian into [-1, 1] by tanh, and what their entropy weight starts from and aims at."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.errors import SunriseError


def entropy_goal(target_entropy: str | float, action_dim: int) -> float:
    """`target_entropy`, A -> the entropy that the tuning of α aims at."""
    text = str(target_entropy)
    try:
        if text.startswith("auto"):
            return -float(action_dim) * (1.0 if text == "auto" else float(text.removeprefix("auto_")))
        return float(text)
    except ValueError:
        raise SunriseError(
            f"target_entropy is {target_entropy!r}, but must be a number, `auto`, or like `auto_0.5`."
        ) from None


def initial_alpha(ent_coef: str | float) -> tuple[float, bool]:
    """`ent_coef` -> the first entropy weight α, and whether it is tuned."""
    text = str(ent_coef)
    tuned = text.startswith("auto")
    try:
        start = 1.0 if text == "auto" else float(text.removeprefix("auto_"))
    except ValueError:
        start = math.nan
    if not (0 < start < math.inf or (start == 0 and not tuned)):
        raise SunriseError(f"ent_coef is {ent_coef!r}, but must be 0 or more, `auto`, or like `auto_0.1`.")
    return start, tuned


def bounded_by_tanh(log_std: Float[Array, "B A"], low: float, high: float) -> Float[Array, "B A"]:
    """[B, A] -> [B, A] between `low` and `high`, by a tanh and not by a cut: its gradient is nowhere 0."""
    return low + 0.5 * (high - low) * (jnp.tanh(log_std) + 1)


def squash(
    mean: Float[Array, "B A"], log_std: Float[Array, "B A"], key: PRNGKeyArray, exact: bool = False
) -> tuple[Array, Array]:
    """mean[B, A], log_std[B, A], key -> a sample of tanh(N(mean, std))[B, A] and its log-probability[B].

    The latter is `exact`, or has 1e-6 beside the slope of tanh, as in most published code.
    """
    noise = jax.random.normal(key, mean.shape)
    raw = mean + jnp.exp(log_std) * noise
    action = jnp.tanh(raw)
    gaussian = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    # log(1 − tanh²(x)) = 2 (log 2 − x − log(1 + exp(−2x))), which does not lose its digits where tanh is flat.
    slope = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw)) if exact else jnp.log(1 - action**2 + 1e-6)
    return action, jnp.sum(gaussian - slope, axis=-1)
