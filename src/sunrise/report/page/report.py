"""From a report, or from runs that go on, to what the page shows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sunrise.report.arms import arms
from sunrise.report.page.content import content_of
from sunrise.report.results import Found, Run

NO_SCORES: dict[str, Any] = {"tables": [], "intervals": [], "profiles": []}


def live_content(found: Found, link: Callable[[Run, Path], str]) -> dict[str, Any]:
    """Runs as they are just now."""
    runs = arms(found.runs)
    names = list(dict.fromkeys(run.arm for run in runs))
    words = {"title": "Runs", "sentence": "", "warnings": list(found.problems), "made": ""}
    return content_of(runs, names, words, NO_SCORES, link)
