"""Many runs at a glance, read from their folders alone: the same here, on a cluster and from another terminal."""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sunrise.console import console, say
from sunrise.errors import SunriseError
from sunrise.experiments.runs import Run
from sunrise.experiments.trial import read_failure
from sunrise.files.folder import Folder
from sunrise.store.ownership import owner_of
from sunrise.store.run_folder import RunFolder

TAIL, LARGEST = 2**14, 2**40
EVERY = 1.0
ORDER = ("running", "failed", "stopped", "waiting", "finished")
"""Which runs are shown first where there is not room for all."""


class Glance(NamedTuple):
    """How a run is just now."""

    name: str
    state: str
    host: str
    timesteps: int
    total: int
    speed: float
    """Timesteps a second; 0 where it does not run."""
    evaluation: float
    """The mean return of the last one; NaN where there is none."""
    why: str

    @property
    def left(self) -> float:
        """Seconds to its end, at this speed."""
        return (self.total - self.timesteps) / self.speed if self.speed else math.nan


def glance(path: Path, total: int = 0) -> Glance:
    """A run as its folder says; `total` is how long it is asked to be, where that is known."""
    folder, files = RunFolder(path), Folder(path)
    status, row = folder.read_status(), last_metrics(files)
    state = status.get("status", "waiting")
    why = read_failure(path) or str(status.get("error", "")) * (state == "failed")
    if state == "finished" and status["timesteps"] < total:
        state = "waiting"
    if folder.is_in_use():
        state, why = "running", ""
    elif why and state != "finished":
        state = "failed"
    owner = owner_of(files)
    timesteps = max(int(status.get("timesteps", 0)), int(row.get("timesteps", 0)))
    speed = float(row.get("time/steps_per_s") or 0.0) if state == "running" else 0.0
    host = owner.host if owner is not None and state != "waiting" else ""
    total = total or planned(folder)
    return Glance(path.name, state, host, timesteps, total, speed, last_evaluation(files), why)


def planned(folder: RunFolder) -> int:
    """How long a run is to be, by its own word."""
    with suppress(SunriseError):
        total = folder.config()[0]["settings"].get("total_timesteps")
        return total if type(total) is int else 0
    return 0


def last_lines(files: Folder, name: str) -> list[str]:
    """The whole lines at the end of a file that somebody may be writing to."""
    try:
        with files.open(name, LARGEST) as file:
            start = max(file.seek(0, os.SEEK_END) - TAIL, 0)
            file.seek(start)
            lines = file.read(TAIL).decode(errors="replace").split("\n")[:-1]
    except (OSError, SunriseError):
        return []
    return lines[1:] if start else lines


def last_metrics(files: Folder) -> dict[str, Any]:
    """The newest row of metrics; empty where there is none."""
    with suppress(ValueError, IndexError):
        row = json.loads(last_lines(files, "metrics.jsonl")[-1])
        numbers = {name: row.get(name) for name in ("timesteps", "time/steps_per_s")} if isinstance(row, dict) else {}
        return {name: value for name, value in numbers.items() if isinstance(value, int | float)}
    return {}


def last_evaluation(files: Folder) -> float:
    """The mean return of the newest evaluation."""
    with suppress(ValueError, IndexError):
        return float(last_lines(files, "eval.csv")[-1].split(",")[1])
    return math.nan


# -- pictures of it ----------------------------------------------------------------------------------------------------


def clock(seconds: float) -> str:
    """A time left, as short as a column."""
    if not math.isfinite(seconds):
        return "-"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}:{minutes:02d} h" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"


def totals(glances: Sequence[Glance]) -> str:
    """How many runs are how, and how long the rest may take."""
    counts = Counter(one.state for one in glances)
    states = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
    speed = sum(one.speed for one in glances)
    left = sum(max(one.total - one.timesteps, 0) for one in glances if one.state in ("running", "waiting", "stopped"))
    rest = f"; about {clock(left / speed)} left at {speed:,.0f} timesteps/s" if speed and left else ""
    return f"{len(glances)} trials: {states}{rest}"


