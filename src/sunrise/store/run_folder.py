"""A run's folder: results are data, one row an event, flushed as they happen."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from sunrise.errors import DamagedError, SunriseError
from sunrise.files import documents
from sunrise.files.folder import Folder
from sunrise.store.logs import Logs
from sunrise.store.machine import beginning
from sunrise.store.ownership import Ownership, is_in_use

T = TypeVar("T")
Status = Literal["running", "stopped", "finished", "failed"]
CONFIG, STATUS = "config.json", "status.json"
CHANGEABLE = ("total_timesteps", "max_env_restarts", "env_timeout")
"""Settings that a command may change while a run goes on."""


class RunFolder:
    """config.json, metrics.jsonl, eval.csv, status.json, TensorBoard events and checkpoints/ of one run."""

    def __init__(self, path: Path, device: str = "") -> None:
        self.device = device
        self.path = path
        self.files = Folder(path)
        self.checkpoints = self.files.sub("checkpoints")
        self.logs = Logs(self.files)
        self.begun: dict[str, Any] = {}
        """How the run began: `beginning`."""
        self._config: dict[str, Any] = {}
        self.purge_step: int | None = None
        """The first timestep that is logged again: what TensorBoard has of it and later was written in vain."""
        self.ownership = Ownership(self.files)

    @property
    def holds_a_run(self) -> bool:
        """Whether there is a run, of whatever state."""
        steps = (name for name in self.checkpoints.folders() if name.startswith("step-"))
        return self.files.status(CONFIG) is not None or next(steps, None) is not None

    def create(
        self, algo: str, policy: str, settings: Mapping[str, Any], action_repeat: int = 1, imported_from: str = ""
    ) -> None:
        """Make the folder; one that already holds a run is refused. `imported_from` is where an algorithm is from."""
        try:
            if self.holds_a_run:
                raise SunriseError(
                    f"{self.path} already holds a run: `sunrise resume {self.path}` goes on with it; "
                    "choose another --run-dir, or remove it."
                )
            self.files.make()
            self.checkpoints.make()
            self.lock()
            self.begun = beginning(action_repeat, self.device, sys.argv)
            known = {"algo": algo, **({"imported_from": imported_from} if imported_from else {}), "policy": policy}
            self.write_config({**known, "settings": dict(settings), **self.begun})
        except OSError as error:
            self.close()
            raise SunriseError(f"the run's folder {self.path} cannot be made: {error.strerror}.") from None

    def write_config(self, config: Mapping[str, Any]) -> None:
        with self.ownership.publishing():
            self.files.write(CONFIG, documents.sealed(config))
        self._config = dict(config)

    def go_on_with(self, config: Mapping[str, Any], action_repeat: int) -> None:
        """Take up how a run was begun; a config.json that is missing or damaged is made again."""
        now = beginning(action_repeat, self.device, [])
        whole = {**config, **{name: value for name, value in now.items() if name not in config}}
        self.begun = {name: whole[name] for name in now}
        self._config = whole
        with contextlib.suppress(DamagedError):
            if self.config() == (whole, "whole"):
                return
        self.write_config(whole)

    def change(self, settings: Mapping[str, Any]) -> None:
        """Take over what of the settings may change while a run goes on."""
        if not self._config:
            return
        now = {**self._config["settings"], **{name: settings[name] for name in CHANGEABLE}}
        if now != self._config["settings"]:
            self.write_config({**self._config, "settings": now})

    def lock(self) -> None:
        """Keep every other process out; the lock goes with the process that holds it."""
        if self.ownership.token:
            return
        self.files.hold()
        try:
            self.ownership.take()
            for name in (CONFIG, STATUS):
                self.files.remove(f".{name}.part")  # a kill left it
        except BaseException:
            self.ownership.release()
            self.files.release()
            raise

    def cut_logs(self, vouched: Mapping[str, Any], timesteps: int) -> None:
        """Forget what was logged after a checkpoint: it will be logged again."""
        with self.ownership.publishing():
            if "logs" in self.read_status():  # they are about to be others
                self.status("stopped", max(timesteps, 0), max(timesteps, 0) * self.action_repeat)
            self.logs.restore(vouched)
        self.purge_step = timesteps + 1

    @property
    def action_repeat(self) -> int:
        """Simulator steps in one timestep of this run."""
        return int(self.begun.get("action_repeat", 1))

    def config(self) -> tuple[dict[str, Any], documents.Seal]:
        """What config.json says, and whether that is what was written there."""
        try:
            config = documents.decode_mapping(self.files.read(CONFIG, documents.SMALL))
        except FileNotFoundError:
            raise DamagedError(f"{self.path} is not a run: it has no config.json.") from None
        except (OSError, ValueError, DamagedError) as error:
            raise DamagedError(f"{self.path} is not a run: its config.json cannot be read: {error}.") from None
        kinds: dict[str, type] = {"algo": str, "policy": str, "settings": dict}
        config, seal = documents.unsealed(config)
        kinds |= {} if seal == "none" else {"versions": dict, "machine": dict, "action_repeat": int}
        if not all(isinstance(config.get(name), kind) for name, kind in kinds.items()):
            raise DamagedError(f"{self.path} is not a run: its config.json is not one of ours.")
        return config, seal

    def status(self, status: Status, timesteps: int, env_steps: int, **more: Any) -> None:
        content = {
            "status": status,
            "timesteps": timesteps,
            "env_steps": env_steps,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **more,
        }
        with self.ownership.publishing():
            self.files.write(STATUS, documents.sealed(content))

    def read_status(self) -> dict[str, Any]:
        """The run's status.json; empty where it was killed before it had one, or where it is damaged.

        A run that was killed could not say so: where status.json says `running` and no process holds the folder's lock,
        it is stopped, and `killed`.
        """
        try:
            status, seal = documents.unsealed(documents.decode_mapping(self.files.read(STATUS, documents.SMALL)))
        except (OSError, ValueError, DamagedError):
            return {}
        kinds = {"status": str, "timesteps": int}
        right = all(type(status.get(name)) is kind for name, kind in kinds.items())
        if not right or seal == "broken":
            return {}
        if status["status"] == "running" and not self.is_in_use():
            return {**status, "status": "stopped", "killed": True}
        return status

    def is_in_use(self) -> bool:
        """Whether a process holds the folder, this one or another."""
        return bool(self.ownership.token) or is_in_use(self.files)

    def read_eval(self) -> list[dict[str, float]]:
        """The rows of eval.csv as numbers."""
        return self._read(self.logs.read_eval)

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        return self._read(self.logs.read_metrics)

    def _read(self, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Rows that the end of the run vouches for; where it goes on while they are read, once more."""
        vouched = self._vouched()
        try:
            return read(vouched)
        except DamagedError:
            if (now := self._vouched()) == vouched:
                raise
            return read(now)

    def _vouched(self) -> dict[str, Any]:
        """What the end of a run says of its logs; nothing while it goes on."""
        logs = self.read_status().get("logs", {})
        return logs if isinstance(logs, dict) else {}

    def __del__(self) -> None:
        self.close()  # a model that is dropped does not keep others out

    def close(self) -> None:
        self.ownership.release()
        self.files.release()
