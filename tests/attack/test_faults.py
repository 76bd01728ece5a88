"""Full disks, folders that vanish, programs that exit, and readers beside a run: one sentence, and the truth."""

import errno
import json
import os
import re
import resource
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import SAC
from sunrise.cli import main
from sunrise.store.checkpoint import Checkpoints
from sunrise.store.snapshot import take
from tests.attack.arena import SMALL, Arena
from tests.support.toys import Counter

AT = 55


class Saboteur(Counter):
    """Does something to its surroundings in the middle of a run."""

    deed: Callable[[], object] = staticmethod(lambda: None)

    def step(self, action: np.ndarray) -> Any:
        if self.total_steps == AT:
            type(self).deed()
        return super().step(action)


if "toy/Saboteur-v0" not in gym.registry:
    gym.register("toy/Saboteur-v0", Saboteur)  # type: ignore[arg-type]
TRAIN = "train sac --env-id toy/Saboteur-v0 --total-timesteps 90 --ensemble-size 2 --net-arch 4 4 --batch-size 4 "
TRAIN += "--buffer-size 60 --seed 3 --learning-starts 20 --eval-freq 0 --log-freq 25 --save-freq 30 --run-dir"


def fails(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that must fail says, which is one sentence and no traceback."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    errors = capsys.readouterr().err
    assert ended.value.code == 2, errors
    assert "Traceback" not in errors
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert errors.splitlines()[-1] == lines[0]
    return lines[0]


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def test_a_folder_that_is_removed_in_mid_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"

    def remove() -> None:
        while run.exists():  # a checkpoint may be on its way
            shutil.rmtree(run, ignore_errors=True)

    monkeypatch.setattr(Saboteur, "deed", staticmethod(remove))
    assert re.search(r"was moved, replaced or removed|is gone: it was removed", fails(f"{TRAIN} {run}", capsys))
    assert not run.exists()


def test_a_folder_that_is_renamed_in_mid_run_is_said_and_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    monkeypatch.setattr(Saboteur, "deed", staticmethod(lambda: run.rename(elsewhere)))
    assert "was moved, replaced or removed" in fails(f"{TRAIN} {run}", capsys)
    assert status(elsewhere)["status"] == "failed"
    assert not run.exists()
    monkeypatch.setattr(Saboteur, "deed", staticmethod(lambda: None))
    main(["resume", str(elsewhere)])
    assert status(elsewhere)["status"] == "finished"


def test_a_disk_that_takes_no_more_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real refusal of the kernel: files may not grow beyond 1 KB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    run = tmp_path / "run"
    monkeypatch.setattr(Saboteur, "deed", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1])))
    try:
        said = fails(f"{TRAIN} {run}", capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in said
    assert "the checkpoint at step 30 is whole" in said or "there is no checkpoint yet" in said
    assert status(run)["status"] == "failed"
    assert not [path for path in run.rglob("*") if path.name.endswith(".part")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EPERM])
def test_a_disk_that_takes_nothing_at_the_start_is_said(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("sunrise.files.folder.write_all", full)
    assert f"cannot be made: {os.strerror(number)}" in fails(f"{TRAIN} {tmp_path / 'run'}", capsys)
    monkeypatch.undo()
    main(f"{TRAIN} {tmp_path / 'run'}".split())
    assert status(tmp_path / "run")["status"] == "finished"


def test_a_folder_that_may_not_be_changed_is_said(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, really = arena.copy(tmp_path / "run"), os.open

    def guarded(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        return really(path, flags, *rest, **more)

    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    monkeypatch.setattr("sunrise.files.folder.os.open", guarded)
    assert "Operation not permitted" in fails(f"resume {run} --total-timesteps 200", capsys)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_an_environment_that_ends_the_program_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Saboteur, "deed", staticmethod(lambda: sys.exit(0)))
    run = tmp_path / "run"
    assert "the environment raised SystemExit" in fails(f"{TRAIN} {run} --max-env-restarts 0", capsys)
    assert status(run)["status"] == "failed"
    assert "raised SystemExit in an evaluation" in fails(f"evaluate {run} --episodes 200", capsys)


def test_a_callback_that_ends_the_program_stops_the_run(tmp_path: Path) -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", **SMALL, **Arena.often(), run_dir=str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        model.learn(60, lambda *_: sys.exit(7) if model.num_timesteps == 45 else None, progress_bar=False)
    assert ended.value.code == 7
    assert (status(tmp_path)["status"], status(tmp_path)["timesteps"]) == ("stopped", 45)
    assert SAC.resume(tmp_path).num_timesteps == 45


def test_readers_beside_a_run_that_saves_and_prunes_see_it_whole(
    arena: Arena, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = arena.copy(tmp_path / "run")
    arena.session(run).close()
    assert arena.model.trainer is not None
    snapshot = take(arena.model.trainer.state(), {**arena.model._about(), "begun": begun(run)}, {})
    snapshot = snapshot._replace(facts={**snapshot.facts, "logs": {}})
    over, wrote = threading.Event(), 0

    def write() -> None:
        nonlocal wrote
        checkpoints = Checkpoints(run / "checkpoints", keep=1)
        while not over.is_set():
            wrote += 1
            checkpoints.segments = []
            checkpoints.write(snapshot._replace(timesteps=100 + wrote % 50))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            for command in ("evaluate", "inspect", "reproduce"):
                findings = arena.read(run, command)
                if command == "inspect":
                    assert '"verifies": false' not in findings["checkpoints"]
    finally:
        over.set()
        writer.join()
    assert wrote > 5
    assert not caplog.records


def begun(run: Path) -> dict[str, Any]:
    config = json.loads((run / "config.json").read_text())
    return {name: config[name] for name in ("action_repeat", "versions", "machine", "command")}
