"""How much a backup counts, as a function of s: the standard deviation of the target critics' values of what follows.

The paper's `confidence` measures s in units of reward, so it is alive only where rewards have the scale its temperature
was tuned for. `relative`, `signal` and `inverse_variance` give the same weights when all values are multiplied by a
constant. Each scheme is a pure function; what it remembers from update to update is an array in the ensemble's state,
and is saved with it. Without any disagreement every scheme of ours that looks at it gives 1.

Axes: V voters, M = 1 weight for all members or N where they are weighed apart, B rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.ensemble import KNOWN_WEIGHTINGS, WEIGHTINGS, EnsembleSettings, resolve_weighting
from sunrise.ensemble.functions import Number, confidence
from sunrise.ensemble.members import Memory
from sunrise.errors import SunriseError
from sunrise.types import Batch

CONSTANT = 0.5
"""What `confidence` falls to where the critics disagree by much more than 1 / T."""
RATE = 0.01
"""Share of one update in a running mean: it looks back over a few hundred."""
LEAST_SHARE = 0.5
"""`inverse_variance` keeps at least this share of the batch in effect."""
SEARCH_STEPS = 30
SMALLEST, LARGEST = 1e-8, 1e8
"""Where `inverse_variance` looks for ξ, in units of the batch's mean variance."""


class Evidence(NamedTuple):
    """What a scheme may look at to weigh the backups of a batch."""

    spread: Float[Array, "M B"]
    """s: the standard deviation of `votes`; 0 for an agent alone, and as `Scheme.discounted` says."""
    votes: Float[Array, "V M B"]
    """What every target critic thinks of what follows."""
    batch: Batch
    temperature: Number
    """The setting `weight_temperature`."""


class RunningMean(NamedTuple):
    """An exponential mean that is right from the first number on: both its parts start at 0."""

    total: Float[Array, ""]
    share: Float[Array, ""]

    def updated(self, number: Float[Array, ""]) -> "RunningMean":
        """The mean with one number more in it."""
        return RunningMean(
            self.total + RATE * (number - self.total),
            self.share + RATE * (1 - self.share),
        )

    @property
    def value(self) -> Float[Array, ""]:
        """The mean; 0 before there is a number."""
        return jnp.where(self.share > 0, self.total / jnp.where(self.share > 0, self.share, 1), 0)


def no_memory() -> Memory:
    """Most schemes remember nothing."""
    return ()


def new_running_mean() -> RunningMean:
    """A running mean of nothing yet: the first memory of a scheme that keeps one."""
    return RunningMean(jnp.zeros(()), jnp.zeros(()))


def unchanged_by_errors(memory: Memory, error: Float[Array, "N K B"]) -> Memory:
    """Most schemes learn nothing from the errors."""
    return memory


class Scheme(NamedTuple):
    """A way to weigh backups."""

    weigh: Callable[[Evidence, Memory, PRNGKeyArray], tuple[Array, Memory]]
    """evidence, memory, key -> weight[M, B], memory."""
    init: Callable[[], Memory] = no_memory
    """-> the first memory: a pytree of arrays, whose shapes stay."""
    learned: Callable[[Memory, Array], Memory] = unchanged_by_errors
    """memory, |TD error|[N, K, B] of the update that was weighed -> memory."""
    uses_votes: bool = True
    """Whether it looks at s at all."""
    discounted: bool = True
    """Whether s is what reaches the target: times discount / γ, so 0 where the episode terminated."""


# -- the schemes -------------------------------------------------------------------------------------------------------


def confident(evidence: Evidence, memory: Memory, key: PRNGKeyArray) -> tuple[Array, Memory]:
    """The paper's σ(−s T) + 0.5."""
    return confidence(evidence.spread, evidence.temperature), memory


def relative(evidence: Evidence, memory: RunningMean, key: PRNGKeyArray) -> tuple[Array, RunningMean]:
    """σ(−T s / s_mean) + 0.5: the paper's weight, with s in units of its own slowly moving mean."""
    s = evidence.spread
    memory = memory.updated(s.mean())
    mean = memory.value
    return confidence(jnp.where(mean > 0, s / jnp.where(mean > 0, mean, 1), 0), evidence.temperature), memory


def signal(evidence: Evidence, memory: RunningMean, key: PRNGKeyArray) -> tuple[Array, RunningMean]:
    """Weight d / (d + s²), d the running mean of squared TD errors: the share of the error that is not disagreement."""
    noise, d = evidence.spread**2, memory.value
    return jnp.where((memory.share > 0) & (noise > 0), d / jnp.where(noise > 0, d + noise, 1), 1), memory


