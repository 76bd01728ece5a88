"""The tables of a report: scores of each task, over all tasks, against a baseline, of the next run; settings; runs."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sunrise.report import statistics
from sunrise.report.arms import differences, plain, setting
from sunrise.report.cautions import FEW_SEEDS, by_pair
from sunrise.report.protocols import AREA, BEST, LAST, Protocol, at_env_steps, mean_of_last, scored
from sunrise.report.results import Run
from sunrise.report.scores import Scale, human
from sunrise.report.statistics import Statistic
from sunrise.report.tables import Cell, Estimate, Table
from sunrise.report.tolerance import tolerance_interval

ALL_TASKS = "all tasks"


class Plan(NamedTuple):
    """What is compared and how; the tables are functions of it."""

    runs: tuple[Run, ...]
    """The runs that count."""
    envs: tuple[str, ...]
    arms: tuple[str, ...]
    protocol: Protocol
    scale: Scale
    baseline: str
    last_k: int
    confidence: float
    reps: int
    seed: int

    @property
    def percent(self) -> str:
        return f"{100 * self.confidence:g} %"

    def interval(self, scores: np.ndarray, statistic: Statistic) -> tuple[float, float]:
        """The interval of a statistic, by this plan's number of resamples and seed."""
        low, high = statistics.stratified_interval(scores, statistic, self.reps, self.confidence, self.seed)
        return low, high

    def table(self, arm: str, envs: Sequence[str]) -> np.ndarray:
        """An arm's scores `[runs, tasks]` by the protocol, on the scale."""
        found = scored(self.runs, self.protocol)
        return statistics.ragged([self.scale.of(found[env, arm], env) for env in envs])


def estimate(values: Sequence[float], plan: Plan) -> Estimate:
    """The mean of some runs, with its interval and their deviation; of one run, itself."""
    own = np.array([value for value in values if math.isfinite(value)])
    if own.size == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    if own.size == 1:
        return Estimate(float(own[0]), math.nan, math.nan, 1)
    low, high = plan.interval(own, statistics.mean)
    return Estimate(float(own.mean()), low, high, own.size, float(own.std(ddof=1)))


def score_table(plan: Plan) -> Table:
    """A row an environment and arm, a column a protocol, the paper's numbers beside them."""
    from sunrise.report.published import published_for

    pairs = by_pair(plan.runs)
    paper = {pair: {entry.label: entry for entry in published_for(own[0])} for pair, own in pairs.items()}
    labels = list(dict.fromkeys(label for own in paper.values() for label in own))
    marks = sorted({entry.env_steps for own in paper.values() for entry in own.values() if entry.env_steps})
    ways = [LAST, mean_of_last(plan.last_k), BEST, AREA, *map(at_env_steps, marks)]
    games = all(human(env) for env in plan.envs)
    header = ["environment", "arm", "runs", "timesteps", *(way.label for way in ways)]
    header += ["human-normalised last evaluation"] * games + labels
    rows = []
    for env in plan.envs:
        for arm in plan.arms:
            own = pairs.get((env, arm), [])
            cells: list[Cell] = [env, arm, len(own), reached(own)]
            cells += [estimate([way.score(run) for run in own], plan) for way in ways]
            if games and (bounds := human(env)) is not None:
                low, high = bounds
                cells.append(estimate([(LAST.score(run) - low) / (high - low) for run in own], plan))
            for label in labels:
                entry = paper.get((env, arm), {}).get(label)
                cells.append(entry and Estimate(entry.mean, math.nan, math.nan, entry.runs, entry.spread))
            rows.append(tuple(cells))
    note = f"Mean over runs ± standard deviation over runs [{plan.percent} interval of the mean]."
    return Table("scores", "Scores of each task", tuple(header), tuple(rows), note)


def reached(runs: Sequence[Run]) -> Cell:
    """The timestep of the last evaluation, where it is one."""
    ends = {int(run.evaluations["timesteps"][-1]) for run in runs if run.evaluations["timesteps"].size}
    return None if not ends else ends.pop() if len(ends) == 1 else f"{min(ends):,} to {max(ends):,}"


def shared_tasks(plan: Plan) -> list[str]:
    """The environments on which every arm has a score."""
    found = scored(plan.runs, plan.protocol)
    return [env for env in plan.envs if all(found.get((env, arm)) for arm in plan.arms)]


def aggregate_table(plan: Plan) -> Table:
    """A row an arm: mean, median, interquartile mean and optimality gap over the tasks that all arms have."""
    envs = shared_tasks(plan)
    measures: dict[str, Statistic] = {
        "interquartile mean": statistics.iqm,
        "median over tasks": statistics.median,
        "mean": statistics.mean,
    }
    if plan.scale.is_one:
        measures["optimality gap"] = statistics.optimality_gap
    rows: list[tuple[Cell, ...]] = []
    for arm in plan.arms if envs else ():
        scores = plan.table(arm, envs)
        runs = int((~np.ma.getmaskarray(scores)).sum())
        single = bool(((~np.ma.getmaskarray(scores)).sum(0) < 2).all())
        found = [
            Estimate(float(measure(scores)), *((math.nan,) * 2 if single else plan.interval(scores, measure)), runs)
            for measure in measures.values()
        ]
        rows.append((arm, len(envs), runs, *found))
    note = (
        f"By the {plan.protocol.label}; {plan.scale.label}. [{plan.percent} stratified bootstrap interval, "
        f"{plan.reps:,} resamples: runs are drawn again within each task.]"
    )
    return Table("aggregates", "All tasks together", ("arm", "tasks", "runs", *measures), tuple(rows), note)


