"""Tolerance intervals: where the next run will be, said without any belief in a bell curve.

Between two of n ordered runs lies a share of all runs there could be. That share is itself random: its law is that of
order statistics, the same whatever the runs' own distribution is (Wilks, 1941). So a handful of seeds reaches little.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Tolerance(NamedTuple):
    """An interval that holds at least `coverage` of all runs, with `confidence`."""

    low: float
    high: float
    coverage: float
    """What it reaches with this number of runs, which may be far below what was asked for."""
    confidence: float
    reached: bool
    """Whether that is what was asked for."""


def tolerance_interval(values: ArrayLike, coverage: float = 0.9, confidence: float = 0.95) -> Tolerance:
    """The narrowest symmetric pair of ordered runs that reaches the coverage, or else the lowest and highest run."""
    for name, value in (("coverage", coverage), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}, but must be between 0 and 1")
    runs = np.sort(np.asarray(values, float).ravel())
    if not runs.size or not np.isfinite(runs).all():
        raise ValueError("a tolerance interval is of at least one number, all of them finite")
    count, left_out = runs.size, 0
    while 2 * (left_out + 1) < count and confidence_of(count, 2 * (left_out + 1), coverage) >= confidence:
        left_out += 1
    found = reached_coverage(count, 2 * left_out, confidence)
    return Tolerance(float(runs[left_out]), float(runs[-1 - left_out]), found, confidence, found >= coverage)


def confidence_of(count: int, left_out: int, coverage: float) -> float:
    """How sure it is that the range of `count` runs, `left_out` of them aside, holds this share of all runs.

    That is when at most `count - 2 - left_out` of `count` fall into a given share: a binomial sum.
    """
    log_in, log_out = math.log(coverage), math.log1p(-coverage)
    terms = (
        math.exp(
            math.lgamma(count + 1)
            - math.lgamma(k + 1)
            - math.lgamma(count - k + 1)
            + k * log_in
            + (count - k) * log_out
        )
        for k in range(count - 1 - left_out)
    )
    return math.fsum(terms)


def reached_coverage(count: int, left_out: int, confidence: float) -> float:
    """The largest share that is held with this confidence; none for one run."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if confidence_of(count, left_out, middle) >= confidence:
            low = middle
        else:
            high = middle
    return low