def squared_errors(memory: RunningMean, error: Float[Array, "N K B"]) -> RunningMean:
    """The errors of an update are known after it: the next one is weighed by them."""
    return memory.updated(jnp.mean(error**2))


def inverse_variance(evidence: Evidence, memory: Memory, key: PRNGKeyArray) -> tuple[Array, Memory]:
    """1 / (s² + ξ) over its mean, ξ the smallest that keeps half of the batch in effect (Mai et al., ICLR 2022)."""
    variance = evidence.spread**2
    mean = variance.mean(axis=1, keepdims=True)
    variance = jnp.where(mean > 0, variance / jnp.where(mean > 0, mean, 1), 1)

    def weights(exponent: Float[Array, "M 1"]) -> Float[Array, "M B"]:
        inverse = 1 / (variance + 10**exponent)
        return inverse / inverse.mean(axis=1, keepdims=True)

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        """The effective batch grows with ξ: halve where the smallest that suffices may be."""
        low, high = bounds
        middle = (low + high) / 2
        enough = effective_batch(weights(middle))[:, None] >= LEAST_SHARE * variance.shape[1]
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    start = jnp.full_like(mean, jnp.log10(SMALLEST)), jnp.full_like(mean, jnp.log10(LARGEST))
    return weights(jax.lax.fori_loop(0, SEARCH_STEPS, halve, start)[1]), memory


def at_random(evidence: Evidence, memory: Memory, key: PRNGKeyArray) -> tuple[Array, Memory]:
    """U[0.5, 1] (the paper's control)."""
    return jax.random.uniform(key, evidence.spread.shape, minval=0.5, maxval=1.0), memory


def always(weight: float) -> Callable[[Evidence, Memory, PRNGKeyArray], tuple[Array, Memory]]:
    """The same weight for every backup."""
    return lambda evidence, memory, key: (jnp.full_like(evidence.spread, weight), memory)


SCHEMES: dict[str, Scheme] = {
    "confidence": Scheme(confident, discounted=False),
    "none": Scheme(always(1.0), uses_votes=False),
    "random": Scheme(at_random, uses_votes=False),
    "constant": Scheme(always(CONSTANT), uses_votes=False),
    "relative": Scheme(relative, new_running_mean),
    "signal": Scheme(signal, new_running_mean, squared_errors),
    "inverse_variance": Scheme(inverse_variance),
}


def register_weighting(name: str, scheme: Scheme) -> None:
    """Make a scheme of your own a value of the setting `weighting`, in this process.

    A run keeps the name alone. Who resumes or evaluates it registers the scheme under that name first.
    """
    if name == "auto" or name in WEIGHTINGS:
        raise SunriseError(f"{name!r} is a weighting of our own: give yours another name.")
    SCHEMES[name] = scheme
    if name not in KNOWN_WEIGHTINGS:
        KNOWN_WEIGHTINGS.append(name)


def scheme_of(name: str) -> Scheme:
    """A scheme by the name that `resolve_weighting` found."""
    return SCHEMES[name]


def looks_at_disagreement(settings: EnsembleSettings) -> bool:
    """Whether the weights of an ensemble depend on what its members think."""
    return settings.ensemble_size > 1 and scheme_of(resolve_weighting(settings)).uses_votes


# -- what is logged of weights -----------------------------------------------------------------------------------------


def effective_batch(weight: Float[Array, "M B"]) -> Float[Array, "M"]:
    """weight[M, B] -> (Σ w)² / Σ w²: how many equally weighted rows would average as much noise away."""
    return weight.sum(axis=-1) ** 2 / jnp.sum(weight**2, axis=-1)


def summary(std: Float[Array, "M B"], weight: Float[Array, "M B"]) -> dict[str, Float[Array, ""]]:
    """std[M, B] of all votes, weight[M, B] -> what is always logged of them, by name."""
    found = quantiles(disagreement=std, weight=weight)
    return {**found, "effective_batch": effective_batch(weight).mean()}


def quantiles(**values: Float[Array, "M B"]) -> dict[str, Float[Array, ""]]:
    """Mean, 5 %, 50 % and 95 % of arrays of equal size, by one sort for all of them."""
    ordered = jnp.sort(jnp.stack([array.ravel() for array in values.values()]), axis=1)
    last = ordered.shape[1] - 1
    found: dict[str, Array] = {}
    for row, (name, array) in enumerate(values.items()):
        found[f"{name}_mean"] = array.mean()
        found |= {f"{name}_p{percent:02}": ordered[row, round(percent / 100 * last)] for percent in (5, 50, 95)}
    return found
