"""Two processes that both believe a run's folder is theirs: one of them writes."""

import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from sunrise.errors import SunriseError
from sunrise.files.folder import Folder
from sunrise.store import ownership
from sunrise.store.checkpoint import Checkpoints
from sunrise.store.manifest import check
from sunrise.store.ownership import LostError, Ownership, evict, is_in_use, owner_of, started, wait_until_free
from sunrise.store.run_folder import RunFolder
from tests.support import runs
from tests.support.late_writer import write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_lock_names_host_process_and_attempt(folder: Folder) -> None:
    first, second = Ownership(folder), Ownership(folder)
    first.take()
    owner = owner_of(folder)
    assert owner is not None
    assert owner[:4] == (socket.gethostname(), os.getpid(), started(os.getpid()), 1)
    assert owner.is_this_process
    with pytest.raises(SunriseError, match=f"is in use by process {os.getpid()}: wait for it, or stop it"):
        second.take()
    first.release()
    assert not is_in_use(folder)
    second.take()
    after = owner_of(folder)
    assert after is not None
    assert after.attempt == 2
    assert after.token != owner.token


def test_who_was_evicted_publishes_nothing_and_who_took_over_does(folder: Folder) -> None:
    first, second = Ownership(folder), Ownership(folder)
    first.take()
    owner = owner_of(folder)
    assert owner is not None
    with first.publishing(), first.publishing():
        pass
    assert evict(folder, owner)
    with pytest.raises(LostError, match="was taken over by another process"), first.publishing():
        raise AssertionError
    second.take()
    assert not evict(folder, owner)  # it is not the owner any more
    with pytest.raises(LostError, match=rf"taken over by process {os.getpid()} \(attempt 2\)"), first.publishing():
        raise AssertionError
    with second.publishing():
        pass
    first.release()
    assert is_in_use(folder)


def test_a_new_attempt_waits_for_the_old_one_or_for_news_of_its_death(folder: Folder) -> None:
    first = Ownership(folder)
    first.take()
    begun = time.monotonic()
    wait_until_free(folder, 0.3, lambda owner: False)
    assert time.monotonic() - begun >= 0.3
    assert is_in_use(folder)
    wait_until_free(folder, 60, lambda owner: owner.pid == os.getpid())
    assert not is_in_use(folder)
    assert time.monotonic() - begun < 30


def stopped_outside_a_turn(process: "subprocess.Popen[str]", folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop a process wherever it is, but while it publishes: then it has to end that first."""
    monkeypatch.setattr(ownership, "LONGEST_TURN", 0.05)
    while True:
        process.send_signal(signal.SIGSTOP)
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)
        try:
            with ownership.turn(folder):
                return
        except SunriseError:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.001)


def test_a_late_process_overwrites_nothing_wherever_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes, is stopped at a random moment and given up for dead; another begins again; then it comes back."""
    rng = random.Random(3)
    for number in range(12):
        path = tmp_path / str(number)
        (path / "checkpoints").mkdir(parents=True)
        command = [sys.executable, "-m", "tests.support.late_writer", str(path)]
        late = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        while not (path / "status.json").exists():
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.05))
        stopped_outside_a_turn(late, Folder(path), monkeypatch)
        owner = owner_of(Folder(path))
        assert owner is not None
        assert owner.pid == late.pid
        assert evict(Folder(path), owner)
        for name in Checkpoints(path / "checkpoints").folder.folders():
            if name.startswith("step-"):
                Checkpoints(path / "checkpoints")._remove(int(name[5:]))
        if number % 2:  # it comes back before the other writes, or after
            late.send_signal(signal.SIGCONT)
        write(path, 2.0, steps=4)
        late.send_signal(signal.SIGCONT)
        said, _ = late.communicate(timeout=30)
        assert late.returncode == 3
        assert "was taken over by" in said
        assert_is_all_of(path, 2.0, 4)


def assert_is_all_of(path: Path, who: float, steps: int) -> None:
    checkpoints = Checkpoints(path / "checkpoints")
    assert checkpoints.steps() == [steps - 1, steps]
    for step in checkpoints.steps():
        found = checkpoints.read(step, with_replay=False)
        for segment in found.manifest.segments:
            check(checkpoints.replay, segment.file, segment.sum, 10**6)
        assert found.facts() == {"who": who}
        assert (load_file(checkpoints.path(step) / "agents.safetensors")["agent"] == who).all()
        assert all((found.segment(segment)["ring/obs"] == who).all() for segment in found.manifest.segments)
    assert json.loads((path / "metrics.jsonl").read_text().splitlines()[-1]) == {"timesteps": steps, "who": who}
    assert RunFolder(path).read_status()["who"] == who


@pytest.mark.slow
def test_a_training_that_was_given_up_for_dead_and_comes_back_does_not_disturb_the_one_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = (
        "train sac --env-id Pendulum-v1 --net-arch 8 8 --buffer-size 400 --ensemble-size 2 --batch-size 8 "
        "--learning-starts 20 --eval-episodes 1 --log-freq 50 --eval-freq 500 --seed 3 --save-freq 20 "
        "--total-timesteps 2000 --run-dir"
    )

    def start(command: str) -> "subprocess.Popen[str]":
        arguments = [sys.executable, "-m", "sunrise", *shlex.split(command)]
        return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)

    path = tmp_path / "run"
    late, whole = start(f"{train} {path}"), start(f"{train} {tmp_path / 'whole'}")
    while late.poll() is None and not list(path.glob("checkpoints/step-*")):
        time.sleep(0.01)
    stopped_outside_a_turn(late, Folder(path), monkeypatch)
    owner = owner_of(Folder(path))
    assert owner is not None
    assert evict(Folder(path), owner)
    new = start(f"resume {path}")
    while new.poll() is None and (now := owner_of(Folder(path))) is not None and now.attempt < 2:
        time.sleep(0.01)
    late.send_signal(signal.SIGCONT)  # now both believe
    _, said = late.communicate(timeout=120)
    assert late.returncode == 2
    assert "was taken over by process" in said
    assert new.wait(120) == 0
    assert whole.wait(120) == 0
    runs.assert_same(path, tmp_path / "whole")
    assert not list(path.rglob("*.part"))
    for process in (new, whole):
        process.communicate()
