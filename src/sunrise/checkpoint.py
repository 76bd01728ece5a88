"""Checkpoints on disk: complete, checked by their sums, and cheap because replay is only ever appended.

    checkpoints/step-000020000/    agents.safetensors  state.safetensors  state.json  manifest.json
    checkpoints/replay/            segment-000000.safetensors  segment-000001.safetensors ...

A checkpoint is written under another name, forced to the disk and renamed, so it is there whole or not at all. Its
manifest has the size and the checksum of every file it needs, segments of replay included. Reading executes nothing,
and never looks outside the folder.
"""

import json
import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sunrise.manifest import DamagedError, Manifest, Segment, Span, Sum, check, sum_of
from sunrise.tensors import as_metadata, sync, write_atomically

AGENTS, STATE, FACTS, MANIFEST = "agents.safetensors", "state.safetensors", "state.json", "manifest.json"
LARGEST_MANIFEST = 64 * 2**20
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


class Checkpoint(NamedTuple):
    """A checkpoint whose files are all what its manifest says."""

    path: Path
    manifest: Manifest

    @property
    def agents(self) -> Path:
        return self.path / AGENTS

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays beside the agents."""
        return read_arrays(self.path / STATE)

    def facts(self) -> dict[str, Any]:
        """Everything that is no array."""
        facts: dict[str, Any] = json.loads((self.path / FACTS).read_text())
        return facts

    def segment(self, segment: Segment) -> dict[str, np.ndarray]:
        """The rows of a segment of replay, `{ring}/{array}`."""
        return read_arrays(self.path.parent / "replay" / segment.file)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file."""
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedError(f"{path.name} cannot be read: {error}") from None


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self.keep = folder, keep
        self.replay = folder / "replay"
        self.segments: list[Segment] = []
        """Those that the newest checkpoint needs."""

    def steps(self) -> list[int]:
        """The timesteps of the checkpoints that are there, the newest last."""
        names = (path.name for path in self.folder.glob("step-*") if path.is_dir())
        return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name))

    def path(self, timesteps: int) -> Path:
        return self.folder / f"step-{timesteps:09d}"

    def read(self, timesteps: int) -> Checkpoint:
        """A checkpoint by its timestep; a damaged one is refused."""
        path = self.path(timesteps)
        try:
            if (path / MANIFEST).stat().st_size > LARGEST_MANIFEST:
                raise DamagedError("its manifest is too large to be one")
            manifest = Manifest.decode((path / MANIFEST).read_bytes())
        except OSError:
            raise DamagedError("it has no manifest") from None
        if manifest.timesteps != timesteps or set(manifest.files) != {AGENTS, STATE, FACTS}:
            raise DamagedError("its manifest is of another checkpoint")
        for name, wanted in manifest.files.items():
            check(path / name, wanted)
        for segment in manifest.segments:
            check(self.replay / segment.file, segment.sum)
        return Checkpoint(path, manifest)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, with a message for each that is not; None where there is none at all."""
        damaged: list[str] = []
        for timesteps in reversed(self.steps()):
            try:
                found = self.read(timesteps)
            except DamagedError as error:
                damaged.append(f"step {timesteps:,}: {error}")
                log.warning("The checkpoint at %s; the one before it is used.", damaged[-1])
                continue
            return found
        if damaged:
            raise DamagedError(f"{self.folder} has no checkpoint that is whole: {'; '.join(damaged)}.")
        return None

    def go_on_from(self, found: Checkpoint) -> None:
        """Continue after a checkpoint; what is newer was damaged, or is being made again."""
        self.segments = found.manifest.segments
        for timesteps in self.steps():
            if timesteps > found.manifest.timesteps:
                self._remove(timesteps)

    def write(self, snapshot: Snapshot) -> None:
        """Write a checkpoint; then remove what no kept one needs."""
        part = self.folder / f".step-{snapshot.timesteps:09d}.part"
        segment_part: Path | None = None
        try:
            segments = [
                s for s in self.segments if any(s.spans[r].stop > oldest for r, oldest in snapshot.oldest.items())
            ]
            if any(span.stop > span.start for span in snapshot.spans.values()):
                file = f"segment-{self._next_number():06d}.safetensors"
                self.replay.mkdir(parents=True, exist_ok=True)
                segment_part = self.replay / f".{file}.part"
                total = write_arrays(segment_part, snapshot.rows)
                segment_part.replace(self.replay / file)
                sync(self.replay)
                segments = [*segments, Segment(file, total, dict(snapshot.spans))]
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            files = {
                AGENTS: write_arrays(part / AGENTS, snapshot.agents, snapshot.about),
                STATE: write_arrays(part / STATE, snapshot.arrays),
            }
            write_atomically(part / FACTS, json.dumps(snapshot.facts).encode())
            files[FACTS] = sum_of(part / FACTS)
            write_atomically(part / MANIFEST, Manifest(snapshot.timesteps, files, segments).encode())
            if self.path(snapshot.timesteps).exists():
                self._remove(snapshot.timesteps)
            part.replace(self.path(snapshot.timesteps))
            sync(self.folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            if segment_part is not None:
                segment_part.unlink(missing_ok=True)
            raise
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
            try:
                manifest = Manifest.decode((self.path(timesteps) / MANIFEST).read_bytes())
            except (OSError, DamagedError):
                continue
            needed |= {segment.file for segment in manifest.segments}
        for path in self.replay.glob("*"):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    def _next_number(self) -> int:
        """The number of the next segment; numbers are not reused while a checkpoint needs them."""
        return int(self.segments[-1].file[8:14]) + 1 if self.segments else 0

    def _remove(self, timesteps: int) -> None:
        """Take a checkpoint away; it is never seen in part."""
        gone = self.folder / f".gone-{timesteps:09d}"
        shutil.rmtree(gone, ignore_errors=True)
        self.path(timesteps).replace(gone)
        shutil.rmtree(gone, ignore_errors=True)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None) -> Sum:
    """Write arrays to a file that nobody looks at yet, and force it to the disk."""
    save_file({k: np.asarray(v, order="C") for k, v in arrays.items()}, path, as_metadata(about))
    sync(path)
    return sum_of(path)
