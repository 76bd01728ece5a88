"""Real processes, killed with SIGKILL at random moments again and again, end where the one never killed ends."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sunrise.store.checkpoint import Checkpoints
from tests.support import runs

KILLS = int(os.environ.get("SUNRISE_KILLS", "5"))
"""Kills of each run; `make soak` asks for many more, of longer runs."""
LENGTH = max(KILLS / 5, 1)
SMALL = "--ensemble-size 2 --batch-size 8 --learning-starts 20 --eval-episodes 1 --log-freq 50 --seed 3"
FAMILIES = {
    "one MuJoCo environment": "train sac --env-id Hopper-v5 --net-arch 8 8 --buffer-size 400 --save-freq 25 "
    f"--eval-freq 500 --total-timesteps {1500 * LENGTH:.0f}",
    "three environments in processes of their own": "train sac --env-id InvertedPendulum-v5 --net-arch 8 8 "
    "--buffer-size 400 --num-envs 3 --vectorization async --bootstrap-prob 0.5 --save-freq 30 --eval-freq 500 "
    f"--total-timesteps {1500 * LENGTH:.0f}",
    "pictures": "train rad --env-id dmc/cartpole-swingup --render-size 20 --crop-size 16 --shadow-size 0 --filters 4 "
    "--conv-layers 2 --feature-dim 8 --net-arch 16 16 --buffer-size 100 --save-freq 10 --eval-freq 0 "
    f"--total-timesteps {300 * LENGTH:.0f}",
    "an Atari game": "train rainbow --env-id ALE/Pong-v5 --net-arch 8 --n-atoms 5 --n-step 3 --buffer-size 200 "
    f"--target-update-interval 20 --save-freq 15 --eval-freq 0 --total-timesteps {400 * LENGTH:.0f}",
}


def start(command: str) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-m", "sunrise", *shlex.split(command)]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(command: str) -> str:
    process = start(command)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return errors


def steps_of(folder: Path) -> list[int]:
    return Checkpoints(folder / "checkpoints").steps()


def kill_soon(command: str, folder: Path, rng: random.Random) -> bool:
    """Start, let it make a checkpoint or two, and kill it wherever it is then; False if it came to its end first."""
    before, process = steps_of(folder)[-1:], start(command)
    while process.poll() is None and steps_of(folder)[-1:] == before:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.15))
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert alive or process.returncode == 0, errors
    return alive


def whole_and_killed(name: str, folder: Path) -> int:
    """A run of a family that is left alone, and one that is not; how often that was killed."""
    rng = random.Random(name)
    begin = f"{FAMILIES[name]} {SMALL} --run-dir"
    finish(f"{begin} {folder / 'whole'}")
    killed = folder / "killed"
    kills = int(kill_soon(f"{begin} {killed}", killed, rng))
    while kills and kills < KILLS and kill_soon(f"resume {killed}", killed, rng):
        kills += 1
    finish(f"resume {killed}")
    return kills


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    folders = {name: tmp_path_factory.mktemp("family") for name in FAMILIES}
    with ThreadPoolExecutor(2) as pool:
        kills = pool.map(whole_and_killed, folders, folders.values())
    return dict(zip(folders, zip(folders.values(), kills, strict=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_killed_many_times_is_the_run_never_killed(name: str, families: dict[str, tuple[Path, int]]) -> None:
    folder, kills = families[name]
    assert kills == KILLS
    runs.assert_same(folder / "whole", folder / "killed")
    assert not list((folder / "killed").rglob("*.part"))


@pytest.mark.slow
def test_a_finished_run_is_left_as_it_is(families: dict[str, tuple[Path, int]]) -> None:
    folder = families["one MuJoCo environment"][0] / "killed"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert f"is finished: {1500 * LENGTH:,.0f} timesteps" in finish(f"resume {folder}")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


DISK_FULL = """
mount -t tmpfs -o size={size} tmpfs {disk} || exit 77
python() {{ {python} -m sunrise "$@"; }}
python {train} --run-dir {disk}/run; echo "trained: $?" >&2
python inspect {disk}/run --json
ls {disk}/run/checkpoints/.*.part {disk}/run/checkpoints/replay/.*.part 2>/dev/null
mount -o remount,size=64m {disk}
python resume {disk}/run; echo "resumed: $?" >&2
cp -r {disk}/run {kept}
"""


@pytest.mark.slow
def test_a_full_disk_stops_a_run_cleanly_and_it_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    """On a small disk of its own, in a namespace of its own, so that it takes no rights."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    train = (
        f"train sac --env-id Hopper-v5 --net-arch 128 128 --total-timesteps 200 --save-freq 20 --eval-freq 100 {SMALL}"
    )
    script = DISK_FULL.format(disk=disk, kept=kept, train=train, python=sys.executable, size="2m")
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("no namespace of our own may be made here")
    assert "trained: 2" in done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"the disk of \S+ is full: a checkpoint needs [\d.]+ MB, and [\d.]+ MB are free", done.stderr)
    (line,) = done.stdout.splitlines()
    findings = json.loads(line)
    assert findings["status"] == "failed"
    assert findings["last_good_step"] == findings["checkpoints"][-1]["timesteps"] < 200
    assert "resumed: 0" in done.stderr, done.stderr
    finish(f"{train} --run-dir {tmp_path / 'whole'}")
    runs.assert_same(tmp_path / "whole", kept)


@pytest.mark.slow
def test_a_second_process_is_kept_out_and_a_killed_one_is_not_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = f"{FAMILIES['one MuJoCo environment']} {SMALL} --run-dir {folder} --total-timesteps 1000000"
    process = start(command)
    while process.poll() is None and not steps_of(folder):
        time.sleep(0.01)
    second = start(f"resume {folder}")
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 2
    assert f"is in use by process {process.pid}: wait for it, or stop it." in " ".join(errors.split())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    until = steps_of(folder)[-1] + 10
    third = start(f"resume {folder} --total-timesteps {until}")
    _, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
    status = json.loads((folder / "status.json").read_text())
    assert (status["status"], status["timesteps"]) == ("finished", until)
