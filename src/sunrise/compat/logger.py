"""`model.logger`: what a callback records beside our rows. Stable-Baselines3's own where that has been imported."""

import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from sunrise.console import as_table, say
from sunrise.run.events import Ended, Evaluated, Event, MetricsRow, Started, Stepped
from sunrise.sinks.tensorboard import TensorBoard

EpisodeInfos = deque[dict[str, Any]]


class Format(Protocol):
    """Where records are written to."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Write values by name, at a timestep."""

    def close(self) -> None:
        """Nothing more will come."""


class Table:
    """Records on the screen."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Show them as a table."""
        if shown := {name: value for name, value in key_values.items() if "stdout" not in key_excluded[name]}:
            say(as_table({"timesteps": step, **shown}))

    def close(self) -> None:
        pass


class Events:
    """Records as TensorBoard's scalars."""

    def __init__(self, sink: TensorBoard) -> None:
        self.sink = sink

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Write what is a number."""
        scalars = {n: v for n, v in key_values.items() if "tensorboard" not in key_excluded[n]}
        numbers = {n: float(v) for n, v in scalars.items() if isinstance(v, int | float | np.number)}
        if numbers:
            self.sink.add(numbers, step)

    def close(self) -> None:
        self.sink.close()


class Logger:
    """The methods of Stable-Baselines3's Logger that callbacks use."""

    def __init__(self, folder: str | None = None, output_formats: list[Format] | None = None) -> None:
        self.dir, self.output_formats = folder, output_formats or []
        self.name_to_value: dict[str, Any] = {}
        self.name_to_count: dict[str, int] = {}
        self.name_to_excluded: dict[str, tuple[str, ...]] = {}

    def record(self, key: str, value: Any, exclude: str | tuple[str, ...] | None = None) -> None:
        """Keep a value until the next `dump`; the last one counts."""
        self.name_to_value[key] = value
        self.name_to_excluded[key] = (exclude,) if isinstance(exclude, str) else exclude or ()

    def record_mean(self, key: str, value: float | None, exclude: str | tuple[str, ...] | None = None) -> None:
        """Keep the mean of all values until the next `dump`."""
        if value is None:
            return
        count = self.name_to_count.get(key, 0)
        old = self.name_to_value.get(key, 0.0)
        self.record(key, old * count / (count + 1) + value / (count + 1), exclude)
        self.name_to_count[key] = count + 1

    def dump(self, step: int = 0) -> None:
        """Write all that was recorded."""
        for each in self.output_formats:
            each.write(self.name_to_value, self.name_to_excluded, step)
        self.name_to_value, self.name_to_count, self.name_to_excluded = {}, {}, {}

    def get_dir(self) -> str | None:
        """The folder of what is written, if there is one."""
        return self.dir

    def close(self) -> None:
        """Close what is written to."""
        for each in self.output_formats:
            each.close()


class Logging:
    """The logger of a model: the user's, Stable-Baselines3's, or our small one."""

    def __init__(self) -> None:
        self.logger: Any = Logger()
        self.is_users = False

    @property
    def takes_rows(self) -> bool:
        """Whether our rows go to it too, and to no sink of ours besides."""
        return not isinstance(self.logger, Logger)

    def use(self, logger: Any) -> None:
        """Take the user's."""
        self.logger, self.is_users = logger, True

    def begin(self, verbose: int, folder: str | None, name: str, anew: bool, sink: TensorBoard | None) -> None:
        """Make the logger of a training; `sink` is our own file of events, where there is one."""
        if self.is_users:
            return
        if "stable_baselines3" in sys.modules:
            from stable_baselines3.common.utils import configure_logger

            self.logger = configure_logger(verbose, folder, name, anew)
            return
        formats: list[Format] = [Table()] if verbose else []
        self.logger = Logger(None if sink is None else str(sink.folder.path), formats)
        if sink is not None:
            self.logger.output_formats.append(Events(sink))


class LoggerSink:
    """Brings rows to the logger, by our names and by Stable-Baselines3's, and has it write what was recorded.

    It writes at the end of a step, so that what callbacks record at this step is with its row.
    """

    name, essential = "the logger", False

    def __init__(self, logging: Logging, episodes: EpisodeInfos) -> None:
        self.logging, self.episodes = logging, episodes
        self.began, self.first = time.time(), 0
        self.row: Mapping[str, Any] | None = None
        self.due = False
        """Whether there is a row that has not been written yet."""

    def __call__(self, event: Event) -> None:
        logger, rows = self.logging.logger, self.logging.takes_rows
        match event:
            case Started():
                self.began, self.first = time.time(), event.timesteps
            case Stepped():
                seconds = round(time.time() - self.began, 6)
                self.episodes.extend({"r": e.total, "l": e.length, "t": seconds} for e in event.episodes)
                self._write(event.timesteps)
            case MetricsRow(row):
                self.due = True
                self.row = row
            case Evaluated():
                if rows:
                    summary = event.summary()
                    self._record({f"eval/{name}": value for name, value in summary.items()})
                    logger.dump(event.timesteps)
            case Ended(timesteps):
                self.due = self.due or bool(logger.name_to_value)
                self._write(timesteps)

    def _write(self, timesteps: int) -> None:
        if not self.due:
            return
        if self.logging.takes_rows and self.row is not None:
            self._record(self._named(self.row, timesteps))
        self.due, self.row = False, None
        self.logging.logger.dump(timesteps)

    def _named(self, row: Mapping[str, Any], timesteps: int) -> dict[str, Any]:
        values = {name if "/" in name else f"run/{name}": value for name, value in row.items()}
        seconds = max(time.time() - self.began, 1e-9)
        values |= {"time/episodes": row["episodes"], "time/total_timesteps": timesteps}
        values |= {"time/fps": int((timesteps - self.first) / seconds), "time/time_elapsed": int(seconds)}
        if self.episodes:
            values["rollout/ep_rew_mean"] = float(np.mean([episode["r"] for episode in self.episodes]))
            values["rollout/ep_len_mean"] = float(np.mean([episode["l"] for episode in self.episodes]))
        return values

    def _record(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, int | float):
                self.logging.logger.record(name, value)

    def close(self) -> None:
        if not self.logging.is_users:
            self.logging.logger.close()
