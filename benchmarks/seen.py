"""How large an effect so many runs would show, and how often their intervals hold the truth (docs/results/beside.md).

Arms are drawn as normal, with the deviations that they have in the committed rows; Student's t has a formula too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from sunrise.report.protocols import AREA, LAST, scored
from verdicts import Outcome

Scores = np.ndarray
DRAWS, RESAMPLES = 2_000, 1_000
"""Pairs of arms that are drawn to see how often an effect would be seen, and resamples of each."""


def power(effect: float, spreads: Sequence[float], size: int) -> float:
    """How often Welch's t sees an effect with so many runs an arm, on its own side."""
    variances = np.square(spreads)
    error = np.sqrt(variances.sum() / size)
    freedom = (size - 1) * variances.sum() ** 2 / np.square(variances).sum()
    return float(stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, effect / error))


class Drawn(NamedTuple):
    """Intervals of the differences of two arms between which there is none, one a draw."""

    low: Scores
    high: Scores

    def seen(self, effect: float) -> float:
        """How often an effect of that size would leave 0 out of its interval, on its own side."""
        return float(np.mean(self.low + effect > 0))

    def needed(self, often: float) -> float:
        """The effect that would be seen so often."""
        return float(np.quantile(-self.low, often))


def draw(spreads: tuple[float, float], sizes: tuple[int, int]) -> tuple[Drawn, Drawn]:
    """By the bootstrap and by Student's t, of arms that are normal with the given deviations."""
    generator = np.random.default_rng(0)
    arms = [generator.normal(0, spread, (DRAWS, size)) for spread, size in zip(spreads, sizes, strict=True)]
    again = [
        np.take_along_axis(arm[:, None, :], generator.integers(size, size=(DRAWS, RESAMPLES, size)), axis=2).mean(2)
        for arm, size in zip(arms, sizes, strict=True)
    ]
    low, high = np.quantile(again[0] - again[1], (0.025, 0.975), axis=1)
    by_t = stats.ttest_ind(*arms, axis=1, equal_var=False).confidence_interval()
    return Drawn(low, high), Drawn(by_t.low, by_t.high)


def effects_needed(found: Sequence[Outcome]) -> list[str]:
    """What would have been seen: every second time, and four times of five."""
    rows = [
        "| comparison | task | by | deviations of the arms | every second time | four times of five |",
        "|---|---|---|---|---|---|",
    ]
    for outcome in found:
        for question in () if outcome.missing else outcome.rung.questions:
            for name, way in (("area", AREA), *([("last", LAST)] * outcome.rung.name.startswith("4"))):
                scores = scored(outcome.compared, way)
                for env in dict.fromkeys(env for env, _ in scores):
                    pair = [np.array(scores.get((env, arm), [])) for arm in (question.arm, question.against)]
                    if not min(map(len, pair)):
                        continue
                    spreads = (float(pair[0].std(ddof=1)), float(pair[1].std(ddof=1)))
                    drawn = draw(spreads, (len(pair[0]), len(pair[1])))
                    half, most = (", ".join(f"{d.needed(often):.3g}" for d in drawn) for often in (0.5, 0.8))
                    own = f"{spreads[0]:.3g}, {spreads[1]:.3g}"
                    rows.append(f"| {question.arm} − {question.against} | {env} | {name} | {own} | {half} | {most} |")
    text = "The effect that would be seen so often: by the bootstrap, then by Student's t. Arms are drawn as normal."
    return ["## How large an effect would be seen", "", text, "", *rows]


def coverage() -> list[str]:
    """How often the interval of no difference has 0 in it."""
    rows = ["| runs an arm | bootstrap | Student's t |", "|---|---|---|"]
    for size in (3, 5, 7, 8, 10):
        rates = [np.mean((d.low < 0) & (d.high > 0)) for d in draw((1.0, 1.0), (size, size))]
        rows.append(f"| {size} | {rates[0]:.0%} | {rates[1]:.0%} |")
    return ["## How often a 95 % interval holds the truth", "", f"{DRAWS:,} pairs of normal arms.", "", *rows]
