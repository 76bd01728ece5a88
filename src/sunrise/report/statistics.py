"""What some runs say of a method, and how sure that is. Arrays in, numbers out; NumPy and nothing else.

`scores` is `[runs, tasks]`; a list of numbers is the runs of one task, and `[..., runs, tasks]` gives as many answers
at once. A score that is not finite is refused. Where tasks have unequal numbers of runs, say so with a masked array
(`ragged` makes one): a hidden cell is no run. The definitions are those of "Deep RL at the Edge of the Statistical
Precipice" (Agarwal et al., 2021).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Statistic = Callable[[np.ndarray], Any]
CELLS = 2**22
"""Scores that are held at once while resampling: 32 MB."""


def ragged(tasks: Sequence[ArrayLike]) -> np.ndarray:
    """Scores `[runs, tasks]` from each task's own runs, however many; what is lacking is hidden."""
    columns = [np.asarray(task, float).ravel() for task in tasks]
    values = np.zeros((max(map(len, columns), default=0), len(columns)))
    hidden = np.ones(values.shape, bool)
    for place, column in enumerate(columns):
        values[: len(column), place] = column
        hidden[: len(column), place] = False
    return np.ma.array(values, mask=hidden)


def checked(scores: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Values `[..., runs, tasks]`, and which `[runs, tasks]` of them there are."""
    values = np.asarray(np.ma.getdata(scores), float)
    hidden = np.ma.getmaskarray(np.ma.asarray(scores))
    if values.ndim == 1:
        values, hidden = values[:, None], hidden[:, None]
    if values.ndim == 0 or not values.size:
        raise ValueError(f"scores are [runs, tasks], but these have the shape {values.shape}")
    present = ~hidden[(0,) * (values.ndim - 2)]
    if hidden.any():
        values = np.where(present, values, 0.0)
    if not present.any(axis=0).all():
        raise ValueError("a task has no run")
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite (NaN or infinite); where a run is lacking, hide its cell in a mask")
    return values, present


def task_means(scores: ArrayLike) -> np.ndarray:
    """The mean over runs of each task."""
    values, present = checked(scores)
    return np.asarray(values.sum(-2) / present.sum(0))


def mean(scores: ArrayLike) -> Any:
    """The mean over tasks of the mean over runs: one outlying task can decide it."""
    return task_means(scores).mean(-1)


def median(scores: ArrayLike) -> Any:
    """The median over tasks of the mean over runs."""
    return np.median(task_means(scores), axis=-1)


def iqm(scores: ArrayLike) -> Any:
    """The interquartile mean: the mean of all runs on all tasks without the best and the worst quarter of them."""
    values, present = checked(scores)
    cells = values[..., present]
    count = cells.shape[-1]
    cut = count // 4
    kept = np.partition(cells, (cut, count - cut - 1), axis=-1)[..., cut : count - cut]
    return kept.mean(-1)


def optimality_gap(scores: ArrayLike, gamma: float = 1.0) -> Any:
    """How far scores stay below `gamma`, on average; what is above it makes up for nothing."""
    values, present = checked(scores)
    lacking = np.where(present, gamma - np.minimum(values, gamma), 0.0)
    return (lacking.sum(-2) / present.sum(0)).mean(-1)


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> Any:
    """How likely a run of `x` is better than one of `y` on a task, on average over tasks; a tie is half."""
    (ours, has_x), (theirs, has_y) = checked(x), checked(y)
    if ours.shape[-1] != theirs.shape[-1]:
        raise ValueError(f"x has {ours.shape[-1]} tasks and y {theirs.shape[-1]}")
    pairs = has_x[:, None] & has_y[None]
    ahead = np.sign(ours[..., :, None, :] - theirs[..., None, :, :])
    wins = np.where(pairs, (ahead + 1) / 2, 0.0).sum((-3, -2)) / pairs.sum((0, 1))
    return wins.mean(-1)


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> np.ndarray:
    """The share of runs above each threshold, on average over tasks."""
    values, present = checked(scores)
    above = (values[..., None] > np.asarray(thresholds, float)) & present[..., None]
    return np.asarray((above.sum(-3) / present.sum(0)[:, None]).mean(-2))


BATCHED: tuple[Callable[..., Any], ...] = (mean, median, iqm, optimality_gap, performance_profile, task_means)
"""Statistics that take many tables at once; any other is called once a table."""


def resampled(scores: ArrayLike, reps: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Tables `[some, runs, tasks]` of runs drawn again within each task, `reps` in all, as many at once as fit."""
    values, present = checked(scores)
    order = np.argsort(~present, axis=0, kind="stable")  # each task's runs first, then what is hidden
    values, present = np.take_along_axis(values, order, 0), np.take_along_axis(present, order, 0)
    counts, (runs, tasks) = present.sum(0), values.shape
    share = max(CELLS // values.size, 1)
    for start in range(0, reps, share):
        drawn = generator.integers(counts, size=(min(share, reps - start), runs, tasks))
        tables = values[drawn, np.arange(tasks)]
        yield tables if present.all() else np.ma.array(tables, mask=np.broadcast_to(~present, tables.shape))


def each(statistic: Statistic, tables: np.ndarray) -> np.ndarray:
    """The statistic of every table."""
    own = statistic.func if isinstance(statistic, functools.partial) else statistic
    if own in BATCHED:
        return np.asarray(statistic(tables))
    return np.array([statistic(table) for table in tables])


def interval_of(found: Sequence[np.ndarray], confidence: float) -> tuple[Any, Any]:
    """The middle of what was found: a `confidence` share of it, as much left out below as above."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, but must be between 0 and 1")
    if not found:
        raise ValueError("reps must be at least 1")
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.concatenate(found), [tail, 100 - tail], axis=0)
    return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def stratified_interval(
    scores: ArrayLike, statistic: Statistic, reps: int = 50_000, confidence: float = 0.95, seed: int = 0
) -> tuple[Any, Any]:
    """The stratified bootstrap's percentile interval of a statistic: runs are drawn again within each task.

    Of one run a task it has no width: that is not certainty, but nothing known.
    """
    generator = np.random.default_rng(seed)
    return interval_of([each(statistic, tables) for tables in resampled(scores, reps, generator)], confidence)


def difference_interval(
    x: ArrayLike, y: ArrayLike, statistic: Statistic, reps: int = 50_000, confidence: float = 0.95, seed: int = 0
) -> tuple[Any, Any]:
    """The interval of `statistic(x) - statistic(y)`: it decides where the two intervals overlap and decide nothing."""
    first, second = np.random.default_rng(seed).spawn(2)
    ours = [each(statistic, tables) for tables in resampled(x, reps, first)]
    theirs = [each(statistic, tables) for tables in resampled(y, reps, second)]
    return interval_of([np.concatenate(ours) - np.concatenate(theirs)] if ours else [], confidence)


def improvement_interval(
    x: ArrayLike, y: ArrayLike, reps: int = 50_000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """The interval of `probability_of_improvement(x, y)`."""
    (_, has_x), (_, has_y) = checked(x), checked(y)
    share = max(CELLS // (has_x.size * len(has_y)), 1)
    first, second = np.random.default_rng(seed).spawn(2)
    found = []
    for start in range(0, reps, share):
        count = min(share, reps - start)
        pairs = zip(resampled(x, count, first), resampled(y, count, second), strict=True)
        found += [probability_of_improvement(ours, theirs) for ours, theirs in pairs]
    low, high = interval_of(found, confidence)
    return low, high


def curve_interval(
    values: ArrayLike, reps: int = 2_000, confidence: float = 0.95, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the mean of curves `[runs, points]`, at each point: whole runs are drawn again."""
    curves, _ = checked(values)
    runs, points = curves.shape
    generator = np.random.default_rng(seed)
    share = max(CELLS // points, 1)
    drawn = generator.multinomial(runs, np.full(runs, 1 / runs), size=reps) / runs
    low, high = interval_of([drawn[start : start + share] @ curves for start in range(0, reps, share)], confidence)
    return low, high
