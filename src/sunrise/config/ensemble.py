"""SUNRISE's own settings, and what `auto` means in them."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from sunrise.config.rules import Between, Count, Fraction, Not, NotNegative
from sunrise.errors import SunriseError, near

Weighting = Literal["confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
KNOWN_WEIGHTINGS: list[str] = [*WEIGHTINGS]
"""Ours, and those that `sunrise.ensemble.register_weighting` has added."""


@dataclass(frozen=True)
class EnsembleSettings:
    """SUNRISE's own settings."""

    ensemble_size: Count = 5
    """Number of agents N; 1 is the plain algorithm."""
    bootstrap_prob: Annotated[Fraction, Not(0, "above 0: no member would see a transition")] = 1.0
    """β: chance that a transition is shown to a member."""
    weight_temperature: Annotated[float | Literal["auto"], Between(0)] = "auto"
    """T of the weights `confidence` and `relative`; auto is 1 for relative, else 20, or 10 from pixels."""
    ucb_lambda: NotNegative = 1.0
    """λ of the exploration bonus."""
    empty_masks: Literal["forced", "kept"] = "forced"
    """A transition masked for every member is given to one of them, or kept for nobody (the authors' Rainbow)."""
    exploration: Literal["ucb", "member"] = "ucb"
    """Act with the candidate of the highest UCB, or with one random member for a whole episode."""
    weighting: Literal["auto", Weighting] | str = "auto"
    """Weight of a backup: by the paper's confidence, which depends on the scale of rewards; by relative, signal or
    inverse_variance, which do not; none is 1, constant 0.5, random U[0.5, 1]; auto is confidence for two members or
    more, none for one. Or the name of a scheme that you have registered."""
    weight_votes: Literal["own", "shared"] = "own"
    """Each critic judges its own member's next action (the authors' code), or all judge the same one (the paper)."""
    weight_normaliser: Literal["none", "mean"] = "none"
    """Weights as they are (the paper), or divided by their mean over the batch, so that they change no step size."""
    terminal_weight: Literal["same", "one"] = "same"
    """A terminal transition is weighted like others, by a next state its target does not use (paper, authors), or 1."""


def resolve_weighting(settings: EnsembleSettings) -> str:
    """`auto` is confidence for two members or more and none for one; a name that nobody has registered is refused."""
    name = settings.weighting
    if name not in ("auto", *KNOWN_WEIGHTINGS):
        known = ", ".join(KNOWN_WEIGHTINGS)
        raise SunriseError(
            f"weighting is {name!r}, but must be one of auto, {known}.{near(name, KNOWN_WEIGHTINGS, count=1)} "
            "A scheme of your own is made known by sunrise.ensemble.register_weighting before it is used."
        )
    if name != "auto":
        return name
    return "confidence" if settings.ensemble_size > 1 else "none"


def resolve_temperature(settings: EnsembleSettings, pixels: bool = False) -> float:
    """`auto` is 1 where disagreement is measured in units of its own mean, else 20 or, from pixels, 10."""
    if settings.weight_temperature != "auto":
        return settings.weight_temperature
    if resolve_weighting(settings) == "relative":
        return 1.0
    return 10.0 if pixels else 20.0