def comparison_table(plan: Plan) -> Table:
    """Every arm against the baseline: the interval of the difference, and how likely a run is better."""
    found = scored(plan.runs, plan.protocol)
    shared = shared_tasks(plan)
    rows: list[tuple[Cell, ...]] = []
    options = plan.reps, plan.confidence, plan.seed
    for arm in plan.arms:
        for env in (*plan.envs, *((ALL_TASKS,) if len(shared) > 1 else ())):
            envs = shared if env == ALL_TASKS else [env]
            if arm == plan.baseline or not all(found.get((e, a)) for e in envs for a in (arm, plan.baseline)):
                continue
            scale = plan.scale if env == ALL_TASKS else plan.scale._replace(bounds={})
            x, y = (plan._replace(scale=scale).table(who, envs) for who in (arm, plan.baseline))
            count = min(int((~np.ma.getmaskarray(side)).sum(0).min()) for side in (x, y))
            values = (
                float(statistics.mean(x) - statistics.mean(y)),
                float(statistics.iqm(x) - statistics.iqm(y)),
                float(statistics.probability_of_improvement(x, y)),
            )
            intervals: Sequence[tuple[float, float]] = [(math.nan, math.nan)] * 3
            if count > 1:
                intervals = (
                    statistics.difference_interval(x, y, statistics.mean, *options),
                    statistics.difference_interval(x, y, statistics.iqm, *options),
                    statistics.improvement_interval(x, y, min(plan.reps, 10_000), *options[1:]),
                )
            found_out = [Estimate(value, *own, runs=count) for value, own in zip(values, intervals, strict=True)]
            rows.append((env, arm, plan.baseline, *found_out, verdict(*intervals[0], count)))
    header = (
        *("environment", "arm", "against", "difference of means", "difference of interquartile means"),
        *("chance that a run is better", "by the interval of the difference"),
    )
    note = (
        f"By the {plan.protocol.label}. Overlapping intervals of two arms decide nothing; the {plan.percent} interval "
        f"of their difference does, where it leaves out 0. Comparisons: {len(rows)}, not corrected for their number."
    )
    return Table("comparisons", f"Against {plan.baseline}", header, tuple(rows), note)


def verdict(low: float, high: float, runs: int) -> str:
    """What the interval of a difference says; so few runs that the bootstrap is not to be believed say nothing."""
    if runs < FEW_SEEDS:
        return f"undecided: fewer than {FEW_SEEDS} runs"
    return "better" if low > 0 else "worse" if high < 0 else "undecided"


def tolerance_table(plan: Plan) -> Table:
    """Where the next run will be: the range of the runs, and how much of all runs it holds for sure."""
    rows: list[tuple[Cell, ...]] = []
    for (env, arm), scores in scored(plan.runs, plan.protocol).items():
        if scores:
            found = tolerance_interval(scores, confidence=plan.confidence)
            rows.append((env, arm, len(scores), found.low, found.high, f"{100 * found.coverage:.0f} %"))
    header = "environment", "arm", "runs", "from", "to", "share of all runs that lie there"
    note = (
        f"By the {plan.protocol.label}. The share is what so many runs can vouch for with {plan.percent} confidence, "
        "whatever the distribution; 46 runs would reach 90 %."
    )
    return Table("tolerance", "Where one more run would be", header, tuple(rows), note)


def settings_table(plan: Plan) -> Table:
    """The settings in which arms differ, a column an arm."""
    rows: list[tuple[Cell, ...]] = []
    for name in differences(plan.runs, ignored=()):
        values = [
            " / ".join(dict.fromkeys(plain(setting(run, name)) for run in plan.runs if run.arm == arm))
            for arm in plan.arms
        ]
        if len(set(values)) > 1 or any(" / " in value for value in values):
            rows.append((name, *values))
    return Table("settings", "Settings that differ", ("setting", *plan.arms), tuple(rows))


def run_table(runs: Sequence[Run]) -> Table:
    """A row a run: how it is, how far it went, and the command that made it."""
    import shlex

    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        hours = run.evaluations.get("hours", np.zeros(0))
        time = float(hours[-1]) if hours.size else None
        state = run.status + (f" ({run.reason})" if run.reason else "")
        rows.append((run.name, run.env, run.arm, run.seed, state, run.timesteps, time, shlex.join(run.command)))
    header = "run", "environment", "arm", "seed", "status", "timesteps", "hours", "command"
    return Table("runs", "Runs", header, tuple(rows))


TABLES: tuple[Callable[[Plan], Table], ...] = (
    score_table,
    aggregate_table,
    comparison_table,
    tolerance_table,
    settings_table,
)
