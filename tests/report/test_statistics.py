"""The statistics of a report, beside rliable, SciPy, plain loops and numbers worked out by hand."""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import rliable.library
import rliable.metrics
import scipy.stats

from sunrise.report import statistics as ours
from sunrise.report.tolerance import confidence_of, reached_coverage, tolerance_interval

SCORES = np.random.default_rng(1).gamma(2.0, 0.5, (6, 4))
OTHERS = SCORES[:5] * 0.8 + np.random.default_rng(2).normal(0, 0.2, (5, 4))
PAIRS: dict[str, Callable[[Any], Any]] = {
    "mean": ours.mean,
    "median": ours.median,
    "iqm": ours.iqm,
    "optimality_gap": ours.optimality_gap,
}


def theirs(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(rliable.metrics, f"aggregate_{name}")
    return found


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shape", [(6, 4), (5, 1), (1, 7), (1, 1), (3, 2), (2, 26)])
def test_an_aggregate_equals_rliables(name: str, shape: tuple[int, int]) -> None:
    scores = np.random.default_rng(3).normal(0.7, 0.6, shape)
    assert PAIRS[name](scores) == pytest.approx(theirs(name)(scores), rel=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_an_interval_equals_rliables_up_to_the_noise_of_resampling(name: str) -> None:
    np.random.seed(0)  # rliable draws from NumPy's global generator
    _, expected = rliable.library.get_interval_estimates(
        {"x": SCORES}, lambda s: np.array([theirs(name)(s)]), reps=4000
    )
    low, high = ours.stratified_interval(SCORES, PAIRS[name])
    width = expected["x"][1, 0] - expected["x"][0, 0]
    assert [low, high] == pytest.approx(expected["x"][:, 0], abs=0.05 * width)
    assert low < PAIRS[name](SCORES) < high


def test_improvement_equals_rliables_with_ties_and_its_interval_too() -> None:
    for x, y in ((SCORES, OTHERS), (np.round(SCORES), np.round(OTHERS)), (SCORES, SCORES), (SCORES[:1], OTHERS)):
        assert ours.probability_of_improvement(x, y) == pytest.approx(rliable.metrics.probability_of_improvement(x, y))
    np.random.seed(0)
    _, expected = rliable.library.get_interval_estimates(
        {"x,y": (SCORES, OTHERS)}, rliable.metrics.probability_of_improvement, reps=500
    )
    low, high = ours.improvement_interval(SCORES, OTHERS, reps=20_000)
    assert [low, high] == pytest.approx(expected["x,y"][:, 0], abs=0.04)


def test_a_performance_profile_equals_rliables() -> None:
    thresholds = np.linspace(0, 3, 17)
    expected = rliable.library.create_performance_profile({"x": SCORES}, thresholds, reps=2)[0]["x"]
    np.testing.assert_allclose(ours.performance_profile(SCORES, thresholds), expected)
    rows = np.round(SCORES, 0)
    by_hand = [np.mean(rows > threshold) for threshold in (0, 1, 2)]  # ties are not above
    np.testing.assert_allclose(ours.performance_profile(rows, [0, 1, 2]), by_hand)


def test_numbers_worked_out_by_hand() -> None:
    assert ours.iqm([[1.0], [2.0], [3.0], [100.0]]) == 2.5
    assert ours.iqm([1, 2, 3, 4, 5]) == 3.0  # a quarter of five, cut to one at either end
    assert ours.mean([[1.0, 10.0], [3.0, 30.0]]) == 11.0
    assert ours.median([[1.0, 10.0, 4.0], [3.0, 30.0, 4.0]]) == 4.0
    assert ours.optimality_gap([[0.5, 2.0]], gamma=1.0) == 0.25  # what is above does not make up for it
    assert ours.optimality_gap([[0.5, 2.0]], gamma=3.0) == 1.75
    assert ours.probability_of_improvement([[1.0], [2.0]], [[1.0], [0.0]]) == (0.5 + 1 + 1 + 1) / 4


def test_one_seed_gives_its_number_and_an_interval_without_width() -> None:
    for statistic in PAIRS.values():
        assert ours.stratified_interval([[0.3, 0.9]], statistic, reps=50) == pytest.approx(
            [statistic([[0.3, 0.9]])] * 2
        )
    assert ours.probability_of_improvement([[1.0]], [[1.0]]) == 0.5


def test_the_bootstrap_of_two_runs_is_what_all_resamples_give() -> None:
    scores = np.array([[0.0, 10.0], [1.0, 14.0]])
    every = [
        np.mean([[scores[a, 0], scores[b, 1]], [scores[c, 0], scores[d, 1]]])
        for a, b, c, d in itertools.product((0, 1), repeat=4)
    ]
    drawn = np.concatenate([ours.mean(t) for t in ours.resampled(scores, 40_000, np.random.default_rng(0))])
    values, counts = np.unique(drawn, return_counts=True)
    expected, shares = np.unique(every, return_counts=True)
    np.testing.assert_allclose(values, expected)
    np.testing.assert_allclose(counts / 40_000, shares / 16, atol=0.01)


def test_unequal_seeds_are_said_with_a_mask_and_each_task_draws_from_its_own_runs() -> None:
    table = ours.ragged([[1.0, 2.0, 3.0], [10.0], [5.0, 7.0]])
    assert table.shape == (3, 3)
    assert ours.mean(table) == (2 + 10 + 6) / 3
    assert ours.median(table) == 6.0
    assert ours.iqm(table) == pytest.approx(scipy.stats.trim_mean([1, 2, 3, 10, 5, 7], 0.25))
    assert ours.optimality_gap(table, gamma=8.0) == pytest.approx(np.mean([6, 0, 2]))
    assert ours.performance_profile(table, [2.5])[0] == pytest.approx(np.mean([1 / 3, 1, 1]))
    assert ours.probability_of_improvement(table, ours.ragged([[2.0], [10.0, 11.0], [6.0]])) == pytest.approx(
        np.mean([0.5, 0.25, 0.5])
    )
    for drawn in ours.resampled(
        np.ma.masked_invalid([[np.nan, 10.0], [2.0, np.nan], [3.0, np.nan]]), 200, np.random.default_rng(0)
    ):
        assert set(np.ma.compressed(drawn[:, :, 0])) == {2.0, 3.0}
        assert set(np.ma.compressed(drawn[:, :, 1])) == {10.0}
    low, high = ours.stratified_interval(table, ours.mean, reps=5000)
    assert (1 + 10 + 5) / 3 <= low < high <= (3 + 10 + 7) / 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_everywhere(bad: float) -> None:
    scores = np.array([[1.0, 2.0], [3.0, bad]])
    for statistic in PAIRS.values():
        with pytest.raises(ValueError, match="not finite"):
            statistic(scores)
        with pytest.raises(ValueError, match="not finite"):
            ours.stratified_interval(scores, statistic, reps=10)
        with pytest.raises(ValueError, match="not finite"):
            ours.difference_interval(SCORES[:, :2], scores, statistic, reps=10)
    for call in (ours.probability_of_improvement, partial(ours.improvement_interval, reps=10)):
        with pytest.raises(ValueError, match="not finite"):
            call(scores, scores)
    wrongs: list[Any] = [[], [[]], 3.0]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"\[runs, tasks\]"):
            ours.iqm(wrong)
    with pytest.raises(ValueError, match="no run"):
        ours.iqm(np.ma.masked_invalid([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="confidence"):
        ours.stratified_interval(SCORES, ours.iqm, confidence=95)
    with pytest.raises(ValueError, match="reps"):
        ours.stratified_interval(SCORES, ours.iqm, reps=0)
    with pytest.raises(ValueError, match="tasks"):
        ours.probability_of_improvement(SCORES, OTHERS[:, :2])


def test_the_interval_of_a_difference_decides_where_overlapping_intervals_do_not() -> None:
    x = np.array([[10.0], [11.0], [12.0], [13.0], [14.0]])
    y = x - 2.0
    low_x, high_y = ours.stratified_interval(x, ours.mean)[0], ours.stratified_interval(y, ours.mean)[1]
    assert low_x < high_y  # they overlap
    low, high = ours.difference_interval(x, y, ours.mean)
    assert 0 < low < 2 < high
    spread = np.sqrt(2 * np.var(x) / 5)
    assert [low, high] == pytest.approx([2 - 1.96 * spread, 2 + 1.96 * spread], abs=0.1)
    assert ours.difference_interval(x, x, ours.mean)[0] < 0  # drawn apart: not nought for itself


def test_a_statistic_of_ones_own_is_called_table_by_table_and_gives_the_same() -> None:
    mine: ours.Statistic = lambda table: float(np.mean(table))  # noqa: E731
    assert ours.stratified_interval(SCORES, mine, reps=500) == pytest.approx(
        ours.stratified_interval(SCORES, ours.mean, reps=500)
    )
    wide = partial(ours.optimality_gap, gamma=2.0)
    assert ours.stratified_interval(SCORES, wide, reps=500) == pytest.approx(
        ours.stratified_interval(SCORES, lambda s: ours.optimality_gap(s, 2.0), reps=500)
    )


def test_the_same_seed_gives_the_same_interval_however_many_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ours.stratified_interval(SCORES, ours.iqm, reps=999, seed=4)
    assert first != ours.stratified_interval(SCORES, ours.iqm, reps=999, seed=5)
    monkeypatch.setattr(ours, "CELLS", 1000)
    assert first == ours.stratified_interval(SCORES, ours.iqm, reps=999, seed=4)


def test_the_band_of_a_curve_is_the_interval_of_its_mean_at_each_point() -> None:
    curves = np.random.default_rng(0).normal(size=(12, 3)).cumsum(1)
    low, high = ours.curve_interval(curves, reps=20_000)
    for point in range(3):
        expected = ours.stratified_interval(curves[:, point], ours.mean)
        assert [low[point], high[point]] == pytest.approx(expected, abs=0.03)


def test_fifty_thousand_resamples_of_ten_runs_on_26_tasks_take_seconds() -> None:
    scores = np.random.default_rng(0).random((10, 26))
    start = time.process_time()
    ours.stratified_interval(scores, ours.iqm)
    ours.improvement_interval(scores, scores, reps=2000)
    assert time.process_time() - start < 6


@pytest.mark.parametrize("count", [1, 2, 5, 10, 30, 93])
def test_a_tolerance_interval_reaches_what_the_law_of_order_statistics_says(count: int) -> None:
    """The share between the lowest and the highest of n is Beta(n - 1, 2)."""
    found = tolerance_interval(np.random.default_rng(0).permutation(count).astype(float))
    left_out = int(found.low)
    assert found.high == count - 1 - left_out
    expected = scipy.stats.beta.ppf(0.05, count - 1 - 2 * left_out, 2 + 2 * left_out) if count > 1 else 0.0
    assert found.coverage == pytest.approx(expected, abs=1e-9)
    assert found.reached == (found.coverage >= 0.9)
    assert confidence_of(count, 0, 0.9) == pytest.approx(scipy.stats.binom.cdf(count - 2, count, 0.9))
    if count == 5:
        assert 1 - 5 * found.coverage**4 + 4 * found.coverage**5 == pytest.approx(0.95)  # by hand: about 0.34
        assert not found.reached
    if count == 93:
        assert left_out > 0
        assert reached_coverage(45, 0, 0.95) < 0.9 < reached_coverage(46, 0, 0.95)  # the textbook's 46 runs
    with pytest.raises(ValueError, match="finite"):
        tolerance_interval([1.0, np.nan])


def test_statistics_import_nothing_that_computes() -> None:
    code = (
        "import sys, sunrise.report.statistics\nprint([m for m in ('jax', 'scipy', 'gymnasium') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
