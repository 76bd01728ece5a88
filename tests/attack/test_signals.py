"""Signals to all processes of a run at once, as service managers, schedulers and terminals send them."""

import contextlib
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.attack.hostile import wait_for
from tests.runs.test_kills import finish, start, steps_of
from tests.support import runs

TRAIN = (
    "train sac --env-id InvertedPendulum-v5 --ensemble-size 2 --net-arch 8 8 --batch-size 8 --learning-starts 20 "
    "--buffer-size 400 --num-envs 2 --vectorization async --log-freq 50 --eval-freq 400 --eval-episodes 1 "
    "--save-freq 40 --total-timesteps 1600 --seed 3"
)
ON_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program whose terminal is its standard input."""
STOPS = [(name, later) for later in (None, 0.02, 0.15) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""Each signal, once and twice: the second does not wait for the end of a step, or finds the run on its way out."""


def group(leader: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == leader and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def stopped(command: str, folder: Path, name: str, later: float | None) -> str:
    """Start, wait for a checkpoint, and send a signal to the whole group; what was said."""
    before, process = steps_of(folder)[-1:], start(command)
    while process.poll() is None and steps_of(folder)[-1:] == before:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    assert len(group(process.pid)) >= 3  # the environments are there
    os.killpg(process.pid, getattr(signal, name))
    if later is not None:
        time.sleep(later)
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            os.killpg(process.pid, getattr(signal, name))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "episode is dropped" not in errors
    assert "Stopped at timestep" in errors
    assert wait_for(lambda: not group(process.pid), 20)
    return errors


@pytest.mark.slow
def test_a_run_whose_whole_group_is_told_to_stop_is_exact(tmp_path: Path) -> None:
    finish(f"{TRAIN} --run-dir {tmp_path / 'whole'}")
    folder = tmp_path / "stopped"
    command = f"{TRAIN} --run-dir {folder}"
    for name, later in STOPS:
        stopped(command, folder, name, later)
        assert json.loads((folder / "status.json").read_text())["status"] == "stopped"
        command = f"resume {folder}"
    finish(command)
    runs.assert_same(tmp_path / "whole", folder)
    assert json.loads((runs.newest(folder) / "state.json").read_text())["restarts"] == 0


@pytest.mark.slow
def test_a_run_outlives_nothing_of_its_terminal_but_is_saved(tmp_path: Path) -> None:
    """The terminal goes away: all of the run gets SIGHUP, and nothing can be written to the screen any more."""
    folder, arguments = tmp_path / "run", [sys.executable, "-m", "sunrise", *shlex.split(TRAIN), "--run-dir"]
    terminal, screen = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *arguments, str(folder)],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    )
    os.close(screen)
    os.set_blocking(terminal, False)
    deadline = time.monotonic() + 120
    while not steps_of(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65536)
    os.close(terminal)
    process.wait(120)
    status = json.loads((folder / "status.json").read_text())
    assert status["status"] == "stopped"
    assert steps_of(folder)[-1] == status["timesteps"]


@pytest.mark.slow
def test_under_nohup_a_run_outlives_its_terminal(tmp_path: Path) -> None:
    command = [*["nohup", sys.executable, "-m", "sunrise"], *shlex.split(TRAIN), "--run-dir", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while process.poll() is None and not steps_of(tmp_path / "run"):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGHUP)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "finished"
