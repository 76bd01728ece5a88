"""Candidates trained on the seeds of selection, and given up early where others are better: successive halving.

A rung is a length of training, three times the one before. A candidate whose score there is not in the best third of
all that came so far goes no further; the others' runs are extended, which is exact. What a candidate scored is read
from the folders of its own runs on the seeds of selection, and from nowhere else.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sunrise.config.resolve import as_begun
from sunrise.errors import SunriseError
from sunrise.experiments.executor import Execution, Failure, execute
from sunrise.experiments.live import planned
from sunrise.experiments.runs import Run, configured
from sunrise.experiments.tuning import Candidate, Tuning
from sunrise.store.run_folder import RunFolder

FACTOR = 3
"""How many times as long the next rung is, and which part goes on to it."""


class Result(NamedTuple):
    """How far a candidate came."""

    candidate: Candidate
    means: Mapping[int, float]
    """By length of training: the mean of its scores over the seeds of selection."""
    scores: tuple[float, ...]
    """Of each seed, at the last of these lengths."""
    lengths: tuple[int, ...]
    """What there were to come to."""
    failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether it came to the end."""
        return self.lengths[-1] in self.means

    @property
    def mean(self) -> float:
        """What it is judged by."""
        return self.means[max(self.means)]


def rungs(total: int, eval_freq: int, count: int) -> tuple[int, ...]:
    """The lengths, each a multiple of `eval_freq` except the last: an evaluation is made at the end of each."""
    shorter = (total / FACTOR**k for k in range(count - 1, 0, -1))
    lengths = {math.ceil(length / eval_freq) * eval_freq for length in shorter}
    return (*sorted(length for length in lengths if length < total), total)


def score(run: Run, length: int, way: str) -> float:
    """The score of a run when it had this length: its last evaluation, or the mean of all; NaN where it has not come
    there. A run of other settings is refused.
    """
    folder = RunFolder(run.folder)
    if not run.begun:
        return math.nan
    for name, (ran, asked) in run.changed.items():
        if name != "total_timesteps":
            raise SunriseError(
                f"{run.folder} is a run with {name} = {ran}, not {asked}: choose another --out, or remove it."
            )
    if planned(folder) <= length and folder.read_status().get("status") != "finished":
        return math.nan  # it may have been evaluated, and is not saved yet
    most = length + configured(run).run.num_envs - 1  # environments side by side step over it together
    rows = [row for row in folder.read_eval() if row["timesteps"] <= most]
    if not rows or rows[-1]["timesteps"] < length:
        return math.nan
    values = [row["mean_return"] for row in rows]
    return float(values[-1] if way == "last" else np.mean(values))


def promoted(own: float, all_of_them: Iterable[float]) -> bool:
    """Whether a score is in the best third, its own among them."""
    values = sorted(all_of_them, reverse=True)
    return own >= values[math.ceil(len(values) / FACTOR) - 1]


def climb(
    tuning: Tuning,
    env: str,
    candidates: Sequence[Candidate],
    out: Path,
    execution: Execution,
    count: int,
    before: Sequence[Mapping[int, float]] = (),
) -> tuple[list[Result], list[Failure]]:
    """Train candidates rung by rung; `before` are the means of others that came earlier."""
    runs = {
        candidate.name: [tuning.run(env, candidate, seed, out) for seed in tuning.select_seeds]
        for candidate in candidates
    }
    own = configured(runs[candidates[0].name][0]).run
    lengths = rungs(own.total_timesteps, own.eval_freq, count)
    results = {candidate.name: Result(candidate, {}, (), lengths) for candidate in candidates}
    alive, failures = list(results), list[Failure]()
    for length in lengths:
        asked = [at_length(run, length) for name in alive for run in runs[name]]
        missing = [run for run in asked if math.isnan(score(run, length, tuning.score))]
        failures += execute(missing, execution) if missing else []
        broken = {failure.run.arm.name for failure in failures}
        for name in alive:
            scores = tuple(score(run, length, tuning.score) for run in runs[name])
            if name in broken or not np.isfinite(scores).all():
                results[name] = results[name]._replace(failed=True)
                if name not in broken:
                    failures.append(Failure(runs[name][0], "it has no score: an evaluation ended no episode"))
            else:
                means = {**results[name].means, length: float(np.mean(scores))}
                results[name] = results[name]._replace(means=means, scores=scores)
        alive = [name for name in alive if not results[name].failed]
        there = [means[length] for means in (*before, *(r.means for r in results.values())) if length in means]
        alive = [name for name in alive if promoted(results[name].means[length], there)]
    return list(results.values()), failures


def at_length(run: Run, length: int) -> Run:
    """A run as long as a rung; what its settings make of its final length stays."""
    whole = as_begun(configured(run))
    final = {"importance_horizon": whole.training.importance_horizon} if whole.training.prioritised else {}
    return run._replace(settings={**run.settings, **final, "total_timesteps": length})
