"""A run's folder: results are data, one row an event, flushed as they happen."""

import contextlib
import csv
import fcntl
import json
import logging
import math
import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Literal

import jax
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import sunrise
from sunrise.errors import SunriseError
from sunrise.evaluate import Evaluation
from sunrise.tensors import sync, write_atomically

Status = Literal["running", "stopped", "finished", "failed"]
EVAL_FIELDS = ("timesteps", "mean_return", "std_return", "min_return", "max_return", "episodes")
LOGS = ("metrics.jsonl", "eval.csv")
log = logging.getLogger("sunrise")
PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")
EXTRAS = ("dm-control", "mujoco-warp", "warp-lang", "ale-py")
"""What computes where an extra is installed."""


def machine() -> dict[str, Any]:
    """What the bits of a result may depend on."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of what computes."""
    found = {"sunrise-rl": sunrise.__version__} | {name: metadata.version(name) for name in PACKAGES}
    for name in EXTRAS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def to_json(content: Any) -> str:
    """JSON that a person can read; a number that is not finite becomes null."""
    return json.dumps(_finite(content), indent=2) + "\n"


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


class Scalars:
    """TensorBoard events: one scalar of one name at one step. What is later than `purge_step` was written in vain."""

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        self.writer = EventFileWriter(str(folder))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self.writer.add_event(Event(wall_time=time.time(), step=purge_step, session_log=start))

    def add(self, row: Mapping[str, Any], step: int) -> None:
        values = [
            Summary.Value(tag=name if "/" in name else f"run/{name}", simple_value=float(value))
            for name, value in row.items()
            if isinstance(value, int | float)
        ]
        self.writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class RunFolder:
    """config.json, metrics.jsonl, eval.csv, status.json, TensorBoard events and checkpoints/ of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scalars: Scalars | None = None
        self._purge_step: int | None = None
        self._lock: IO[str] | None = None

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def create(self, algo: str, policy: str, settings: Mapping[str, Any], action_repeat: int = 1) -> None:
        """Make the folder; one that already holds a run is refused."""
        if (self.path / "config.json").exists():
            raise SunriseError(
                f"{self.path} already holds a run: `sunrise resume {self.path}` goes on with it; "
                "choose another --run-dir, or remove it."
            )
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SunriseError(f"the run's folder {self.path} cannot be made: {error.strerror}.") from None
        self.lock()
        self.write_config(
            {
                "algo": algo,
                "policy": policy,
                "settings": dict(settings),
                "action_repeat": action_repeat,
                "versions": versions(),
                "machine": machine(),
                "command": sys.argv,
            }
        )

    def write_config(self, config: Mapping[str, Any]) -> None:
        write_atomically(self.path / "config.json", to_json(config).encode())

    def lock(self) -> None:
        """Keep every other process out; the lock goes with the process that holds it."""
        if self._lock is not None:
            return
        file = (self.path / ".lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            file.close()
            raise SunriseError(f"{self.path} is in use by {owner}: wait for it, or stop it.") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}\n")
        file.flush()
        self._lock = file

    def log_sizes(self) -> dict[str, int]:
        """How long the logs are now: what a checkpoint vouches for."""
        paths = {name: self.path / name for name in LOGS}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}

    def sync_logs(self) -> None:
        """Force the logs to the disk."""
        for name in LOGS:
            if (self.path / name).exists():
                sync(self.path / name)

    def cut_logs(self, sizes: Mapping[str, int], timesteps: int) -> None:
        """Forget what was logged after a checkpoint: it will be logged again."""
        for name in LOGS:
            path, size = self.path / name, int(sizes.get(name, 0))
            length = path.stat().st_size if path.exists() else 0
            if length < size:
                log.warning("%s is shorter than it was at the checkpoint: rows are missing from it.", path)
            elif size == 0:
                path.unlink(missing_ok=True)
            else:
                os.truncate(path, size)
        self._purge_step = timesteps + 1

    def config(self) -> dict[str, Any]:
        """The run's config.json."""
        try:
            config = json.loads((self.path / "config.json").read_text())
        except (OSError, ValueError):
            raise SunriseError(f"{self.path} is not a run: it has no readable config.json.") from None
        if not isinstance(config, dict) or not {"algo", "policy", "settings"} <= config.keys():
            raise SunriseError(f"{self.path} is not a run: its config.json is not one of ours.")
        return config

    def metrics(self, row: Mapping[str, Any]) -> None:
        """Append a row to metrics.jsonl and to TensorBoard."""
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(_finite(row)) + "\n")
        self.scalars(row, int(row["timesteps"]))

    def evaluation(self, timesteps: int, env_steps: int, result: Evaluation) -> None:
        """Append a row to eval.csv and to TensorBoard."""
        path = self.path / "eval.csv"
        new = not path.exists()
        returns = result.returns or [math.nan]
        row = (timesteps, result.mean, result.std, min(returns), max(returns), len(result.returns))
        with path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(EVAL_FIELDS)
            writer.writerow(row)
        scalars = {f"eval/{k}": v for k, v in zip(EVAL_FIELDS[1:], row[1:], strict=True)}
        self.scalars({**scalars, "eval/env_steps": env_steps}, timesteps)

    def scalars(self, row: Mapping[str, Any], step: int) -> None:
        if self._scalars is None:
            self._scalars = Scalars(self.path, self._purge_step)
        self._scalars.add(row, step)

    def status(self, status: Status, timesteps: int, env_steps: int, **more: Any) -> None:
        content = {
            "status": status,
            "timesteps": timesteps,
            "env_steps": env_steps,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **more,
        }
        write_atomically(self.path / "status.json", to_json(content).encode())

    def read_status(self) -> dict[str, Any]:
        """The run's status.json; empty where it was killed before it had one."""
        try:
            status = json.loads((self.path / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def read_eval(self) -> list[dict[str, float]]:
        """The rows of eval.csv as numbers."""
        path = self.path / "eval.csv"
        if not path.exists():
            return []
        with path.open() as file:
            rows = list(csv.DictReader(file))
        return [{name: int(text) if text.isdigit() else float(text) for name, text in row.items()} for row in rows]

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def __del__(self) -> None:
        self.close()  # a model that is dropped does not keep others out

    def close(self) -> None:
        if self._scalars is not None:
            self._scalars.close()
            self._scalars = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