def picture(glances: Sequence[Glance], height: int) -> RenderableType:
    """The table, the totals and the failures."""
    table = Table("trial", "state", "host", box=None, pad_edge=False)
    for name in ("timesteps", "steps/s", "last evaluation", "left"):
        table.add_column(name, justify="right")
    failures = [Text(f"{one.name}: {one.why}", style="red") for one in glances if one.state == "failed"][-5:]
    room = max(height - 4 - len(failures), 3)
    shown = sorted(glances, key=lambda one: ORDER.index(one.state) if one.state in ORDER else 0)
    for one in shown[:room]:
        value = "-" if math.isnan(one.evaluation) else f"{one.evaluation:,.1f}"
        speed = f"{one.speed:,.0f}" if one.speed else "-"
        where = f"{one.timesteps:,} of {one.total:,}" if one.total else f"{one.timesteps:,}"
        table.add_row(Text(one.name), one.state, Text(one.host), where, speed, value, clock(one.left))
    more = [Text(f"and {len(shown) - room} more")] if len(shown) > room else []
    return Group(table, *more, Text(totals(glances), style="bold"), *failures)


def plain_line(one: Glance) -> str:
    """A run in one line."""
    value = "-" if math.isnan(one.evaluation) else f"{one.evaluation:.1f}"
    done = f"{one.timesteps:,} of {one.total:,} timesteps"
    on, speed = f" on {one.host}" * bool(one.host), f", {one.speed:.0f}/s" * bool(one.speed)
    left = f", {clock(one.left)} left" * bool(one.speed)
    return f"{one.name}: {one.state}{on}, {done}{speed}, last evaluation {value}{left}{f': {one.why}' * bool(one.why)}"


class Show:
    """What a person sees while runs go on: a table on a terminal, a line an event elsewhere."""

    def __init__(self, runs: Sequence[Run], table: bool) -> None:
        self.runs, self.number = runs, {run.folder: n for n, run in enumerate(runs, 1)}
        self.live = Live(console=console, auto_refresh=False) if table and console.is_terminal else None
        self.looked = -math.inf
        self.over: dict[Path, Glance] = {}

    def __enter__(self) -> "Show":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.looked = -math.inf
            self.refresh()
            self.live.stop()

    def label(self, run: Run) -> str:
        return f"[{self.number[run.folder]}/{len(self.runs)}] {run.arm.name} on {run.env}, seed {run.seed}"

    def began(self, run: Run, attempt: int) -> None:
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self._line(f"{self.label(run)}: {run.folder}{again}")

    def finished(self, run: Run) -> None:
        score = last_evaluation(Folder(run.folder))
        self._line(f"{self.label(run)}: finished" + ("" if math.isnan(score) else f", last evaluation {score:.1f}"))

    def lost(self, run: Run, why: str) -> None:
        self._line(f"{self.label(run)}: {why}; it is tried again")

    def failed(self, run: Run, why: str) -> None:
        self._line(f"{self.label(run)}: FAILED: {why}")

    def _line(self, text: str) -> None:
        if self.live is None:
            say(text)

    def refresh(self) -> None:
        """Look at the folders again, if it is time; those that are finished are known."""
        if self.live is None or time.monotonic() - self.looked < EVERY:
            return
        glances = []
        for run in self.runs:
            one = self.over.get(run.folder) or glance(run.folder, run.settings["total_timesteps"])
            if one.state == "finished":
                self.over[run.folder] = one
            glances.append(one)
        self.live.update(picture(glances, console.height), refresh=True)
        self.looked = time.monotonic()


def folders_of(path: Path) -> list[Path]:
    """The runs' folders of a sweep."""
    inside = path / "runs"
    if not inside.is_dir():
        raise SunriseError(f"{path} is no sweep's folder: it has no folder `runs`.")
    return [inside / name for name in Folder(path).sub("runs").folders()]


def watch(path: Path, again: Callable[[], bool] = lambda: True) -> None:
    """Show a sweep that somebody else runs, until Ctrl-C; without a terminal, as it is now."""
    if not console.is_terminal:
        glances = [glance(folder) for folder in folders_of(path)]
        for one in glances:
            print(plain_line(one))
        print(totals(glances))
        return
    folders_of(path)
    with Live(console=console, auto_refresh=False) as live, suppress(KeyboardInterrupt):
        while True:
            glances = [glance(folder) for folder in folders_of(path)]
            live.update(picture(glances, console.height), refresh=True)
            if not again():
                return
            time.sleep(EVERY)
