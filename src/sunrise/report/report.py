"""A report: what was compared, what must be known before it is believed, tables and curves; and the files of it."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sunrise.errors import SunriseError, near
from sunrise.files.folder import Folder
from sunrise.report.arms import arms as named_arms
from sunrise.report.cautions import Caution, by_pair, cautions, listed
from sunrise.report.comparison import TABLES, Plan, run_table, shared_tasks
from sunrise.report.curves import Curve, curves
from sunrise.report.protocols import protocol, scored
from sunrise.report.results import TABLE, TABLE_COLUMNS, Run, find_runs
from sunrise.report.scores import Choice, choose_scale
from sunrise.report.statistics import performance_profile, stratified_interval
from sunrise.report.tables import CAUTION, FORMS, Table, as_markdown, as_text, markdown, shown, spreadsheet

TABLE_NAMES = ("scores", "aggregates", "comparisons", "tolerance", "settings", "runs")
OURS = {f"{name}.{kind}" for name in TABLE_NAMES for kind in FORMS} | {"curves.png", "curves.svg"}
"""Files that a report may have, or not."""
PROFILE_POINTS = 41
LENGTHS = {"timesteps": "timesteps", "env_steps": "simulator steps"}


@dataclass(frozen=True)
class Options:
    """How runs are compared."""

    protocol: Literal["last", "mean-last", "best", "area"] = "last"
    """How a run's evaluations become its score: the last one, the mean of the last few, the best, or the mean of all
    (the area under the curve)."""
    last_k: int = 5
    """How many evaluations `mean-last` averages."""
    normalise: Choice = "auto"
    """One scale for several tasks: the human's for games, 0 to 1 of each task, or none."""
    baseline: str = ""
    """The arm that others are compared with; default: the one with the fewest members."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    reps: int = 50_000
    """Resamples of the bootstrap."""
    seed: int = 0
    """Seed of the bootstrap."""
    unfinished: bool = False
    """Count runs that are not finished too, as far as they have come."""


class Profile(NamedTuple):
    """The share of an arm's runs above each score, with its interval."""

    arm: str
    thresholds: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Report(NamedTuple):
    """Everything that is written, as data."""

    title: str
    sentence: str
    """What was compared, on what, with how many seeds, by which protocol."""
    about: str
    """How it was run, where somebody said so."""
    cautions: tuple[Caution, ...]
    runs: tuple[Run, ...]
    plan: Plan
    tables: tuple[Table, ...]
    curves: tuple[Curve, ...]
    profiles: tuple[Profile, ...]

    @property
    def warned(self) -> tuple[str, ...]:
        """The sentences of the cautions."""
        return tuple(caution.text for caution in self.cautions)


def make_report(
    runs: Sequence[Run],
    options: Options | None = None,
    problems: Sequence[str] = (),
    title: str = "Comparison of runs",
    about: str = "",
    order: Sequence[str] = (),
) -> Report:
    """A report of some runs; `problems` are cautions of the caller's own, `order` puts arms that it names first."""
    options = options or Options()
    _require(options)
    runs = named_arms(runs)
    if not runs:
        raise SunriseError("there is no run to report.")
    finished = tuple(run for run in runs if run.finished)
    counted = runs if options.unfinished or not finished else finished
    envs = tuple(dict.fromkeys(run.env for run in runs))
    place = {name: number for number, arm in enumerate(order) for name in (arm, arm.replace(",", ""))}
    arms = tuple(sorted(dict.fromkeys(run.arm for run in runs), key=lambda a: place.get(a, len(place))))
    way = protocol(options.protocol, options.last_k)
    scale = choose_scale(options.normalise, scored(counted, way))
    numbers = options.last_k, options.confidence, options.reps, options.seed
    plan = Plan(counted, envs, arms, way, scale, chosen_baseline(runs, arms, options.baseline), *numbers)
    tables = (*(make(plan) for make in TABLES), run_table(runs))
    return Report(
        title,
        in_one_sentence(plan),
        about,
        tuple(cautions(runs, way, counted, plan.baseline, problems)),
        runs,
        plan,
        tuple(table for table in tables if table.rows),
        curves(runs, options.confidence, options.seed),
        profiles(plan),
    )


def report_of(
    places: Iterable[Path], options: Options | None = None, title: str = "Comparison of runs", about: str = ""
) -> Report:
    """A report of every run below some folders."""
    found = find_runs(places)
    return make_report(found.runs, options, found.problems, title, about)


def _require(options: Options) -> None:
    if not 0 < options.confidence < 1:
        raise SunriseError(f"confidence is {options.confidence}, but must be between 0 and 1, such as 0.95.")
    if options.reps < 1:
        raise SunriseError(f"reps is {options.reps}, but must be at least 1.")


def chosen_baseline(runs: Sequence[Run], arms: Sequence[str], asked: str) -> str:
    """The arm that was asked for, or the one with the fewest members."""
    if asked and asked not in arms:
        raise SunriseError(f"there is no arm {asked!r} among {', '.join(arms)}.{near(asked, arms)}")
    sizes = {run.arm: size for run in runs if isinstance(size := run.settings.get("ensemble_size"), int)}
    return asked or min(arms, key=lambda arm: sizes.get(arm, 999))


