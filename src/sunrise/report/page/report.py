"""From a report, or from runs that go on, to what the page shows."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sunrise.report.comparison import ALL_TASKS
from sunrise.report.page.content import Link, content_of
from sunrise.report.page.html import page_html
from sunrise.report.page.videos import videos_for
from sunrise.report.report import Options, Report, make_report
from sunrise.report.results import Found
from sunrise.report.tables import Cell, Estimate, Table
from sunrise.version import __version__

PAGE = "index.html"
SHOWN = ("scores", "aggregates", "comparisons", "tolerance")
"""Tables of the section of scores; settings and runs have sections of their own."""
WHILE_RUNNING = Options(unfinished=True, reps=2000)
"""A look at runs that go on is taken often, and counts them as far as they have come."""


def page_of(report: Report, out: Path) -> str:
    """The page of a report that lies in the folder `out`."""
    return page_html(report_content(report, videos_for(out)))


def live_content(found: Found, link: Link) -> dict[str, Any]:
    """Runs as they are just now; there may be none yet."""
    if found.runs:
        return report_content(make_report(found.runs, WHILE_RUNNING, found.problems, "Runs that go on"), link)
    words = {
        "title": "No runs yet",
        "sentence": "There is no run in or below the folder that is watched. What begins there will show up here.",
        "warnings": list(found.problems),
        "made": made(0),
    }
    return content_of((), (), words, {"tables": [], "intervals": [], "profiles": []}, link)


def report_content(report: Report, link: Link) -> dict[str, Any]:
    """Everything that the page shows of a report."""
    words = {
        "title": report.title,
        "sentence": report.sentence,
        "about": report.about,
        "warnings": list(report.warned),
        "made": made(len(report.runs)),
    }
    tables = {table.name: table for table in report.tables}
    scores = {
        "tables": [table_content(tables[name]) for name in SHOWN if name in tables],
        "intervals": [*aggregates(report, tables), *comparisons(report, tables)],
        "profiles": profiles(report),
    }
    return content_of(report.runs, report.plan.arms, words, scores, link)


def made(runs: int) -> str:
    """Who made the page."""
    return f"Made by SUNRISE {__version__} from {runs} run{'s' * (runs != 1)}."


def table_content(table: Table) -> dict[str, Any]:
    """A table, each cell with the text to show and what to sort by."""
    numeric = [all(not isinstance(row[place], str) for row in table.rows) for place in range(len(table.header))]
    return {
        "title": table.title,
        "note": table.note,
        "columns": [{"name": name, "number": is_number} for name, is_number in zip(table.header, numeric, strict=True)],
        "rows": [[cell_content(cell) for cell in row] for row in table.rows],
    }


def cell_content(cell: Cell) -> Any:
    """A text, a number, or an estimate in its parts."""
    if isinstance(cell, Estimate):
        parts = {name: known(getattr(cell, name)) for name in ("value", "spread", "low", "high")}
        return {**parts, "runs": cell.runs}
    return known(cell) if isinstance(cell, float) else cell


def known(value: float) -> float | None:
    """A number, or nothing where it is none."""
    return value if math.isfinite(value) else None


def interval_row(label: str, arm: str, found: Estimate) -> dict[str, Any]:
    """A point and its interval."""
    return {"label": label, "arm": arm, "point": found.value, "low": known(found.low), "high": known(found.high)}


def aggregates(report: Report, tables: dict[str, Table]) -> list[dict[str, Any]]:
    """The interquartile mean of every arm over all tasks, as a picture."""
    table = tables.get("aggregates")
    if table is None:
        return []
    name = "interquartile mean"
    rows = [(row[0], row[table.header.index(name)]) for row in table.rows]
    title = "Interquartile mean" + (" over all tasks" if len(report.plan.envs) > 1 else "")
    return pictured(title, None, [(str(arm), str(arm), found) for arm, found in rows], table.note)


def comparisons(report: Report, tables: dict[str, Table]) -> list[dict[str, Any]]:
    """Every arm against the baseline: the difference where all is on one scale, and the chance to be better."""
    table = tables.get("comparisons")
    if table is None:
        return []
    several = len(report.plan.envs) > 1
    found = []
    for name, zero in (("difference of means", 0.0), ("chance that a run is better", 0.5)):
        place = table.header.index(name)
        rows = [row for row in table.rows if zero or not several or row[0] == ALL_TASKS]
        labelled = [(f"{row[1]}, {row[0]}" if several else str(row[1]), str(row[1]), row[place]) for row in rows]
        title = f"{name[0].upper()}{name[1:]}, against {report.plan.baseline}"
        found += pictured(title, zero, labelled, f"Dashed: no difference. {report.plan.percent} intervals.")
    return found


def pictured(title: str, zero: float | None, rows: Sequence[tuple[str, str, Cell]], note: str) -> list[dict[str, Any]]:
    """A picture of estimates, where there are any."""
    own = [
        interval_row(label, arm, found)
        for label, arm, found in rows
        if isinstance(found, Estimate) and math.isfinite(found.value)
    ]
    return [{"title": title, "zero": zero, "rows": own, "note": note}] if own else []


def profiles(report: Report) -> list[dict[str, Any]]:
    """The performance profiles of the arms."""
    if not report.profiles:
        return []
    lines = [
        {"arm": one.arm, "values": list(one.share), "low": list(one.low), "high": list(one.high)}
        for one in report.profiles
    ]
    thresholds = list(report.profiles[0].thresholds)
    bands = f"Bands: {report.plan.percent} intervals."
    note = f"The share of runs whose score is above. Scores are {report.plan.scale.label}. {bands}"
    return [{"title": "Performance profile", "x": "score", "thresholds": thresholds, "lines": lines, "note": note}]
