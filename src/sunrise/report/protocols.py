"""How a run's evaluations become its score. Each way has its name, and no column has scores of two ways."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from sunrise.errors import SunriseError
from sunrise.report.results import Run

Way = Literal["last", "mean-last", "best", "area", "at"]


class Protocol(NamedTuple):
    """A way from evaluations to one score."""

    way: Way
    label: str
    number: int = 0
    """Evaluations of a mean, or simulator steps of a mark."""

    def score(self, run: Run) -> float:
        """The score of a run; NaN where it has not the evaluations for one."""
        values, steps = run.evaluations["mean_return"], run.evaluations["env_steps"]
        known = np.isfinite(values)  # an evaluation may have ended no episode
        values, steps = values[known], steps[known]
        if self.way == "at":
            reached = steps.size and steps[-1] >= self.number and steps[0] <= self.number
            return float(values[steps <= self.number][-1]) if reached else math.nan
        if values.size < max(self.number, 1):
            return math.nan
        if self.way in ("best", "area"):
            return float(values.max() if self.way == "best" else values.mean())
        return float(values[-self.number :].mean()) if self.way == "mean-last" else float(values[-1])


LAST = Protocol("last", "last evaluation")
BEST = Protocol("best", "best evaluation (chosen afterwards)")
AREA = Protocol("area", "area under the curve (mean of all evaluations)")
"""Sample efficiency: who learns sooner has more of it, wherever both end."""


def mean_of_last(count: int) -> Protocol:
    """The mean of the last evaluations."""
    if count < 1:
        raise SunriseError(f"the mean of the last {count} evaluations is of none: give 1 or more.")
    return Protocol("mean-last", f"mean of the last {count} evaluations", count)


def at_env_steps(count: int) -> Protocol:
    """The last evaluation up to a number of simulator steps, of runs that went so far."""
    return Protocol("at", f"at {short(count)} simulator steps", count)


def protocol(way: str, last_k: int) -> Protocol:
    """A protocol by its name on the command line."""
    ways = {"last": LAST, "mean-last": mean_of_last(last_k), "best": BEST, "area": AREA}
    if way not in ways:
        raise SunriseError(f"there is no protocol {way!r}: choose one of {', '.join(ways)}.")
    return ways[way]


def short(count: int) -> str:
    """A round number of steps as people say it."""
    return f"{count // 1000}k" if count % 1000 == 0 and count else f"{count:,}"


def scored(runs: Sequence[Run], way: Protocol) -> dict[tuple[str, str], list[float]]:
    """The scores of each environment and arm, in the order of the runs; runs without one are left out."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        own = found.setdefault((run.env, run.arm), [])
        if math.isfinite(score := way.score(run)):
            own.append(score)
    return found
