"""A run's folder while its agent learns: checkpoints off the training thread, and how it all ended."""

import errno
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sunrise import documents
from sunrise.checkpoint import Checkpoints, Snapshot
from sunrise.config.settings import flatten_config
from sunrise.errors import NonFiniteError, SunriseError
from sunrise.facts import readable
from sunrise.manifest import Span
from sunrise.record import RunFolder, Status, machine, versions
from sunrise.saved import Checkpoint
from sunrise.snapshot import read, segments, take
from sunrise.tensors import save_tree
from sunrise.train import Trainer

log = logging.getLogger("sunrise")
FULL = (errno.ENOSPC, errno.EDQUOT)


def is_disk_full(error: BaseException) -> bool:
    """Whether a write failed for want of room."""
    return getattr(error, "errno", None) in FULL


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
            with self.explained():
                self.folder.lock()
                self.checkpoints.sweep()
                self.folder.change(flatten_config(trainer.config.run))
                self.status("running", trainer.timesteps)

    @property
    def has_checkpoints(self) -> bool:
        """Whether there is anything to go on from."""
        return bool(self.checkpoints.steps())

    def status(self, status: Status, timesteps: int, **more: Any) -> None:
        """How the run is, and at which step; at its end with what its logs then are."""
        if status != "running":
            more["logs"] = self.folder.logs.vouch()
        self.folder.status(status, timesteps, timesteps * self.action_repeat, **more)

    def save(self, trainer: Trainer, with_replay: bool = True) -> None:
        """Copy all of the run now, and write it while the training goes on."""
        if not self.active or (self.saved_at == trainer.timesteps and with_replay):
            return
        self.settle()
        snapshot = take(trainer.state(), {**self.about(), "begun": self.folder.begun}, self.spans, with_replay)
        snapshot = snapshot._replace(facts={**snapshot.facts, "logs": self.folder.logs.vouch()})
        if self.writer is None:
            self.writer = ThreadPoolExecutor(1, "checkpoint")
        self.writing = self.writer.submit(self._write, snapshot)
        self.spans, self.saved_at = snapshot.spans, trainer.timesteps

    def _write(self, snapshot: Snapshot) -> None:
        with self.explained(snapshot.nbytes):
            self.folder.files.require_in_place()
            self.folder.logs.sync()
            self.checkpoints.write(snapshot)
            if snapshot.spans:
                self.status("running", snapshot.timesteps)

    @contextmanager
    def explained(self, needed: int = 0) -> Iterator[None]:
        """What a disk or a folder refuses is said in one sentence."""
        try:
            yield
        except OSError as error:
            raise self.explain(error, needed) from None

    def explain(self, error: OSError, needed: int = 0) -> SunriseError:
        """What to say when something cannot be written."""
        path, kept = self.folder.path, "there is no checkpoint yet"
        with suppress(OSError, SunriseError):
            kept = f"the checkpoint at step {self.checkpoints.steps()[-1]:,} is whole" if self.has_checkpoints else kept
        if is_disk_full(error):
            wanted = f"a checkpoint needs {needed / 1e6:,.1f} MB, and " if needed else ""
            free = shutil.disk_usage(path if path.exists() else path.parent).free
            return SunriseError(
                f"the disk of {path} is full: {wanted}{free / 1e6:,.1f} MB are free; {kept}. "
                f"Make room, then `sunrise resume {path}`."
            )
        if isinstance(error, FileNotFoundError) and not path.exists():
            return SunriseError(f"the folder {path} is gone: it was removed or renamed while the run went on.")
        where = f" ({error.filename})" if isinstance(error.filename, str) else ""
        return SunriseError(f"the run's folder {path} cannot be used: {error.strerror or error}{where}; {kept}.")

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

    def resume(self, trainer: Trainer, config: Mapping[str, Any]) -> None:
        """Make a new trainer what it was at the last good checkpoint, and cut the logs to it."""

        def restore(found: Checkpoint) -> tuple[Checkpoint, Mapping[str, Any]]:
            facts = found.facts()
            if facts.get("with_replay") is False:
                raise SunriseError(
                    f"{self.folder.path} was finished without keeping its replay buffer: it cannot go on."
                )
            state = read(found, facts, trainer.state())
            with readable():
                trainer.restore(state, segments(found))
            trainer.repeat_episodes()
            return found, facts["logs"]

        with self.explained():
            self.folder.lock()
            self.folder.go_on_with(config, trainer.action_repeat)
            self.checkpoints.sweep()
            restored = self.checkpoints.read_newest(restore)
            if restored is None:
                self.folder.cut_logs({}, -1)
                return
            found, logs = restored
            self._differences()
            self.folder.cut_logs(logs, trainer.timesteps)
            self.checkpoints.go_on_from(found)
        self.spans = last_spans(found)
        self.saved_at = trainer.timesteps

    def _differences(self) -> None:
        """Name what may change the last bits of the rest of a run."""
        before = {**self.folder.begun["versions"], **self.folder.begun["machine"]}
        now = {**versions(), **machine(self.folder.device)}
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
            with self.explained():
                self.folder.files.require_in_place()
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
        if isinstance(error, OSError):
            error = self.explain(error)
        try:
            if isinstance(error, NonFiniteError):
                kept = self._keep_fault(trainer, error)
                error.args = (f"{error} The state before it is saved in {kept}; see `sunrise inspect`.",)
            self.status("failed", trainer.timesteps, error=str(error))
        except (OSError, SunriseError) as also:
            log.warning("The failure could not be recorded: %s", also)
        return error

    def _keep_fault(self, trainer: Trainer, error: NonFiniteError) -> Path:
        """The agents before the refused update, and the minibatch that caused it."""
        kept = self.folder.files.sub("fault")
        save_tree(kept, "agents.safetensors", trainer.live.ensemble, self.about())
        if error.sample is not None:
            about = {"update": trainer.live.step + 1}
            save_tree(kept, "batch.safetensors", error.sample, about)
        content = {"error": str(error), "not_finite": error.faults, "timesteps": error.timesteps}
        content["time"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        kept.write("fault.json", documents.sealed(content))
        return kept.path

    def close(self) -> None:
        if self.writer is not None:
            self.writer.shutdown()
            self.writer = None
        self.folder.close()


def last_spans(found: Checkpoint) -> Mapping[str, Span]:
    """Up to where each ring is on disk."""
    segments = found.manifest.segments
    return segments[-1].spans if segments else {}
