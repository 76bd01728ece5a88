"""What docs/results/protocol.md asked, answered from the committed rows: writes docs/results/ anew.

`.venv/bin/python benchmarks/verdicts.py` needs no run: it reads benchmarks/results/evidence/. Each rung gets a report,
as `sunrise report --protocol area` writes it, and in docs/results/README.md, between its marks, the differences that
decide, with verdicts; the README gets the verdicts alone. What is written around the marks stays.
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evidence import KEPT, ROOT, ladder
from readme import put
from sunrise.report import statistics
from sunrise.report.protocols import AREA, LAST, scored
from sunrise.report.report import Options, make_report, write_report
from sunrise.report.results import Run, find_runs

PAGES = ROOT / "docs" / "results"
FEWEST = 3
"""Runs of an arm without which nothing is compared."""
TOLD = {"": "", "__noise": ", noisy"}
"""What a condition adds to the name of a task."""
LATER = " (asked later)"
"""Of a claim that is not in the protocol as it was first written, but among its changes."""
REACHED = 100.0
"""The return of rung 3 whose time is reported."""


class Question(NamedTuple):
    """Two arms of a rung, compared on some tasks."""

    claim: str
    arm: str
    against: str


class Rung(NamedTuple):
    """A part of the ladder: its runs, what it asks, and how its answers are read."""

    name: str
    title: str
    questions: tuple[Question, ...]
    same_is_right: bool = False
    """Whether no difference is what confirms."""
    needed: int = 1
    """Effects that confirm, where none contradicts."""
    each_task: bool = False
    """Whether every task is judged by itself."""
    conditions: tuple[str, ...] = ("",)
    """What else is told apart, by the end of an arm's name."""
    baseline: str = ""
    """The arm that the report compares all others with; default: the one with the fewest members."""
    joint: str = ""
    """A claim that its questions but the last decide together."""
    beside: tuple[Callable[[Sequence[Run]], list[str]], ...] = ()
    """What is reported beside the differences."""
    borrows: str = ""
    """Another rung, whose runs of the arms that its questions name are compared too."""

    @property
    def arms(self) -> set[str]:
        """What its questions name, under every condition."""
        return {arm + end for q in self.questions for arm in (q.arm, q.against) for end in self.conditions}


def times_to(runs: Sequence[Run]) -> tuple[list[int], int]:
    """Timesteps of each run to its first evaluation of 100 or more, all where there is none; how many have one."""
    first = [np.flatnonzero(run.evaluations["mean_return"] >= REACHED) for run in runs]
    steps = [
        run.evaluations["timesteps"][f[0]] if f.size else run.total_timesteps
        for run, f in zip(runs, first, strict=True)
    ]
    return steps, sum(bool(f.size) for f in first)


def time_to(runs: Sequence[Run]) -> list[str]:
    """Timesteps to the first evaluation of 100 or more, arm by arm."""
    rows = ["| arm | runs | that got there | timesteps; a run that never did counts as 15,000 |", "|---|---|---|---|"]
    for arm in dict.fromkeys(run.arm for run in runs):
        own = [run for run in runs if run.arm == arm]
        steps, got = times_to(own)
        low, high = statistics.stratified_interval(np.array(steps, float), statistics.mean)
        rows.append(f"| {arm} | {len(own)} | {got} | {np.mean(steps):,.0f} [{low:,.0f}, {high:,.0f}] |")
    return [f"Timesteps to the first evaluation of {REACHED:.0f} or more:", "", *rows]


