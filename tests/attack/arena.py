"""A small run to attack, and every command's reading of it in one process: ten thousand attacks take minutes."""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sunrise import SAC
from sunrise.agents.loading import load
from sunrise.config.algorithms import algorithm
from sunrise.envs.spaces import restore
from sunrise.files.documents import sealed
from sunrise.run.events import Ended, Evaluated, MetricsRow, Started
from sunrise.sinks.folder import FolderSink
from sunrise.store.checkpoint import Checkpoints, Snapshot
from sunrise.store.inspection import inspect_path
from sunrise.store.reading import read_model, read_run
from sunrise.store.run_folder import RunFolder
from sunrise.store.saved import Checkpoint
from sunrise.store.session import Session
from sunrise.store.snapshot import take
from sunrise.store.tensors import load_tree, open_model
from sunrise.trees import named_leaves

SMALL: dict[str, Any] = {"ensemble_size": 2, "net_arch": (4, 4), "batch_size": 4, "buffer_size": 60, "seed": 3}
LENGTH, BEFORE = 100, 90
"""Where the run ended, and its checkpoint before that."""


class Outcome(NamedTuple):
    """What came of reading, by a command; two equal ones were not told apart by it."""

    command: str
    read: Any


class Arena:
    """The run, a model of it, and what every command reads of it when nobody has touched it."""

    def __init__(self, folder: Path) -> None:
        self.run, self.model_file = folder / "run", folder / "model.safetensors"
        model = SAC("MlpPolicy", "Pendulum-v1", **SMALL, **self.often(), run_dir=str(self.run))
        model.learn(LENGTH, progress_bar=False, log_interval=None)
        model.save(self.model_file)
        fault = {"error": "a value is not finite", "not_finite": ["a value"], "timesteps": 7, "time": ""}
        (self.run / "fault").mkdir()
        (self.run / "fault" / "fault.json").write_bytes(sealed(fault))
        self.early = self.copy(folder / "early")
        shutil.rmtree(self.early / "checkpoints")
        self.model = SAC.resume(self.copy(folder / "loaded"))
        assert self.model.session is not None
        self.model.session.close()
        self.like = self.model.ensemble
        self.device = self.model.session.folder.device
        self.at = {LENGTH: self.read(self.copy(folder / "loaded"), "resume")}
        shutil.rmtree(self.copy(folder / "loaded") / "checkpoints" / f"step-{LENGTH:09d}")
        self.at[BEFORE] = self.read(folder / "loaded", "resume")

    @staticmethod
    def often() -> dict[str, Any]:
        return {"learning_starts": 20, "eval_freq": 50, "eval_episodes": 1, "log_freq": 25, "save_freq": 30}

    def files(self) -> list[Path]:
        """Every file that any command reads."""
        return sorted(path for path in self.run.rglob("*") if path.is_file() and "tfevents" not in path.name)

    def copy(self, to: Path, what: Path | None = None) -> Path:
        shutil.rmtree(to, ignore_errors=True)
        return Path(shutil.copytree(what or self.run, to, symlinks=True))

    def session(self, folder: Path) -> Session:
        """A run resumed in the trainer there is."""
        session = Session(RunFolder(folder, self.device), 2, self.model._about)
        assert self.model.trainer is not None
        try:
            session.resume(self.model.trainer, read_run(folder), 1)
        except BaseException:
            session.close()
            raise
        return session

    def go_on(self, folder: Path) -> None:
        """Resume, log and save, as the next steps of a training would."""
        sink, trainer = FolderSink(self.session(folder)), self.model.trainer
        assert trainer is not None
        assert trainer.last_evaluation is not None
        at = trainer.timesteps
        try:
            sink(Started(trainer.config, at, at + 30, 1))
            sink(MetricsRow({"timesteps": at}))
            sink(Evaluated(at, at, trainer.last_evaluation))
            for _ in range(3):
                trainer.timesteps += 10
                sink(trainer.checkpoint())
            sink(Ended(trainer.timesteps, "finished", trainer.state))
        finally:
            sink.close()

    def read(self, folder: Path, command: str) -> Any:
        """What a command reads of a folder, in a form that can be compared."""
        return getattr(self, f"_{command}")(folder)

    def _resume(self, folder: Path) -> Any:
        session = self.session(folder)
        session.close()
        assert self.model.trainer is not None
        if not session.has_checkpoints:  # it begins again, and all that it has read are its settings
            return read_run(folder)["settings"]
        return in_bytes(take(self.model.trainer.state(), {}, {}))

    def _evaluate(self, folder: Path) -> Any:
        config = read_run(folder)

        def load(found: Checkpoint) -> Any:
            with found.open_agents() as file:
                about = read_model(file, found.path, algorithm(config["algo"]))
                spaces = [str(restore(about[name])) for name in ("observation_space", "action_space")]
                return spaces, about["timesteps"], bytes_of(named_leaves(load_tree(file, found.path, self.like)))

        return config["settings"], Checkpoints(RunFolder(folder).checkpoints).read_newest(load)

    def _reproduce(self, folder: Path) -> Any:
        run = RunFolder(folder)
        return read_run(folder), run.read_status(), run.read_eval(), run.read_metrics()

    def _inspect(self, folder: Path) -> Any:
        findings = inspect_path(folder)
        return {name: json.dumps(value) for name, value in findings.items() if name not in ("bytes", "path")}

    def _load(self, file: Path) -> Any:
        with open_model(file) as opened:
            model = load(SAC, opened, file, None, {})
        agents = bytes_of(named_leaves(model.ensemble))
        return str(model.config), agents, str(model.observation_space), str(model.action_space), model.num_timesteps


def in_bytes(snapshot: Snapshot) -> Any:
    """A snapshot in every bit."""
    groups = (snapshot.agents, snapshot.arrays, snapshot.rows)
    return snapshot.timesteps, json.dumps(snapshot.facts), [bytes_of(group) for group in groups]


def bytes_of(arrays: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@contextmanager
def silent() -> Iterator[None]:
    """Without our warnings: thousands of attacks give thousands of them."""
    log = logging.getLogger("sunrise")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before
