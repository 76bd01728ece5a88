"""What is below a folder while runs go on: read again where a file changed, and told by what changed since when."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sunrise.errors import SunriseError
from sunrise.files.folder import Folder
from sunrise.report.columns import clean
from sunrise.report.results import MOST_RUNS, Found, Run, read_run, run_folders
from sunrise.store.logs import EVALUATIONS, METRICS
from sunrise.store.run_folder import CONFIG, STATUS, RunFolder

PAUSE = 1.0
"""Seconds that a look at the folder is good for, however many ask; longer where looking took longer."""
Build = Callable[[Found, Callable[[Run, Path], str]], dict[str, Any]]
"""From runs, and from where their videos are, to what the page shows."""


class Seen(NamedTuple):
    """A run's folder as it was when it was last read."""

    stamp: tuple[Any, ...]
    run: Run | None
    problem: str


class Live:
    """The runs below one folder, and a version for every part of what the page shows of them."""

    def __init__(self, place: Path, build: Build) -> None:
        self.root, self._build = Folder(place), build
        self._begun = secrets.token_hex(4)
        """A page that was made by another server knows nothing of this one's versions."""
        self._version = 0
        self._seen: dict[tuple[str, ...], Seen] = {}
        self._content: dict[str, Any] = {}
        self._runs: dict[str, Any] = {}
        self._changed: dict[tuple[str, str], int] = {}
        self._next = 0.0
        self._lock = threading.Lock()

    def content(self) -> dict[str, Any]:
        """All of it."""
        with self._lock:
            self._look()
            return {**self._content, "runs": list(self._runs.values()), "live": True, "token": self._token}

    def since(self, token: str) -> dict[str, Any]:
        """The parts and the runs that are not as they were at a token, and which runs are gone."""
        with self._lock:
            self._look()
            begun, _, number = token.partition(".")
            known = begun == self._begun and number.isdecimal() and len(number) < 16
            version = int(number) if known else -1
            new = {name for name, at in self._changed.items() if at > version}
            return {
                **{name: part for name, part in self._content.items() if ("part", name) in new},
                "runs": [run for name, run in self._runs.items() if ("run", name) in new],
                "gone": [name for kind, name in new if kind == "run" and name not in self._runs],
                "token": self._token,
            }

    def video(self, name: str, file: str) -> Folder | None:
        """The folder of a video that a run has: each folder on the way there is a real one, and below ours."""
        with self._lock:
            for parts, seen in self._seen.items():
                if seen.run is not None and seen.run.name == name and file in {path.name for path in seen.run.videos}:
                    folder = self.root
                    for part in (*parts, "videos"):
                        folder = folder.sub(part)
                    return folder
        return None

    @property
    def _token(self) -> str:
        return f"{self._begun}.{self._version}"

    def _look(self) -> None:
        """See what is there now; a look holds for a while."""
        begun = time.monotonic()
        if begun < self._next:
            return
        now: dict[tuple[str, ...], Seen] = {}
        for path, parts in run_folders(self.root):
            if len(now) >= MOST_RUNS:
                break
            now[parts] = self._see(path, parts)
        if now != self._seen or not self._version:
            self._seen = now
            found = Found(
                tuple(seen.run for seen in now.values() if seen.run),
                tuple(s.problem for s in now.values() if s.problem),
            )
            self._take(self._build(found, video_link))
        ended = time.monotonic()
        self._next = ended + PAUSE * max(1.0, ended - begun)

    def _see(self, path: Path, parts: tuple[str, ...]) -> Seen:
        """A run as it is, read again only where it changed."""
        stamp: tuple[Any, ...] = ()
        try:
            stamp = stamp_of(path)
            before = self._seen.get(parts)
            if before is not None and before.stamp == stamp:
                return before
            return Seen(stamp, read_run(path, "/".join(parts) or path.resolve().name), "")
        except (SunriseError, OSError) as error:
            return Seen(stamp, None, f"{clean(str(path))} cannot be read and is left out: {clean(str(error))}")

    def _take(self, content: Mapping[str, Any]) -> None:
        """Note which parts are others than before."""
        self._version += 1
        content = dict(content)
        runs = {run["id"]: run for run in content.pop("runs")}
        for kind, old, new in (("part", self._content, content), ("run", self._runs, runs)):
            for name in {*old, *new}:
                if old.get(name) != new.get(name):
                    self._changed[kind, name] = self._version
        self._content, self._runs = content, runs


def stamp_of(path: Path) -> tuple[Any, ...]:
    """What tells that a run's folder is as it was; a run that was killed changes no file."""
    folder = RunFolder(path)
    files = [folder.files.status(name) for name in (CONFIG, STATUS, METRICS, EVALUATIONS)]
    stamps = tuple((file.st_ino, file.st_size, file.st_mtime_ns) if file else None for file in files)
    try:
        videos = tuple(folder.files.sub("videos").names())
    except (SunriseError, OSError):
        videos = ()
    return (*stamps, videos, folder.read_status().get("status"))


def video_link(run: Run, video: Path) -> str:
    """Where the server has a video."""
    return "video?" + urlencode({"run": run.name, "name": video.name})
