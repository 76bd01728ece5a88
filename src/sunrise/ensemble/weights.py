"""How much a backup counts, as a function of s: the standard deviation of the target critics' values of what follows.

The paper's `confidence` measures s in units of reward, so it is alive only where rewards have the scale its temperature
was tuned for. `relative`, `signal` and `inverse_variance` give the same weights when all values are multiplied by a
constant. Each scheme is a pure function; what it remembers from update to update is an array in the ensemble's state.
Without any disagreement every scheme that looks at it gives 1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.ensemble import EnsembleSettings, Weighting, resolve_weighting
from sunrise.ensemble.functions import Number, confidence

CONSTANT = 0.5
"""What `confidence` falls to where the critics disagree by much more than 1 / T."""
RATE = 0.01
"""Share of one update in a running mean: it looks back over a few hundred."""
LEAST_SHARE = 0.5
"""`inverse_variance` keeps at least this share of the batch in effect."""
SEARCH_STEPS = 30
SMALLEST, LARGEST = 1e-8, 1e8
"""Where `inverse_variance` looks for ξ, in units of the batch's mean variance."""

Memory: TypeAlias = Any
"""What a scheme remembers: a pytree of arrays, empty for most."""


class RunningMean(NamedTuple):
    """An exponential mean that is right from the first number on: both its parts start at 0."""

    total: Float[Array, ""]
    share: Float[Array, ""]

    def moved(self, number: Float[Array, ""]) -> "RunningMean":
        """With one number more."""
        return RunningMean(
            self.total + RATE * (number - self.total),
            self.share + RATE * (1 - self.share),
        )

    @property
    def value(self) -> Float[Array, ""]:
        """The mean; 0 before there is a number."""
        return jnp.where(self.share > 0, self.total / jnp.where(self.share > 0, self.share, 1), 0)


def nothing() -> Memory:
    """Most schemes remember nothing."""
    return ()


def no_mean() -> RunningMean:
    """A running mean of nothing yet."""
    return RunningMean(jnp.zeros(()), jnp.zeros(()))


def unmoved(memory: Memory, error: Float[Array, "N K B"]) -> Memory:
    """Most schemes learn nothing from the errors."""
    return memory


class Scheme(NamedTuple):
    """A way to weigh backups."""

    weigh: Callable[[Array, Memory, Number, PRNGKeyArray], tuple[Array, Memory]]
    """s[M, B], memory, temperature, key -> weight[M, B], memory; M is 1, or N where members are weighed apart."""
    init: Callable[[], Memory] = nothing
    learned: Callable[[Memory, Array], Memory] = unmoved
    """memory, |TD error|[N, K, B] of the update that was weighed -> memory."""
    uses_votes: bool = True
    """Whether it looks at s at all."""
    discounted: bool = True
    """Whether s is what reaches the target: times discount / γ, so 0 where the episode terminated."""


# -- the schemes -------------------------------------------------------------------------------------------------------


def confident(s: Float[Array, "M B"], memory: Memory, temperature: Number, key: PRNGKeyArray) -> tuple[Array, Memory]:
    """The paper's σ(−s T) + 0.5."""
    return confidence(s, temperature), memory


def relative(
    s: Float[Array, "M B"], memory: RunningMean, temperature: Number, key: PRNGKeyArray
) -> tuple[Array, RunningMean]:
    """σ(−T s / s_mean) + 0.5: the paper's weight, with s in units of its own slowly moving mean."""
    memory = memory.moved(s.mean())
    mean = memory.value
    return confidence(jnp.where(mean > 0, s / jnp.where(mean > 0, mean, 1), 0), temperature), memory


def signal(
    s: Float[Array, "M B"], memory: RunningMean, temperature: Number, key: PRNGKeyArray
) -> tuple[Array, RunningMean]:
    """Weight d / (d + s²), d the running mean of squared TD errors: the share of the error that is not disagreement."""
    noise, d = s**2, memory.value
    return jnp.where((memory.share > 0) & (noise > 0), d / jnp.where(noise > 0, d + noise, 1), 1), memory


def squared_errors(memory: RunningMean, error: Float[Array, "N K B"]) -> RunningMean:
    """The errors of an update are known after it: the next one is weighed by them."""
    return memory.moved(jnp.mean(error**2))


def inverse_variance(
    s: Float[Array, "M B"], memory: Memory, temperature: Number, key: PRNGKeyArray
) -> tuple[Array, Memory]:
    """1 / (s² + ξ) over its mean, ξ the smallest that keeps half of the batch in effect (Mai et al., ICLR 2022)."""
    variance = s**2
    mean = variance.mean(axis=1, keepdims=True)
    variance = jnp.where(mean > 0, variance / jnp.where(mean > 0, mean, 1), 1)

    def weights(exponent: Float[Array, "M 1"]) -> Float[Array, "M B"]:
        inverse = 1 / (variance + 10**exponent)
        return inverse / inverse.mean(axis=1, keepdims=True)

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        """The effective batch grows with ξ: halve where the smallest that suffices may be."""
        low, high = bounds
        middle = (low + high) / 2
        enough = effective_batch(weights(middle))[:, None] >= LEAST_SHARE * s.shape[1]
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    start = jnp.full_like(mean, jnp.log10(SMALLEST)), jnp.full_like(mean, jnp.log10(LARGEST))
    return weights(jax.lax.fori_loop(0, SEARCH_STEPS, halve, start)[1]), memory


def at_random(s: Float[Array, "M B"], memory: Memory, temperature: Number, key: PRNGKeyArray) -> tuple[Array, Memory]:
    """U[0.5, 1] (the paper's control)."""
    return jax.random.uniform(key, s.shape, minval=0.5, maxval=1.0), memory


def always(weight: float) -> Callable[[Array, Memory, Number, PRNGKeyArray], tuple[Array, Memory]]:
    """The same weight for every backup."""
    return lambda s, memory, temperature, key: (jnp.full_like(s, weight), memory)


SCHEMES: dict[Weighting, Scheme] = {
    "confidence": Scheme(confident, discounted=False),
    "none": Scheme(always(1.0), uses_votes=False),
    "random": Scheme(at_random, uses_votes=False),
    "constant": Scheme(always(CONSTANT), uses_votes=False),
    "relative": Scheme(relative, no_mean),
    "signal": Scheme(signal, no_mean, squared_errors),
    "inverse_variance": Scheme(inverse_variance),
}


def looks_at_disagreement(settings: EnsembleSettings) -> bool:
    """Whether the weights of an ensemble depend on what its members think."""
    return settings.ensemble_size > 1 and SCHEMES[resolve_weighting(settings)].uses_votes


def effective_batch(weight: Float[Array, "M B"]) -> Float[Array, "M"]:
    """(Σ w)² / Σ w²: how many equally weighted rows would average as much noise away."""
    return weight.sum(axis=-1) ** 2 / jnp.sum(weight**2, axis=-1)
