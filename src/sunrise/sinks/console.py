"""A run on the screen: a live line on a terminal, a line an event elsewhere."""

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sunrise.console import as_table, console, counted, number, say, simulated
from sunrise.run.events import Ended, Evaluated, Event, Failed, MetricsRow, Started, Stepped

REFRESH = 0.2
"""Seconds between two looks of the live line."""


class ConsoleSink:
    """Timesteps, timesteps a second, time left, the last return and the last evaluation; with `tables`, every row."""

    name, essential = "the console", False

    def __init__(self, until: int, enabled: bool, tables: bool = False) -> None:
        self.until, self.tables = until, tables
        self.live = enabled and console.is_terminal
        self.plain = enabled and not console.is_terminal
        self.began, self.first, self.shown = 0.0, 0, 0.0
        self.last_return, self.last_evaluation = "-", "-"
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("timesteps{task.fields[simulated]}  {task.fields[speed]:.0f}/s"),
            TimeRemainingColumn(),
            TextColumn("return {task.fields[last]}  eval {task.fields[evaluation]}"),
            console=console,
            disable=not self.live,
        )
        fields: dict[str, Any] = {"speed": 0.0, "simulated": "", "last": "-", "evaluation": "-"}
        self.task = self.progress.add_task("training", total=until, **fields)

    def __call__(self, event: Event) -> None:
        match event:
            case Stepped():
                if self.live:
                    self._step(event)
            case MetricsRow(row):
                self._row(row)
            case Evaluated():
                self._evaluation(event)
            case Started():
                self.progress.start()
            case Ended() | Failed():
                self.progress.stop()

    def _step(self, event: Stepped) -> None:
        """Show where the run is, a few times a second."""
        if event.episodes:
            self.last_return = number(event.episodes[-1].total)
        now = time.perf_counter()
        if now - self.shown < REFRESH and event.timesteps < self.until:
            return
        self.shown = now
        if not self.first:
            self.began, self.first = now, event.timesteps
        self.progress.update(
            self.task,
            completed=event.timesteps,
            simulated=simulated(event.timesteps, event.env_steps),
            speed=(event.timesteps - self.first) / max(now - self.began, 1e-9),
            last=self.last_return,
            evaluation=self.last_evaluation,
        )

    def _row(self, row: Mapping[str, Any]) -> None:
        if self.plain:
            left = (self.until - row["timesteps"]) / max(row["time/steps_per_s"], 1e-9)
            done = counted(row["timesteps"], row["env_steps"])
            say(
                f"{done} of {self.until:,}  {row['time/steps_per_s']:.0f} timesteps/s  {left / 60:.1f} min left  "
                f"return {number(row.get('rollout/return_mean'))}"
            )
        if self.tables:
            say(as_table(row))

    def _evaluation(self, event: Evaluated) -> None:
        self.last_evaluation = number(event.result.mean)
        if self.plain:
            say(
                f"{counted(event.timesteps, event.env_steps)}  evaluation: mean return {number(event.result.mean)} "
                f"± {number(event.result.std)} over {len(event.result.returns)} episodes"
            )

    def close(self) -> None:
        self.progress.stop()
