"""Learning curves: the mean of an arm's runs and its interval, at the timesteps where all of them were evaluated."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sunrise.report.cautions import by_pair
from sunrise.report.results import Run
from sunrise.report.statistics import curve_interval


class Curve(NamedTuple):
    """One arm on one environment."""

    env: str
    arm: str
    timesteps: np.ndarray
    env_steps: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    """The interval; NaN where there is one run."""
    high: np.ndarray
    averaged: int
    """Runs that the mean is of: those that are finished, or all where none is."""
    runs: tuple[Run, ...]


def curves(runs: Sequence[Run], confidence: float = 0.95, seed: int = 0) -> tuple[Curve, ...]:
    """A curve an environment and arm."""
    return tuple(_curve(env, arm, own, confidence, seed) for (env, arm), own in by_pair(runs).items())


def _curve(env: str, arm: str, runs: Sequence[Run], confidence: float, seed: int) -> Curve:
    averaged = [run for run in runs if run.finished] or list(runs)
    lines = [line for run in averaged if (line := evaluated_points(run))[0].size]
    grid, values = common(lines)
    mean = values.mean(0) if lines else np.zeros(0)
    low = high = np.full(grid.shape, np.nan)
    if len(lines) > 1 and grid.size:
        low, high = curve_interval(values, confidence=confidence, seed=seed)
    repeat = runs[0].action_repeat
    return Curve(env, arm, grid, grid * repeat, mean, low, high, len(lines), tuple(runs))


def evaluated_points(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Timesteps and returns of a run's evaluations; one that ended no episode is left out."""
    values = run.evaluations["mean_return"]
    known = np.isfinite(values)
    return run.evaluations["timesteps"][known], values[known]


def common(lines: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The timesteps of any line where all lines are, and each line there; between its points a line is straight."""
    if not lines:
        return np.zeros(0), np.zeros((0, 0))
    first, last = max(steps[0] for steps, _ in lines), min(steps[-1] for steps, _ in lines)
    grid = np.unique(np.concatenate([steps for steps, _ in lines]))
    grid = grid[(grid >= first) & (grid <= last)]
    return grid, np.array([np.interp(grid, steps, values) for steps, values in lines])
