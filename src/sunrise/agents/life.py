"""A run's folder while its agent learns: checkpoints off the training thread, and how it all ended."""

import errno
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from sunrise.checkpoint import Checkpoint, Checkpoints, Snapshot
from sunrise.errors import NonFiniteError, SunriseError
from sunrise.manifest import Span
from sunrise.record import RunFolder, Status, machine, to_json, versions
from sunrise.snapshot import put, take
from sunrise.tensors import save_tree, write_atomically
from sunrise.train import Trainer

log = logging.getLogger("sunrise")
FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFullError(SunriseError):
    """There is no room for what a run has to write."""


def is_disk_full(error: BaseException) -> bool:
    """Whether a write failed for want of room; safetensors says so in its text alone."""
    return getattr(error, "errno", None) in FULL or any(f"os error {number}" in str(error) for number in FULL)


class Life:
    """The checkpoints, the status and the faults of one run; without a folder, nothing of it."""

    def __init__(self, folder: RunFolder | None, keep: int, about: Callable[[], Mapping[str, Any]]) -> None:
        self.active = folder is not None
        self.folder, self.about = folder or RunFolder(Path()), about
        self.checkpoints = Checkpoints(self.folder.checkpoints, keep)
        self.spans: Mapping[str, Span] = {}
        """The rows of replay that are on disk."""
        self.saved_at, self.action_repeat = -1, 1
        self.writer: ThreadPoolExecutor | None = None
        self.writing: Future[None] | None = None

    def begin(self, trainer: Trainer) -> None:
        """From here on nobody else may use the folder."""
        self.action_repeat = trainer.action_repeat
        if self.active:
            self.folder.lock()
            self.status("running", trainer.timesteps)

    def status(self, status: Status, timesteps: int, **more: Any) -> None:
        """How the run is, and at which step."""
        self.folder.status(status, timesteps, timesteps * self.action_repeat, **more)

    def save(self, trainer: Trainer, with_replay: bool = True) -> None:
        """Copy all of the run now, and write it while the training goes on."""
        if not self.active or (self.saved_at == trainer.timesteps and with_replay):
            return
        self.settle()
        snapshot = take(trainer, self.about(), self.spans, with_replay)
        snapshot = snapshot._replace(facts={**snapshot.facts, "logs": self.folder.log_sizes()})
        if self.writer is None:
            self.writer = ThreadPoolExecutor(1, "checkpoint")
        self.writing = self.writer.submit(self._write, snapshot)
        self.spans, self.saved_at = snapshot.spans, trainer.timesteps

    def _write(self, snapshot: Snapshot) -> None:
        self.folder.sync_logs()
        try:
            self.checkpoints.write(snapshot)
            if snapshot.spans:
                self.status("running", snapshot.timesteps)
        except Exception as error:
            if not is_disk_full(error):
                raise
            raise self.disk_full(snapshot.nbytes) from None

    def disk_full(self, needed: int = 0) -> DiskFullError:
        """What to say when there is no room left."""
        free = shutil.disk_usage(self.folder.path).free
        last = self.checkpoints.steps()
        kept = f"the checkpoint at step {last[-1]:,} is whole" if last else "there is no checkpoint yet"
        wanted = f"a checkpoint needs {needed / 1e6:,.1f} MB, and " if needed else ""
        return DiskFullError(
            f"the disk of {self.folder.path} is full: {wanted}{free / 1e6:,.1f} MB are free; {kept}. "
            f"Make room, then `sunrise resume {self.folder.path}`."
        )

    def poll(self) -> None:
        """Hear of a write that failed, without waiting for one that goes on."""
        if self.writing is not None and self.writing.done():
            self.settle()

    def settle(self) -> None:
        """Wait until everything is on disk."""
        if self.writing is not None:
            wait([self.writing])  # who is interrupted here can wait for it again
            writing, self.writing = self.writing, None
            writing.result()

    def resume(self, trainer: Trainer) -> None:
        """Make a new trainer what it was at the last good checkpoint, and cut the logs to it."""
        self.folder.lock()
        found = self.checkpoints.newest()
        if found is None:
            self.folder.cut_logs({}, -1)
            return
        facts = found.facts()
        if not facts["with_replay"]:
            raise SunriseError(f"{self.folder.path} was finished without keeping its replay buffer: it cannot go on.")
        self._differences()
        put(trainer, found, facts)
        self.folder.cut_logs(facts["logs"], trainer.timesteps)
        self.checkpoints.go_on_from(found)
        self.spans = last_spans(found)
        self.saved_at = trainer.timesteps

    def _differences(self) -> None:
        """Name what may change the last bits of the rest of a run."""
        config = self.folder.config()
        before = {**config.get("versions", {}), **config.get("machine", {})}
        now = {**versions(), **machine()}
        for name in now.keys() - {"system"}:
            if name in before and before[name] != now[name]:
                log.warning(
                    "This run began with %s %s and goes on with %s: its last bits may differ from a run never stopped.",
                    *(name, before[name], now[name]),
                )

    def end(self, trainer: Trainer, status: Status, keep_replay: bool = True) -> None:
        """Everything on disk, and the status with it."""
        self.settle()
        if self.active:
            self.status(status, trainer.timesteps)
        if not keep_replay:
            self.save(trainer, with_replay=False)
            self.settle()

    def fail(self, trainer: Trainer, error: Exception) -> Exception:
        """Keep what there is to know about a failure beside the checkpoints, which stay as they are."""
        if not self.active:
            if isinstance(error, NonFiniteError):
                error.args = (f"{error} The state before it is still in the model.",)
            return error
        try:
            self.settle()
        except Exception as also:
            log.warning("%s", also)
        if is_disk_full(error):
            error = self.disk_full()
        try:
            if isinstance(error, NonFiniteError):
                kept = self._keep_fault(trainer, error)
                error.args = (f"{error} The state before it is saved in {kept}; see `sunrise inspect`.",)
            self.status("failed", trainer.timesteps, error=str(error))
        except OSError as also:
            log.warning("The failure could not be recorded: %s", also)
        return error

    def _keep_fault(self, trainer: Trainer, error: NonFiniteError) -> Path:
        """The agents before the refused update, and the minibatch that caused it."""
        kept = self.folder.path / "fault"
        save_tree(kept / "agents.safetensors", trainer.ensemble, self.about())
        if error.sample is not None:
            save_tree(kept / "batch.safetensors", error.sample, {"update": int(np.asarray(trainer.ensemble.step)) + 1})
        content = {"error": str(error), "not_finite": error.faults, "timesteps": error.timesteps}
        content["time"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        write_atomically(kept / "fault.json", to_json(content).encode())
        return kept

    def close(self) -> None:
        if self.writer is not None:
            self.writer.shutdown()
            self.writer = None
        self.folder.close()


def last_spans(found: Checkpoint) -> Mapping[str, Span]:
    """Up to where each ring is on disk."""
    segments = found.manifest.segments
    return segments[-1].spans if segments else {}
