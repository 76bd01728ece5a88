"""A run's folder while this process trains in it: checkpoints off the training thread, and how it all ended."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sunrise.ensemble import Ensemble
from sunrise.errors import NonFiniteError, SunriseError
from sunrise.files import documents
from sunrise.run.state import HasState, RunState
from sunrise.store.checkpoint import Checkpoints, Snapshot
from sunrise.store.facts import readable
from sunrise.store.machine import machine, versions
from sunrise.store.manifest import Span
from sunrise.store.refusals import refusal
from sunrise.store.run_folder import RunFolder, Status
from sunrise.store.saved import Checkpoint
from sunrise.store.snapshot import read, segments, take
from sunrise.store.tensors import save_tree

log = logging.getLogger("sunrise")


class Session:
    """The checkpoints, the status and the faults of one run."""

    def __init__(self, folder: RunFolder, keep: int, about: Callable[[], Mapping[str, Any]]) -> None:
        self.folder, self.about = folder, about
        self.checkpoints = Checkpoints(folder.checkpoints, keep, folder.ownership)
        self.spans: Mapping[str, Span] = {}
        """The rows of replay that are on disk."""
        self.saved_at, self.action_repeat = -1, 1
        self.writer: ThreadPoolExecutor | None = None
        self.writing: Future[None] | None = None

    # -- beginning -----------------------------------------------------------------------------------------------------

    @property
    def has_checkpoints(self) -> bool:
        """Whether there is anything to go on from."""
        return bool(self.checkpoints.steps())

    def begin(self, settings: Mapping[str, Any], timesteps: int, action_repeat: int) -> None:
        """From here on nobody else may use the folder."""
        self.action_repeat = action_repeat
        with self.explained():
            self.folder.lock()
            self.checkpoints.sweep()
            self.folder.change(settings)
            self.status("running", timesteps)

    def resume(self, run: HasState, config: Mapping[str, Any], action_repeat: int) -> None:
        """Make a new run what it was at the last good checkpoint, and cut the logs to it."""

        def restore(found: Checkpoint) -> tuple[Checkpoint, Mapping[str, Any]]:
            facts = found.facts()
            if facts.get("with_replay") is False:
                raise SunriseError(
                    f"{self.folder.path} was finished without keeping its replay buffer: it cannot go on."
                )
            state = read(found, facts, run.state())
            with readable():
                run.restore(state, segments(found))
            run.repeat_episodes()
            return found, facts["logs"]

        with self.explained():
            self.folder.lock()
            self.folder.go_on_with(config, action_repeat)
            self.checkpoints.sweep()
            restored = self.checkpoints.read_newest(restore)
            if restored is None:
                self.folder.cut_logs({}, -1)
                return
            found, logs = restored
            self._name_differences()
            self.folder.cut_logs(logs, found.manifest.timesteps)
            self.checkpoints.go_on_from(found)
        self.spans = last_spans(found)
        self.saved_at = found.manifest.timesteps

    def _name_differences(self) -> None:
        """Name what may change the last bits of the rest of a run."""
        before = {**self.folder.begun["versions"], **self.folder.begun["machine"]}
        now = {**versions(), **machine(self.folder.device)}
        for name in now.keys() - {"system"}:
            if name in before and before[name] != now[name]:
                log.warning(
                    "This run began with %s %s and goes on with %s: its last bits may differ from a run never stopped.",
                    *(name, before[name], now[name]),
                )

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save(self, timesteps: int, state: Callable[[], RunState], with_replay: bool = True) -> None:
        """Copy all of the run now, and write it while the training goes on."""
        if self.saved_at == timesteps and with_replay:
            return
        self.settle()
        snapshot = take(state(), {**self.about(), "begun": self.folder.begun}, self.spans, with_replay)
        snapshot = snapshot._replace(facts={**snapshot.facts, "logs": self.folder.logs.state()})
        if self.writer is None:
            self.writer = ThreadPoolExecutor(1, "checkpoint")
        self.writing = self.writer.submit(self._write, snapshot)
        self.spans, self.saved_at = snapshot.spans, timesteps

    def _write(self, snapshot: Snapshot) -> None:
        with self.explained(snapshot.nbytes):
            self.folder.files.require_in_place()
            self.folder.logs.sync()
            self.checkpoints.write(snapshot)
            if snapshot.spans:
                self.status("running", snapshot.timesteps)

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

    # -- the end -------------------------------------------------------------------------------------------------------

    def status(self, status: Status, timesteps: int, **more: Any) -> None:
        """How the run is, and at which step; at its end with what its logs then are."""
        if status != "running":
            more["logs"] = self.folder.logs.state()
        self.folder.status(status, timesteps, timesteps * self.action_repeat, **more)

    def end(self, timesteps: int, status: Status) -> None:
        """Everything on disk, and the status with it."""
        self.settle()
        with self.explained():
            self.folder.files.require_in_place()
            self.status(status, timesteps)

    def fail(self, timesteps: int, error: Exception, ensemble: Ensemble) -> None:
        """Write down what is known of a failure beside the checkpoints, which stay as they are."""
        try:
            self.settle()
        except Exception as also:
            log.warning("%s", also)
        try:
            if isinstance(error, NonFiniteError):
                error.saved_in = self._save_fault(error, ensemble)
                error.say_where_the_state_is()
            self.status("failed", timesteps, error=str(error))
        except (OSError, SunriseError) as also:
            log.warning("The failure could not be recorded: %s", also)

    def _save_fault(self, error: NonFiniteError, ensemble: Ensemble) -> Path:
        """The agents before the refused update, and the minibatch that caused it."""
        folder = self.folder.files.sub("fault")
        save_tree(folder, "agents.safetensors", ensemble, self.about())
        if error.sample is not None:
            save_tree(folder, "batch.safetensors", error.sample, {"update": int(ensemble.step) + 1})
        content = {"error": str(error), "not_finite": error.faults, "timesteps": error.timesteps}
        content["time"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        folder.write("fault.json", documents.sealed(content))
        return folder.path

    @contextmanager
    def explained(self, needed: int = 0) -> Iterator[None]:
        """What a disk or a folder refuses is said in one sentence."""
        try:
            yield
        except OSError as error:
            last = "there is no checkpoint yet"
            with suppress(OSError, SunriseError):
                if steps := self.checkpoints.steps():
                    last = f"the checkpoint at step {steps[-1]:,} is whole"
            raise refusal(error, self.folder.path, last, needed) from None

    def close(self) -> None:
        if self.writer is not None:
            self.writer.shutdown()
            self.writer = None
        self.folder.close()


def last_spans(found: Checkpoint) -> Mapping[str, Span]:
    """Up to where each ring is on disk."""
    segments = found.manifest.segments
    return segments[-1].spans if segments else {}