def in_one_sentence(plan: Plan) -> str:
    """What was compared, on what, with how many seeds, by which protocol."""
    counts = sorted({len(own) for own in by_pair(plan.runs).values()})
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    ended = [run for run in plan.runs if run.evaluations["timesteps"].size]
    length = "".join(
        f", {counted([run.evaluations[name][-1] for run in ended])} {what}"
        for name, what in LENGTHS.items()
        if ended and (name == "timesteps" or any(run.action_repeat > 1 for run in ended))
    )
    what = f"{listed(plan.arms, 6)} compared" if len(plan.arms) > 1 else f"{plan.arms[0]}"
    seeds = f"{runs} seed{'s' * (counts[-1] > 1)}{' each' * (len(plan.arms) * len(plan.envs) > 1)}"
    return f"{what} on {listed(plan.envs, 6)}: {seeds}{length}, by the {plan.protocol.label}."


def counted(ends: Sequence[float]) -> str:
    """A number of steps, or the most of several."""
    return f"{'up to ' if len(set(ends)) > 1 else ''}{int(max(ends)):,}"


def profiles(plan: Plan) -> tuple[Profile, ...]:
    """Performance profiles of the arms over the tasks that all of them have."""
    envs = shared_tasks(plan)
    if not envs:
        return ()
    tables = [plan.table(arm, envs) for arm in plan.arms]
    low, high = min(float(table.min()) for table in tables), max(float(table.max()) for table in tables)
    margin = 0.02 * (high - low) or 1.0
    thresholds = np.linspace(low - margin, high + margin, PROFILE_POINTS)
    found = []
    for arm, table in zip(plan.arms, tables, strict=True):
        interval = stratified_interval(
            table, lambda t: performance_profile(t, thresholds), min(plan.reps, 2000), plan.confidence, plan.seed
        )
        found.append(Profile(arm, thresholds, performance_profile(table, thresholds), *interval))
    return tuple(found)


def as_screen(report: Report) -> str:
    """The sentence, the cautions once, and every table but the list of runs."""
    said = filter(None, (report.title, report.sentence, report.about))
    top = [*map(shown, said), *(CAUTION + shown(text) for text in report.warned)]
    tables = [as_text(table) for table in report.tables if table.name != "runs"]
    return "\n\n".join(["\n".join(top), *tables])


def as_document(report: Report, pictures: Sequence[str]) -> str:
    """One Markdown document with all tables."""
    warned = "\n>\n".join(f"> **{CAUTION.strip()}** {markdown(text)}" for text in report.warned)
    tables = ["#" + as_markdown(table).rstrip() for table in report.tables]
    drawn = [f"![learning curves]({name})" for name in pictures if name.endswith(".png")]
    said = [markdown(text) for text in (report.sentence, report.about) if text]
    parts = [f"# {markdown(report.title)}", *said, warned, *drawn, *tables]
    return "\n\n".join(filter(None, parts)) + "\n"


def evaluation_rows(runs: Sequence[Run]) -> str:
    """results.csv: a row an evaluation of every run; `read_table` reads it again."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TABLE_COLUMNS)
    for run in runs:
        own = run.evaluations
        for place in range(own["timesteps"].size):
            values: list[Any] = [own[name][place] if name in own else np.nan for name in TABLE_COLUMNS[3:]]
            cells = ["" if not np.isfinite(v) else int(v) if float(v).is_integer() else float(v) for v in values]
            writer.writerow([spreadsheet(run.env), spreadsheet(run.arm), run.seed, *cells])
    return text.getvalue()


def write_report(report: Report, out: Path, figures: bool = True) -> list[str]:
    """All files of a report in a folder; their names."""
    folder = Folder(out)
    folder.make()
    again = all(folder.status(name) is not None for name in (TABLE, "report.md"))
    files = {TABLE: evaluation_rows(report.runs)}
    for table in report.tables:
        labelled = table._replace(title=" ".join(filter(None, (table.title + ".", report.sentence, report.about))))
        files |= {f"{table.name}.{kind}": form(labelled, report.warned) for kind, form in FORMS.items()}
    pictures: list[str] = []
    if figures:
        from sunrise.report.figures import draw_curves, write_figure

        band = f"Bands: {report.plan.percent} interval of the mean; faint: single runs."
        said = " ".join(filter(None, (report.sentence, report.about)))
        pictures = write_figure(draw_curves(report.curves, said, report.warned, band), folder, "curves")
    files["report.md"] = as_document(report, pictures)
    from sunrise.report.page.report import PAGE, page_of

    files[PAGE] = page_of(report, out)
    for name, content in files.items():
        folder.write(name, content.encode())
    for name in OURS - files.keys() - set(pictures) if again else ():  # an earlier report's, of other runs
        folder.remove(name)
    return [*files, *pictures]
