"""What docs/results/protocol.md asked, answered from the committed rows: writes docs/results/ anew.

`.venv/bin/python benchmarks/verdicts.py` needs no run: it reads benchmarks/results/evidence/. Each rung gets a report,
as `sunrise report --protocol area` writes it, and in docs/results/README.md the differences that decide, with verdicts.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evidence import KEPT, ROOT, ladder
from sunrise.report import statistics
from sunrise.report.protocols import AREA, LAST, Protocol
from sunrise.report.report import Options, make_report, write_report
from sunrise.report.results import Run, find_runs

PAGES = ROOT / "docs" / "results"
FEWEST = 3
"""Runs of an arm without which nothing is compared."""
REACHED = 100.0
"""The return of rung 3 whose time is reported."""


class Question(NamedTuple):
    """Two arms of a rung, compared on some tasks."""

    text: str
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
    conditions: tuple[str, ...] = ("",)
    """What else is told apart, by the end of an arm's name."""


SAME = (Question("is ours the learner that Stable-Baselines3's is?", "ours", "sb3"),)
TABLE1 = (Question("does SUNRISE?", "SUNRISE", "N=1"), Question("does `relative` beside it?", "relative", "SUNRISE"))
RUNGS = (
    Rung(
        "1-base",
        "Our base learners are the base learners",
        SAME,
        same_is_right=True,
    ),
    Rung("1-again", "The same SAC once more, with seven other seeds", SAME, same_is_right=True),
    Rung(
        "2-small",
        "Small and powered: which ingredient does what",
        (
            Question("does the ensemble help at all?", "none", "N=1"),
            Question("does the paper's weight?", "confidence", "none"),
            Question("is it more than random weights?", "confidence", "random"),
            Question("does `relative`?", "relative", "none"),
            Question("does `inverse_variance`?", "inverse variance", "none"),
            Question("does UCB?", "confidence", "member"),
        ),
        needed=2,
        conditions=("", " noise"),
    ),
    Rung(
        "3-sparse",
        "Figure 3b again: UCB under a sparse reward",
        (
            Question("does UCB with λ = 1?", "ucb1", "member"),
            Question("does UCB with λ = 10?", "ucb10", "member"),
            Question("does the ensemble at all?", "member", "N=1"),
        ),
    ),
    Rung("4-table1", "Table 1 at 100,000 timesteps: Hopper", TABLE1),
    Rung("5-table1", "Table 1 at 100,000 timesteps: other tasks", TABLE1),
    Rung(
        "5-atari",
        "One Atari game",
        (
            Question("does SUNRISE?", "SUNRISE", "N=1"),
            Question("is it more than half the step?", "SUNRISE", "constant"),
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


def scores(runs: Sequence[Run], env: str, arm: str, way: Protocol) -> np.ndarray:
    """The scores of one arm on one task."""
    return np.array([way.score(run) for run in runs if run.env == env and run.arm == arm])


def difference(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Of the means, with its interval."""
    low, high = statistics.difference_interval(x, y, statistics.mean)
    return float(x.mean() - y.mean()), low, high


def answers(rung: Rung, question: Question, runs: Sequence[Run]) -> Iterator[Answer]:
    """What can be said by now: tasks and conditions with enough runs of both arms."""
    for env in dict.fromkeys(run.env for run in runs):
        for condition in rung.conditions:
            pair = [question.arm + condition, question.against + condition]
            area, last = ([scores(runs, env, arm, way) for arm in pair] for way in (AREA, LAST))
            if min(map(len, area)) < FEWEST:
                continue
            counts, means = (len(area[0]), len(area[1])), (float(area[0].mean()), float(area[1].mean()))
            yield Answer(
                env + condition.replace(" noise", ", noisy"), counts, means, difference(*area), difference(*last)
            )


def verdict(rung: Rung, found: Sequence[Answer]) -> str:
    """By the rule that was written down before the runs."""
    up, down = sum(a.sign > 0 for a in found), sum(a.sign < 0 for a in found)
    if rung.same_is_right:
        return "confirmed: no interval leaves out 0" if not up + down else "refuted: an interval leaves out 0"
    if up >= rung.needed and not down:
        return "confirmed"
    if down >= rung.needed and not up:
        return "refuted"
    return "undecided"


def shown(estimate: tuple[float, float, float]) -> str:
    """A difference with its interval."""
    return f"{estimate[0]:+.3g} [{estimate[1]:.3g}, {estimate[2]:.3g}]"


def hours(runs: Sequence[Run]) -> float:
    """Machine hours of some runs, a core each, as far as their metrics have the time."""
    return sum(float(np.nanmax(run.metrics["time/elapsed_s"])) for run in runs if run.metrics) / 3600


def time_to(runs: Sequence[Run]) -> list[str]:
    """Rung 3: timesteps to the first evaluation of 100 or more, arm by arm."""
    rows = ["| arm | runs | that got there | timesteps, those that never did counted whole |", "|---|---|---|---|"]
    for arm in dict.fromkeys(run.arm for run in runs):
        own = [run for run in runs if run.arm == arm]
        first = [np.flatnonzero(run.evaluations["mean_return"] >= REACHED) for run in own]
        steps = [
            run.evaluations["timesteps"][f[0]] if f.size else run.total_timesteps
            for run, f in zip(own, first, strict=True)
        ]
        low, high = statistics.stratified_interval(np.array(steps, float), statistics.mean)
        got = sum(bool(f.size) for f in first)
        rows.append(f"| {arm} | {len(own)} | {got} | {np.mean(steps):,.0f} [{low:,.0f}, {high:,.0f}] |")
    return [f"Timesteps to the first evaluation of {REACHED:.0f} or more:", "", *rows, ""]


def section(rung: Rung, runs: Sequence[Run], planned: int) -> list[str]:
    """A rung of the page."""
    again = f"`.venv/bin/python benchmarks/evidence.py --rungs {rung.name}`"
    spent = hours(runs)
    lines = [f"## {rung.name[0]}. {rung.title}", ""]
    lines += [
        f"{len(runs)} of {planned} runs are there; {spent:.1f} hours of one core by the clock (ours alone). "
        f"Again: {again}."
    ]
    if runs:
        lines[-1] += f" Everything that was compared: [report]({rung.name}/report.md)."
    lines.append("")
    asked = [(question, list(answers(rung, question, runs))) for question in rung.questions]
    if any(found for _, found in asked):
        lines += [
            "| question | task | runs | areas | difference of areas [95 %] | of last evaluations [95 %] |",
            "|---|---|---|---|---|---|",
        ]
        for question, found in asked:
            for a in found:
                who = f"{question.arm} − {question.against}: {question.text}"
                counts, means = f"{a.runs[0]}, {a.runs[1]}", f"{a.means[0]:.4g}, {a.means[1]:.4g}"
                bold = "**" if a.sign else ""
                lines.append(
                    f"| {who} | {a.task} | {counts} | {means} | {bold}{shown(a.area)}{bold} | {shown(a.last)} |"
                )
        lines.append("")
        lines += [
            f"- {question.text} **{verdict(rung, found)}** ({len(found)} intervals)."
            for question, found in asked
            if found
        ]
        if len(runs) < planned:
            lines.append("- Not all runs are there: these verdicts may change.")
        lines.append("")
    return lines + (time_to(runs) if rung.name == "3-sparse" and runs else [])


def main() -> None:
    """Write the reports and the sections."""
    planned: dict[str, int] = {}
    for run in ladder():
        planned[run.rung] = planned.get(run.rung, 0) + 1
    lines: list[str] = []
    for rung in RUNGS:
        found = find_runs([KEPT / rung.name]).runs if (KEPT / rung.name).exists() else ()
        if found:
            with tempfile.TemporaryDirectory() as folder:
                report = make_report(found, Options(protocol="area"), title=rung.title)
                write_report(report, Path(folder))
                out = PAGES / rung.name
                out.mkdir(exist_ok=True)
                for name in ("report.md", "curves.png"):
                    (out / name).write_bytes((Path(folder) / name).read_bytes())
        lines += section(rung, found, planned[rung.name])
    path, mark, end = PAGES / "README.md", "<!-- verdicts -->", "<!-- /verdicts -->"
    before, rest = path.read_text().split(mark, 1)
    path.write_text(f"{before}{mark}\n{chr(10).join(lines).rstrip()}\n{end}{rest.split(end, 1)[1]}")
    print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
