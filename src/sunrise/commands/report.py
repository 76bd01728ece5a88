"""`sunrise report`: tables, curves and one page from the folders of runs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from sunrise.errors import SunriseError
from sunrise.report.report import Options, Report


@dataclass
class Flags:
    """Compare the runs below some folders: tables, curves, intervals, and what to know before they are believed."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders with runs in or below them, or a `results.csv` of an earlier report."""
    out: Path
    """Folder of the report."""
    options: Annotated[Options, tyro.conf.arg(name="")] = field(default_factory=Options)
    """How they are compared."""
    title: str = "Comparison of runs"
    """What the report is called."""
    about: str = ""
    """How the runs were made, where that is to be said beside the numbers."""
    figures: bool = True
    """Draw the curves as PNG and SVG too."""


def run(arguments: Sequence[str]) -> None:
    """Read, compare, write, and show the tables."""
    from sunrise.report.report import report_of

    flags = tyro.cli(Flags, args=arguments, prog="sunrise report")
    if not flags.runs:
        raise SunriseError("name the folders of the runs: sunrise report RUNS --out DIR.")
    show(report_of(flags.runs, flags.options, flags.title, flags.about), flags.out, flags.figures)


def finish(
    folders: Sequence[Path],
    out: Path,
    title: str,
    about: str = "",
    cautions: Sequence[str] = (),
    arms: Sequence[str] = (),
    figures: bool = True,
) -> None:
    """The report with which a command that trained ends; without a run that was evaluated there is none."""
    from sunrise.report.report import make_report
    from sunrise.report.results import find_runs

    if not folders:
        return
    found = find_runs(folders)
    if any(run.evaluations["timesteps"].size for run in found.runs):
        show(make_report(found.runs, None, (*cautions, *found.problems), title, about, arms), out, figures)


def show(report: Report, out: Path, figures: bool = True) -> None:
    """Write a report, its cautions to stderr, and its tables to the screen."""
    from sunrise.report.report import as_screen, write_report
    from sunrise.report.tables import CAUTION, shown

    for text in report.warned:
        print(CAUTION + shown(text), file=sys.stderr)
    written = write_report(report, out, figures)
    print(as_screen(report))
    print(f"Written to {out}: {', '.join(written)}")