def weights_seen(runs: Sequence[Run]) -> list[str]:
    """How the weights of each arm were spread: 5, 50 and 95 % of a minibatch's, and the critics' disagreement."""
    rows = ["| task | arm | weight: 5 % | 50 % | 95 % | disagreement: 50 % |", "|---|---|---|---|---|---|"]
    names = ("weight_p05", "weight_p50", "weight_p95", "disagreement_p50")
    for env, arm in sorted({(run.env, run.arm) for run in runs}):
        own = [run.metrics for run in runs if (run.env, run.arm) == (env, arm)]
        means = [np.nanmean(np.concatenate([metrics[f"train/{name}"] for metrics in own])) for name in names]
        if means[0] < 1:  # an arm without weights has 1 throughout
            rows.append(f"| {env} | {arm} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return ["What the weights were, mean over training and runs:", "", *rows] if rows[2:] else []


def training_seen(runs: Sequence[Run]) -> list[str]:
    """What episodes of training earned, where noise and exploration act, beside what was evaluated: arm by arm."""
    rows = [
        "| task | arm | runs | training | its last tenth | evaluations | their last tenth |",
        "|---|---|---|---|---|---|---|",
    ]
    for env, arm in sorted({(run.env, run.arm) for run in runs}):
        own = [run for run in runs if (run.env, run.arm) == (env, arm)]
        earned = [run.metrics["rollout/return_mean"] for run in own]
        judged = [run.evaluations["mean_return"] for run in own]
        means = [
            f"{mean_over_runs(part):.4g}"
            for returns in (earned, judged)
            for part in (returns, map(last_tenth, returns))
        ]
        rows.append(f"| {env} | {arm} | {len(own)} | {' | '.join(means)} |")
    return ["What training earned, with its noise and exploration, and what was evaluated, mean over runs:", "", *rows]


def acting_seen(runs: Sequence[Run]) -> list[str]:
    """What the last checkpoint earns by its mean action, each member alone, and exploring (benchmarks/acting.py)."""
    rows = [
        "| task | arm | seed | mean action | members alone, worst to best | exploring, as in training |",
        "|---|---|---|---|---|---|",
    ]
    for run in sorted(runs, key=lambda run: (run.env, run.arm, run.seed)):
        returns: dict[str, list[float]] = {}
        if (file := run.folder / "acting.csv").exists():
            for row in csv.DictReader(file.read_text().splitlines()):
                returns.setdefault(row["way"], []).append(float(row["return"]))
        if returns:
            means = {way: float(np.mean(values)) for way, values in returns.items()}
            alone = ", ".join(f"{mean:.0f}" for mean in sorted(means[way] for way in means if way.startswith("member")))
            row_of = (run.env, run.arm, run.seed, f"{means['mean']:.0f}", alone, f"{means['exploring']:.0f}")
            rows.append(f"| {' | '.join(map(str, row_of))} |")
    text = "What the last checkpoint earns in the episodes of its evaluations, of runs whose checkpoint still exists:"
    return [text, "", *rows] if rows[2:] else []


def last_tenth(values: np.ndarray) -> np.ndarray:
    return values[-max(len(values) // 10, 1) :]


def mean_over_runs(runs: Iterable[np.ndarray]) -> float:
    """All runs count the same; an episode that did not end has no return."""
    return float(np.mean([np.nanmean(values) for values in runs]))


SAME = (Question("ours learns as Stable-Baselines3's does", "ours", "sb3"),)
SAME_AGAIN = (SAME[0]._replace(claim="ours learns as Stable-Baselines3's does, with other seeds"),)
TABLE1 = (
    Question("SUNRISE learns better than one agent", "SUNRISE", "N=1"),
    Question("`relative` learns better than the paper's weight", "relative", "SUNRISE"),
)
RUNGS = (
    Rung(
        "1-base",
        "Our base learners are the base learners",
        SAME,
        same_is_right=True,
    ),
    Rung("1-again", "The same SAC once more, with seven other seeds", SAME_AGAIN, same_is_right=True),
    Rung(
        "2-small",
        "Small and powered: which ingredient does what",
        (
            Question("five agents without weights learn better than one", "none", "N=1"),
            Question("the paper's weight is better than none", "confidence", "none"),
            Question("the paper's weight is better than a random one", "confidence", "random"),
            Question("the weight `relative` is better than none", "relative", "none"),
            Question("the weight `inverse_variance` is better than none", "inverse_variance", "none"),
            Question("UCB is better than one random member an episode", "confidence", "member"),
        ),
        needed=2,
        conditions=("", "__noise"),
        baseline="none",
        beside=(weights_seen,),
    ),
    Rung(
        "3-sparse",
        "Figure 3b again: UCB under a sparse reward",
        (
            Question("UCB with λ = 1 is better than one random member an episode", "ucb1", "member"),
            Question("UCB with λ = 10 is better than one random member an episode", "ucb10", "member"),
            Question(f"five agents, one of them acting an episode, learn better than one{LATER}", "member", "N=1"),
        ),
        joint="UCB is better than one random member an episode, with either λ",
        baseline="member",
        beside=(time_to, weights_seen, training_seen),
    ),
    Rung(
        "4-table1",
        "Table 1 at 100,000 timesteps: Hopper",
        TABLE1,
        beside=(weights_seen, training_seen, acting_seen),
    ),
    Rung(
        "4-checks",
        "One agent on Hopper, with other settings than ours",
        (
            Question(f"one agent learns better with our switches than with the authors'{LATER}", "N=1", "authors"),
            Question(
                f"with the authors' switches, a batch of 256 is better than one of 64{LATER}", "authors", "authors64"
            ),
        ),
        baseline="N=1",
        beside=(training_seen,),
        borrows="4-table1",
    ),
    Rung(
        "4-authors",
        "SUNRISE on Hopper, with the authors' switches",
        (
            Question(
                f"with the authors' switches, SUNRISE learns better than one agent{LATER}", "SUNRISE-authors", "authors"
            ),
        ),
        baseline="authors",
        beside=(weights_seen, training_seen, acting_seen),
        borrows="4-checks",
    ),
    Rung(
        "5-table1",
        "Table 1 at 100,000 timesteps: other tasks",
        TABLE1,
        each_task=True,
        beside=(weights_seen, training_seen, acting_seen),
    ),
    Rung(
        "5-atari",
        "One Atari game",
        (
            Question("SUNRISE learns better than one agent", "SUNRISE", "N=1"),
            Question("the paper's weight is better than the constant 0.5", "SUNRISE", "constant"),
        ),
    ),
)


class Answer(NamedTuple):
    """A difference of means on one task under one condition."""

    task: str
    runs: tuple[int, int]
    means: tuple[float, float]
    area: tuple[float, float, float]
    last: tuple[float, float, float]

    @property
    def sign(self) -> int:
        """1 or -1 where the interval of the area leaves out 0."""
        _, low, high = self.area
        return int(low > 0) - int(high < 0)


def difference(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Of the means, with its interval."""
    low, high = statistics.difference_interval(x, y, statistics.mean)
    return float(x.mean() - y.mean()), low, high


def answers(question: Question, runs: Sequence[Run]) -> Iterator[Answer]:
    """What can be said by now: tasks with enough runs of both arms."""
    areas, lasts = scored(runs, AREA), scored(runs, LAST)
    for env in dict.fromkeys(run.env for run in runs):
        pair = [(env, question.arm), (env, question.against)]
        x, y = (np.array(areas.get(one, [])) for one in pair)
        if min(len(x), len(y)) >= FEWEST:
            last = difference(*(np.array(lasts[one]) for one in pair))
            yield Answer(env, (len(x), len(y)), (float(x.mean()), float(y.mean())), difference(x, y), last)


def verdict(rung: Rung, found: Sequence[Answer]) -> str:
    """By the rule that was written down before the runs."""
    up, down = sum(a.sign > 0 for a in found), sum(a.sign < 0 for a in found)
    if rung.same_is_right:
        return "refuted" if up + down else "not refuted (no interval leaves out 0)"
    if up >= rung.needed and not down:
        return "confirmed"
    if down >= rung.needed and not up:
        return "refuted"
    return "undecided"


def shown(estimate: tuple[float, float, float]) -> str:
    """A difference with its interval."""
    return f"{estimate[0]:+.3g} [{estimate[1]:.3g}, {estimate[2]:.3g}]"


def hours(runs: Sequence[Run]) -> float:
    """Machine hours of some runs, a core each, as far as they are known; what came before a stop counts too."""
    return sum(float(run.evaluations["hours"][-1]) for run in runs if "hours" in run.evaluations)


def spent(runs: Sequence[Run]) -> str:
    """The same in words, with how many of the runs recorded it."""
    recorded = sum("hours" in run.evaluations for run in runs)
    partly = f" (recorded for {recorded} of them)" * (recorded < len(runs))
    return f"{hours(runs):.1f} hours of one core by the clock{partly}"


class Verdict(NamedTuple):
    """A claim, the answers that it rests on, and which arms they compare."""

    claim: str
    answers: list[Answer]
    compared: str


class Outcome(NamedTuple):
    """What came out of a rung by now."""

    rung: Rung
    runs: Sequence[Run]
    planned: Mapping[str, int]
    """Runs of each task."""
    borrowed: Sequence[Run] = ()
    """What another rung made of the same arms."""

    @property
    def compared(self) -> list[Run]:
        """All that its questions are answered from, each condition as a task of its own."""
        return [by_condition(self.rung, run) for run in (*self.borrowed, *self.runs)]

    def asked(self) -> list[Verdict]:
        """The claims that have answers."""
        found = [
            Verdict(q.claim, list(answers(q, self.compared)), f"{q.arm} − {q.against}") for q in self.rung.questions
        ]
        if self.rung.each_task:
            found = [
                Verdict(f"{claim} on {answer.task}", [answer], compared)
                for claim, several, compared in found
                for answer in several
            ]
        if self.rung.joint:
            parts = found[:-1]
            together = [answer for one in parts for answer in one.answers]
            found.insert(-1, Verdict(self.rung.joint, together, "; ".join(one.compared for one in parts)))
        return [one for one in found if one.answers]

    @property
    def missing(self) -> Mapping[str, int]:
        """Runs of each task that are planned and not there; tasks that are whole are left out."""
        return Counter(self.planned) - Counter(run.env for run in self.runs)

    def said(self, found: Sequence[Answer]) -> str:
        """The verdict, once the rung is whole, or the task where each is judged by itself."""
        waits = any(a.task in self.missing for a in found) if self.rung.each_task else bool(self.missing)
        return "open, as runs are missing" if waits else verdict(self.rung, found)


def by_condition(rung: Rung, run: Run) -> Run:
    """A run under a condition as one of a task of its own: arms are then the same on all tasks."""
    condition = max((c for c in rung.conditions if run.arm.endswith(c)), key=len)
    return run._replace(env=run.env + TOLD[condition], arm=run.arm.removesuffix(condition))


def section(outcome: Outcome) -> list[str]:
    """A rung of the page of results."""
    rung, runs, planned = outcome.rung, outcome.runs, sum(outcome.planned.values())
    command = f".venv/bin/python benchmarks/evidence.py --rungs {rung.name}"
    again = f"Go on: `{command}`." if outcome.missing else f"Again: `{command} --again`."
    lines = [f"{len(runs)} of {planned} runs are there, {spent(runs)}. {again}"]
    if runs:
        lines[0] += f" Everything that was compared: [report]({rung.name}/report.md)."
    lines.append("")
    for claim, found, compared in outcome.asked():
        lines += [
            f"**{claim[0].upper()}{claim[1:]}: {outcome.said(found)}** ({len(found)} "
            f"interval{'s' * (len(found) > 1)}; {compared}).",
            "",
        ]
        if claim == rung.joint:  # its rows stand above
            continue
        lines += [
            "| task | runs | areas | difference of areas [95 %] | of last evaluations [95 %] |",
            "|---|---|---|---|---|",
        ]
        for a in found:
            counts, means = f"{a.runs[0]}, {a.runs[1]}", f"{a.means[0]:.4g}, {a.means[1]:.4g}"
            bold = "**" if a.sign else ""
            lines.append(f"| {a.task} | {counts} | {means} | {bold}{shown(a.area)}{bold} | {shown(a.last)} |")
        lines.append("")
    if runs:
        parts = [part for beside in rung.beside if (part := beside(outcome.compared))]
        lines += chain.from_iterable([*part, ""] for part in parts)
    return lines


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """The README's table: a row a task, the claim and its verdict in the first of them."""
    lines = ["| claim | verdict | task | runs | difference of areas [95 %] |", "|---|---|---|---|---|"]
    for outcome in outcomes:
        for claim, found, _ in outcome.asked():
            said = f"{claim} | {outcome.said(found)}"
            if claim == outcome.rung.joint:
                lines.append(f"| {said} | as above | | |")
                continue
            for head, a in zip(chain([said], repeat(" | ")), found, strict=False):
                lines.append(f"| {head} | {a.task} | {a.runs[0]}, {a.runs[1]} | {shown(a.area)} |")
    return lines


def total(outcomes: Sequence[Outcome]) -> list[str]:
    """All that was run."""
    runs = [run for outcome in outcomes for run in outcome.runs]
    return [f"In all {len(runs)} runs, {spent(runs)}."]


def outcomes() -> list[Outcome]:
    """What is there of every rung; a run that cannot be read is not passed over."""
    planned = {rung.name: Counter(run.env for run in ladder() if run.rung == rung.name) for rung in RUNGS}
    kept = {rung.name: kept_runs(rung.name) for rung in RUNGS}
    return [Outcome(rung, kept[rung.name], planned[rung.name], borrowed(rung, kept)) for rung in RUNGS]


def borrowed(rung: Rung, kept: Mapping[str, Sequence[Run]]) -> list[Run]:
    """What another rung made of the arms that this one asks about."""
    return [run for run in kept.get(rung.borrows, ()) if run.arm in rung.arms]


def kept_runs(rung: str) -> tuple[Run, ...]:
    """The committed runs of a rung."""
    if not (KEPT / rung).exists():
        return ()
    runs, problems = find_runs([KEPT / rung])
    if problems:
        raise SystemExit("\n".join(problems))
    return runs


def write_report_of(outcome: Outcome) -> None:
    """A report of everything that can be compared, beside the page of results."""
    rung = outcome.rung
    out = PAGES / rung.name
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        options = Options(protocol="area", baseline=rung.baseline)
        report = make_report(outcome.compared, options, title=rung.title)
        write_report(report, Path(folder))
        for name in ("report.md", "curves.png"):
            (out / name).write_bytes((Path(folder) / name).read_bytes())


def main() -> None:
    """Write the reports, the sections and the summary."""
    found = outcomes()
    for outcome in found:
        if outcome.runs:
            write_report_of(outcome)
        put(PAGES / "README.md", outcome.rung.name, section(outcome))
    put(PAGES / "README.md", "spent", total(found))
    put(ROOT / "README.md", "verdicts", summary(found))
    print(f"written: {PAGES.relative_to(ROOT)} and README.md")


if __name__ == "__main__":
    main()
