"""Checkpoints on disk: complete, checked by their sums, and cheap because replay is only ever appended.

    checkpoints/step-000020000/    agents.safetensors  state.safetensors  state.json  manifest.json
    checkpoints/replay/            segment-000000.safetensors  segment-000001.safetensors ...

A checkpoint is written under another name, forced to the disk and renamed, so it is there whole or not at all. Its
manifest has the size and the checksum of every file it needs, segments of replay included. Reading executes nothing,
and neither reading nor removing ever looks outside the folder.
"""

import itertools
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sunrise.errors import DamagedError, SunriseError
from sunrise.files.folder import PART, Folder
from sunrise.store.manifest import AGENTS, FACTS, MANIFEST, SEGMENT, STATE, Manifest, Segment, Span, Sum, check, sum_of
from sunrise.store.ownership import Ownership
from sunrise.store.saved import LARGEST, Checkpoint, damage
from sunrise.store.tensors import write_arrays

STEP, GONE = re.compile(r"step-(\d{9,18})"), re.compile(r"\.gone-\d+(-\d+)?")
MINE = re.compile(r"\.[0-9a-f]{16}$")
"""The end of a name that only one owner of the folder writes to."""
TRIES = 50
"""How often a reader looks again because what it read was pruned meanwhile."""
T = TypeVar("T")
log = logging.getLogger("sunrise")


