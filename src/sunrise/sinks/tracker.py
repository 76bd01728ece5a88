"""Trackers: services that show runs. A run never waits for one, and none can end it.

The training thread hands rows over and goes on; a thread of the tracker's own delivers them. Whatever fails is opened
again with the next row, and what the tracker lacks then is taken from the run's own files. So a run that was killed and
goes on continues the same curve: what the tracker has already is not sent again, what it missed is.
"""

import importlib.util
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, Protocol

from sunrise.config.settings import flatten_config
from sunrise.errors import DamagedError, MissingExtraError
from sunrise.files import documents
from sunrise.run.events import Ended, Evaluated, Event, Failed, MetricsRow, Started
from sunrise.sinks.scalars import Kind, Scalars, of_evaluation, of_event, of_metrics
from sunrise.store.run_folder import RunFolder

log = logging.getLogger("sunrise")
LINGER = 30.0
"""Seconds that the end of a run waits for a tracker."""
MOST = 10_000
"""Rows that wait for a slow tracker; later ones are read from the run's files when it has done these."""
QUICK, PATIENCE, LAST_TRIES = 1.0, 10, 3
"""A failure that took more seconds than the first is followed by as many times that without an attempt: a service that
is away does not delay the end twice. One that fails at once is tried again so often at the end."""
Status = Literal["finished", "stopped", "failed"]
Has = Callable[[Kind, int], bool]
"""kind, step -> whether the tracker has such a row already."""


class Memory:
    """What a run's folder remembers of a tracker, such as the id that the run has there."""

    def __init__(self, folder: RunFolder | None, name: str) -> None:
        self.folder, self.name = folder, name
        self.known: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """What is known; nothing where there is no such file, or a damaged one."""
        if self.folder is not None:
            try:
                content = self.folder.files.read(self.name, documents.SMALL)
                known, seal = documents.unsealed(documents.decode_mapping(content))
            except (OSError, ValueError, DamagedError):
                return {}
            return known if seal == "whole" else {}
        return self.known

    def write(self, known: Mapping[str, Any]) -> None:
        """Know this from now on."""
        self.known = dict(known)
        if self.folder is not None:
            self.folder.files.write(self.name, documents.sealed(self.known))

    def id(self, pattern: str) -> str | None:
        """The run's id, if it looks like one."""
        found = self.read().get("id")
        return found if isinstance(found, str) and re.fullmatch(pattern, found) else None


class Told(NamedTuple):
    """What a tracker is told of a run when it is opened."""

    name: str
    settings: dict[str, Any]
    """Every setting, and `algo`."""
    memory: Memory
    path: Path | None
    """The run's folder, if it has one."""


class Tracker(Protocol):
    """One service. Its methods may take long, and may raise; they are called by one thread."""

    name: str
    extra: str
    """What has to be installed for it: the name of the package and of our extra."""

    def open(self, run: Told) -> Has:
        """Begin a run, or go on with the one that is remembered; what it has of it."""

    def send(self, rows: Sequence[Scalars]) -> None:
        """Show some rows; their values are finite, and their steps do not go back."""

    def close(self, status: Status, films: list[Path]) -> None:
        """The training is over; `films` are those of the run's folder."""


