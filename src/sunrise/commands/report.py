"""`sunrise report`: tables, curves and one page from the folders of runs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from sunrise.errors import SunriseError
from sunrise.report.report import Options


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
    figures: bool = True
    """Draw the curves as PNG and SVG too."""


def run(arguments: Sequence[str]) -> None:
    """Read, compare, write, and show the tables."""
    from sunrise.report.report import as_screen, report_of, write_report
    from sunrise.report.tables import CAUTION, shown

    flags = tyro.cli(Flags, args=arguments, prog="sunrise report")
    if not flags.runs:
        raise SunriseError("name the folders of the runs: sunrise report RUNS --out DIR.")
    report = report_of(flags.runs, flags.options, flags.title)
    for text in report.warned:
        print(CAUTION + shown(text), file=sys.stderr)
    written = write_report(report, flags.out, flags.figures)
    print(as_screen(report))
    print(f"Written to {flags.out}: {', '.join(written)}")