class Snapshot(NamedTuple):
    """All of a run at one moment, copied: training can go on while it is written."""

    timesteps: int
    agents: Mapping[str, np.ndarray]
    about: Mapping[str, Any]
    """What the file of the agents says about itself."""
    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]
    """Everything that is no array: counters, generators, the sizes of the logs."""
    rows: Mapping[str, np.ndarray]
    """Replay's new rows, `{ring}/{array}`."""
    spans: Mapping[str, Span]
    """Which rows of each ring these are."""
    oldest: Mapping[str, int]
    """The first row of each ring that is still needed."""

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for group in (self.agents, self.arrays, self.rows) for a in group.values())


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Folder | Path, keep: int = 2, ownership: Ownership | None = None) -> None:
        self.folder = Folder(folder.parent).sub(folder.name) if isinstance(folder, Path) else folder
        self.keep = keep
        self.ownership = ownership or Ownership(self.folder)
        self.replay = self.folder.sub("replay")
        self.segments: list[Segment] = []
        """Those that the newest checkpoint needs."""

    def steps(self) -> list[int]:
        """The timesteps of the checkpoints that are there, the newest last."""
        found = (STEP.fullmatch(name) for name in self.folder.folders())
        return sorted(int(match[1]) for match in found if match and match[0] == self.name(int(match[1])))

    @staticmethod
    def name(timesteps: int) -> str:
        return f"step-{timesteps:09d}"

    def path(self, timesteps: int) -> Path:
        return self.folder.path / self.name(timesteps)

    def read(self, timesteps: int, with_replay: bool = True) -> Checkpoint:
        """A checkpoint by its timestep; a damaged one is refused. Its replay can be left unlooked at."""
        folder = self.folder.sub(self.name(timesteps))
        with damage():
            manifest = self._manifest(timesteps)
            if manifest.timesteps != timesteps:
                raise DamagedError("its manifest is of another checkpoint")
            for name, wanted in manifest.files.items():
                check(folder, name, wanted, LARGEST[name])
            found = Checkpoint(folder, self.replay, manifest)
            if manifest.segments and with_replay:
                largest, whole = found.largest_replay(), sum(s.sum.size for s in manifest.segments)
                if whole > largest + 2**16 * len(manifest.segments):
                    raise DamagedError(f"its replay has {whole:,} bytes: too many for its settings")
                for segment in manifest.segments:
                    check(self.replay, segment.file, segment.sum, largest)
        return found

    def _manifest(self, timesteps: int) -> Manifest:
        try:
            content = self.folder.sub(self.name(timesteps)).read(MANIFEST, LARGEST[MANIFEST])
        except FileNotFoundError:
            raise DamagedError("it has no manifest") from None
        return Manifest.decode(content)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, with a message for each that is not; None where there is none at all."""
        return self.read_newest(lambda found: found)

    def read_newest(self, use: Callable[[Checkpoint], T], with_replay: bool = True, aloud: bool = True) -> T | None:
        """What `use` makes of the newest checkpoint that is whole; None where there is none at all.

        One that is damaged, in whatever way, is passed over with a message. One that a running training prunes while it
        is read is no damage: then this looks again.
        """
        for _ in range(TRIES):
            damaged: list[str] = []
            for timesteps in reversed(self.steps()):
                before = self._identity(timesteps)
                try:
                    return use(self.read(timesteps, with_replay))
                except DamagedError as error:
                    if before is None or self._identity(timesteps) != before:
                        break
                    damaged.append(f"step {timesteps:,}: {error}")
                    if aloud:
                        log.warning("The checkpoint at %s; the one before it is used.", damaged[-1])
            else:
                if damaged:
                    raise DamagedError(f"{self.folder.path} has no checkpoint that is whole: {'; '.join(damaged)}.")
                return None
        raise DamagedError(f"{self.folder.path} changes faster than it can be read: try again.")

    def _identity(self, timesteps: int) -> object:
        """What is another if a checkpoint is removed or written anew."""
        found = self.folder.status(self.name(timesteps))
        return None if found is None else (found.st_ino, found.st_mtime_ns)

    def go_on_from(self, found: Checkpoint) -> None:
        """Continue after a checkpoint; what is newer was damaged, or is being made again."""
        self.segments = found.manifest.segments
        with self.ownership.publishing():
            for timesteps in self.steps():
                if timesteps > found.manifest.timesteps:
                    self._remove(timesteps)

    def sweep(self) -> None:
        """Remove what a kill left behind half written or half removed."""
        with self.ownership.publishing():
            for name in self.folder.folders():
                if GONE.fullmatch(name) or (PART.fullmatch(name) and STEP.fullmatch(MINE.sub("", name[1:-5]))):
                    self._remove_files(name)
            for name in self.replay.names():
                if PART.fullmatch(name) and SEGMENT.fullmatch(MINE.sub("", name[1:-5])):
                    self.replay.remove(name)

    def _part(self, name: str) -> str:
        """Where something is written until it is whole: a name that no other owner writes to."""
        return f".{name}.{self.ownership.token}.part" if self.ownership.token else f".{name}.part"

    def write(self, snapshot: Snapshot) -> None:
        """Write a checkpoint; then remove what none of those that stay needs."""
        part = self.folder.sub(self._part(self.name(snapshot.timesteps)))
        file = f"segment-{self.segments[-1].number + 1 if self.segments else 0:06d}.safetensors"
        try:
            segments = [
                s for s in self.segments if any(s.spans[r].stop > oldest for r, oldest in snapshot.oldest.items())
            ]
            if any(span.stop > span.start for span in snapshot.spans.values()):
                self.replay.make()
                self.replay.remove(self._part(file))
                total = write_summed(self.replay, self._part(file), snapshot.rows)
                with self.ownership.publishing():
                    self.replay.rename(self._part(file), file)
                    self.replay.sync()
                segments = [*segments, Segment(file, total, dict(snapshot.spans))]
            self._remove_files(part.path.name)
            part.make(new=True)
            files = {
                AGENTS: write_summed(part, AGENTS, snapshot.agents, snapshot.about),
                STATE: write_summed(part, STATE, snapshot.arrays),
            }
            part.write(FACTS, json.dumps(snapshot.facts).encode())
            with part.open(FACTS, LARGEST[FACTS]) as facts:
                files[FACTS] = sum_of(facts)
            part.write(MANIFEST, Manifest(snapshot.timesteps, files, segments).encode())
            with self.ownership.publishing():
                self._publish(part.path.name, snapshot, segments)
        except BaseException as error:
            with suppress(OSError, SunriseError):
                self._remove_files(part.path.name)
                self.replay.remove(self._part(file))
                self.sweep()
            if isinstance(error, OSError):
                with suppress(OSError), self.ownership.publishing():
                    pass  # where somebody took the folder over and swept, that is the reason
            raise

    def _publish(self, part: str, snapshot: Snapshot, segments: list[Segment]) -> None:
        """Make a written checkpoint the newest one."""
        if snapshot.timesteps in self.steps():
            self._remove(snapshot.timesteps)
        self.folder.rename(part, self.name(snapshot.timesteps))
        self.folder.sync()
        self.segments = segments
        for timesteps in self.steps():
            if timesteps > snapshot.timesteps:  # the timesteps were counted anew
                self._remove(timesteps)
        # A finished run that does not keep its replay buffer keeps it for no earlier checkpoint either.
        self.prune(self.keep if snapshot.spans else 1)

    def prune(self, keep: int) -> None:
        """Remove all but the newest checkpoints, and the segments that none of them needs."""
        for timesteps in self.steps()[:-keep]:
            self._remove(timesteps)
        needed = {segment.file for segment in self.segments}
        for timesteps in self.steps():
            with suppress(OSError, DamagedError):
                needed |= {segment.file for segment in self._manifest(timesteps).segments}
        for name in self.replay.names():
            if SEGMENT.fullmatch(name) and name not in needed:
                self.replay.remove(name)

    def _remove(self, timesteps: int) -> None:
        """Take a checkpoint away; it is never seen in part."""
        gone = f".gone-{timesteps:09d}"
        if not self._remove_files(gone):
            gone = next(name for n in itertools.count(1) if self.folder.status(name := f"{gone}-{n}") is None)
        self.folder.rename(self.name(timesteps), gone)
        self._remove_files(gone)

    def _remove_files(self, name: str) -> bool:
        """Remove the folder of a checkpoint that nobody looks at; it stays if it holds anything that is not ours."""
        gone = self.folder.remove_folder(name, lambda file: file in LARGEST or PART.fullmatch(file))
        if not gone:
            log.warning("%s holds files that are not ours: it is left there.", self.folder.path / name)
        return gone


def write_summed(
    folder: Folder, name: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None
) -> Sum:
    """Write arrays to a new file that nobody looks at yet, force it to the disk, and sum it up."""
    with folder.create(name) as file:
        write_arrays(file, arrays, about)
        os.fsync(file.fileno())
        return sum_of(file)