class TrackerSink:
    """Hands what happens in a run to a tracker."""

    essential = False

    def __init__(self, tracker: Tracker, algo: str, folder: RunFolder | None) -> None:
        self.tracker, self.name, self.algo, self.folder = tracker, tracker.name, algo, folder
        if getattr(importlib.util.find_spec(tracker.extra), "origin", None) is None:
            raise MissingExtraError(f"following a run in {tracker.name}", tracker.extra)
        self.status: Status = "stopped"
        self.told: Told | None = None
        self.behind, self.said = False, False
        self._before = (0, 0)
        """Rows of the files that belong to an earlier training in the same folder."""
        self._queue: SimpleQueue[Scalars | None] = SimpleQueue()
        self._has: Has | None = None
        self._not_before = 0.0
        """When it may be tried again, by `time.monotonic`."""
        self._sent: set[tuple[Kind, int]] = set()
        self._thread = threading.Thread(target=self._work, name=tracker.name, daemon=True)

    # -- on the training thread ----------------------------------------------------------------------------------------

    def __call__(self, event: Event) -> None:
        match event:
            case MetricsRow() | Evaluated():
                if self._queue.qsize() < MOST:
                    self._queue.put(of_event(event))
                else:
                    self.behind = True
            case Started():
                self._begin(event)
            case Ended():
                self.status = event.status
            case Failed():
                self.status = "failed"

    def _begin(self, event: Started) -> None:
        folder = self.folder
        memory = self._memory()
        if event.timesteps == 0 and (folder is None or folder.purge_step is None):  # a new training, not one resumed
            memory.write({})
            metrics, evaluations = self._files()
            self._before = len(metrics), len(evaluations)
        self._tell(flatten_config(event.config), memory)
        self._thread.start()

    def _tell(self, settings: Mapping[str, Any], memory: Memory) -> None:
        path = self.folder.path if self.folder is not None else None
        name = path.absolute().name if path is not None else f"{settings['env_id']}__{self.algo}"
        self.told = Told(name, {"algo": self.algo, **settings}, memory, path)

    def complete(self, settings: Mapping[str, Any], status: Status) -> None:
        """Bring what there is of a run that nobody trains now, its films too."""
        self.status = status
        self._tell(settings, self._memory())
        self._try(self._open)
        self._end()

    def _memory(self) -> Memory:
        return Memory(self.folder, f"{self.tracker.extra}.json")

    def close(self) -> None:
        """Wait for what is left to be sent, but not for long."""
        if not self._thread.is_alive():
            return
        self._queue.put(None)
        self._thread.join(LINGER)
        if self._thread.is_alive() and not self.said:
            self.said = True
            kept = "; what it lacks is sent when the run goes on" if self.folder is not None else ""
            log.warning("%s did not take everything within %.0f s and is left behind%s.", self.name, LINGER, kept)

    # -- on the tracker's own thread -----------------------------------------------------------------------------------

    def _work(self) -> None:
        self._try(self._open)
        over = False
        while not over:
            waiting = [self._queue.get()]
            while not self._queue.empty():
                waiting.append(self._queue.get())
            over = waiting[-1] is None
            self._try(self._deliver, [row for row in waiting if row is not None])
            if self.behind:
                self.behind = False
                self._try(self._catch_up)
        for _ in range(LAST_TRIES):
            if self._has is None:
                self._try(self._deliver, [])
        self._end()

    def _end(self) -> None:
        if self._has is not None:
            self._try(self.tracker.close, self.status, self._films())

    def _try(self, do: Callable[..., None], *arguments: Any) -> None:
        """Do something; what fails is named once, and the tracker is opened again before it is next asked."""
        began = time.monotonic()
        try:
            do(*arguments)
        except (Exception, SystemExit) as error:
            self._has, now = None, time.monotonic()
            self._not_before = now + PATIENCE * (now - began) if now - began > QUICK else now
            if not self.said:
                self.said = True
                log.warning(
                    "%s failed: %s: %s. The run goes on without it; this is said once.",
                    *(self.name, type(error).__name__, " ".join(str(error).split())),
                )

    def _open(self) -> None:
        assert self.told is not None
        self._sent.clear()
        self._has = self.tracker.open(self.told)
        self._catch_up()

    def _deliver(self, rows: Sequence[Scalars]) -> None:
        """Send those of some rows that are not there yet."""
        if self._has is None:
            if time.monotonic() < self._not_before:
                return
            self._open()
        assert self._has is not None
        new = [row for row in rows if (row.kind, row.step) not in self._sent and not self._has(row.kind, row.step)]
        if new:
            self.tracker.send(
                [row._replace(values={n: v for n, v in row.values.items() if math.isfinite(v)}) for row in new]
            )
        self._sent |= {(row.kind, row.step) for row in new}

    def _catch_up(self) -> None:
        """Send what is in the run's files and not there, in the order of steps."""
        metrics, evaluations = self._files()
        repeat = self.folder.action_repeat if self.folder is not None else 1
        rows = [of_metrics(row) for row in metrics[self._before[0] :]]
        rows += [of_evaluation(row, int(row["timesteps"]) * repeat) for row in evaluations[self._before[1] :]]
        self._deliver(sorted(rows, key=lambda row: row.step))

    def _files(self) -> tuple[list[dict[str, Any]], list[dict[str, float]]]:
        folder = self.folder
        return ([], []) if folder is None else (folder.read_metrics(), folder.read_eval())

    def _films(self) -> list[Path]:
        if self.folder is None:
            return []
        videos = self.folder.files.sub("videos")
        return [videos.path / name for name in videos.names() if name.endswith(".mp4")]
