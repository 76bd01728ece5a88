"""A real Ray cluster whose workers, nodes and driver are killed: every trial ends where the undisturbed one ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sunrise.experiments.executor import HERE
from sunrise.experiments.tune import Method, tune
from sunrise.files.folder import Folder
from sunrise.store.ownership import Owner, is_in_use, owner_of
from sunrise.store.run_folder import RunFolder
from tests.experiments.test_sweep import status_of, tiny
from tests.support import runs

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own, of processes and sockets that it leaves
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).parents[2]
SEEDS, LENGTH = 6, 1200
SEARCH = """\
algo: random
env_id: Pendulum-v1
settings:
  {total_timesteps: 300, eval_freq: 100, eval_episodes: 1, learning_starts: 10, save_freq: 5}
search:
  eval_max_steps: {low: 5, high: 40}
"""
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
"""How soon a node that does not answer is given up: in seconds here, half a minute by default."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that runs nothing, and two nodes of one core."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": QUICK})
        for _ in range(2):
            made.add_node(num_cpus=1)
        yield made
        made.shutdown()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("grid") / "grid.yaml", str(SEEDS), LENGTH)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, grid: Path) -> Path:
    """The same runs, undisturbed, in processes of this machine."""
    out = tmp_path_factory.mktemp("whole")
    assert drive(grid, out, "--workers", "2", "--cpus", "1").wait(300) == 0
    return out / "runs"


def drive(
    file: Path, out: Path, *flags: str, name: str = "sweep", program: tuple[str, ...] = ("-m", "sunrise")
) -> "subprocess.Popen[str]":
    command = [sys.executable, *program, name, str(file), "--out", str(out), *flags]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def said_by(driver: "subprocess.Popen[str]", code: int) -> str:
    _, said = driver.communicate(timeout=600)
    assert driver.returncode == code, said
    return said


def at_work(out: Path, place: str = "", other_than: int = 0) -> tuple[Path, Owner]:
    """A trial that has made a checkpoint and goes on, on a node if one is named."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for folder in sorted((out / "runs").glob("*")):
            owner = owner_of(Folder(folder))
            if owner and place in owner.place and owner.pid != other_than and is_in_use(Folder(folder)):
                done = list(folder.glob("checkpoints/step-*"))
                if done and max(int(step.name[5:]) for step in done) < LENGTH - 200:
                    return folder, owner
        time.sleep(0.02)
    raise AssertionError("no trial came to work")


def left(out: Path) -> dict[Path, dict[str, Any]]:
    """The statuses of the trials, once no process works on any; one that was stopped before it had any begins anew."""
    until = time.monotonic() + 120
    while any(is_in_use(Folder(folder)) for folder in (out / "runs").iterdir()):
        assert time.monotonic() < until
        time.sleep(0.05)
    statuses = {folder: RunFolder(folder).read_status() for folder in (out / "runs").iterdir()}
    assert not [path for folder, has in statuses.items() if not has for path in folder.glob("checkpoints/step-*")]
    return {folder: status for folder, status in statuses.items() if status}


def test_a_killed_worker_a_lost_node_and_a_killed_driver_change_no_bit(
    cluster: Any, grid: Path, whole: Path, tmp_path: Path
) -> None:
    on_ray = ("--ray-address", cluster.address, "--cpus", "1")
    driver = drive(grid, tmp_path, *on_ray)
    _, owner = at_work(tmp_path)
    os.kill(owner.pid, signal.SIGKILL)
    lost = cluster.add_node(num_cpus=1) if len(cluster.worker_nodes) < 2 else sorted(cluster.worker_nodes, key=id)[0]
    folder, owner = at_work(tmp_path, lost.node_id, owner.pid)
    cluster.remove_node(lost, allow_graceful=False)
    cluster.add_node(num_cpus=1)
    until = time.monotonic() + 300
    while (now := owner_of(Folder(folder))) is None or now.attempt == owner.attempt:
        assert time.monotonic() < until
        time.sleep(0.05)
    at_work(tmp_path)
    driver.kill()
    _, said = driver.communicate()
    assert "its process was killed or broke down; it is tried again" in said
    assert said.count("it is tried again") >= 2
    last = said_by(drive(grid, tmp_path, *on_ray), 0)
    assert f"{SEEDS} of {SEEDS} trials are finished" in last
    attempts = []
    for path in whole.iterdir():
        runs.assert_same(tmp_path / "runs" / path.name, path)
        config = json.loads((tmp_path / "runs" / path.name / "config.json").read_text())
        assert config["machine"]["cores"] == 1
        attempts.append(json.loads((tmp_path / "runs" / path.name / ".lock").read_text())["attempt"])
    assert max(attempts) >= 2


def test_ctrl_c_and_sigterm_save_every_trial_and_the_same_command_ends_where_the_undisturbed_one_does(
    cluster: Any, grid: Path, whole: Path, tmp_path: Path
) -> None:
    flags = ("--ray-address", cluster.address, "--only", "1/3")  # two trials
    for number in (signal.SIGINT, signal.SIGTERM):
        driver = drive(grid, tmp_path, *flags)
        at_work(tmp_path)
        driver.send_signal(number)
        said = said_by(driver, 130)
        assert "Stopped; what was trained is saved." in said
        assert f"Go on: sunrise sweep {grid} --out {tmp_path} --ray-address {cluster.address} --only 1/3" in said
        statuses = left(tmp_path)
        assert statuses  # at least the one that was at work
        for folder, status in statuses.items():
            assert status["status"] in ("stopped", "finished")
            assert "killed" not in status
            assert runs.newest(folder).name == f"step-{status['timesteps']:09d}"
    assert "2 of 2 trials are finished" in said_by(drive(grid, tmp_path, *flags), 0)
    for folder in (tmp_path / "runs").iterdir():
        runs.assert_same(folder, whole / folder.name)


def test_a_tuning_whose_driver_is_killed_chooses_what_the_undisturbed_one_does(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text(SEARCH)
    method = Method(sampler="tpe", trials=2, parallel=2, rungs=2)
    tune(tmp_path / "search.yaml", tmp_path / "whole", HERE, method, report=False, dry_run=False, command=())
    assert (tmp_path / "whole" / "candidates.csv").read_text().count("given up") == 1  # one is better than the other
    flags = ("--sampler", "tpe", "--trials", "2", "--parallel", "2", "--rungs", "2")
    on_ray = (*flags, "--ray-address", cluster.address)
    driver = drive(tmp_path / "search.yaml", tmp_path / "out", *on_ray, name="tune")
    until = time.monotonic() + 300
    while not list(tmp_path.glob("out/select/runs/*/checkpoints/step-*")) and time.monotonic() < until:
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    said_by(drive(tmp_path / "search.yaml", tmp_path / "out", *on_ray, name="tune"), 0)
    for name in ("candidates.csv", "best/Pendulum-v1.yaml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    folders = [sorted(path.name for path in (tmp_path / out / "select" / "runs").iterdir()) for out in ("out", "whole")]
    assert folders[0] == folders[1]
    assert len(folders[0]) == 2


def test_a_trial_that_raises_and_one_that_eats_its_memory_stop_no_other(cluster: Any, tmp_path: Path) -> None:
    file = tiny(tmp_path / "grid.yaml", length=100, more=", max_env_restarts: 0")
    envs = "env_id: [Pendulum-v1, 'tests.support.misbehaving:Raises-v0', 'tests.support.misbehaving:Eats-v0']"
    file.write_text(file.read_text().replace("env_id: Pendulum-v1", envs))
    driver = drive(file, tmp_path / "out", "--ray-address", cluster.address, "--memory", "1", "--retries", "1")
    said = said_by(driver, 1)
    assert "1 of 3 trials are finished" in said
    folder = tmp_path / "out" / "runs"
    assert status_of(folder / "Pendulum-v1__sac__3") == ("finished", 100)
    raised = (folder / "tests.support.misbehaving:Raises-v0__sac__3" / "failure.txt").read_text()
    assert "the simulator fell over" in raised
    assert "Traceback" in raised
    assert re.search(r"Raises-v0__sac__3: .*the simulator fell over", said)
    assert said.count("Raises-v0, seed 3: /") == 1  # an error of the environment's is final
    assert re.search(
        r"Eats-v0__sac__3: it had [\d,]+ MiB .* more than the 1,024 MiB it was granted.*tried 2 times", said
    )


def test_a_storage_that_fills_up_fails_cleanly_and_goes_on_when_there_is_room(
    cluster: Any, grid: Path, whole: Path, tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root may mount a small disk that the cluster sees")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("no disk may be mounted here")
    try:
        flags = ("--ray-address", cluster.address, "--only", "1/6")
        said = said_by(drive(grid, disk, *flags), 1)
        assert re.search(r"__1: the disk of \S+ is full", said)
        assert "0 of 1 trials are finished" in said
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert "1 of 1 trials are finished" in said_by(drive(grid, disk, *flags), 0)
        runs.assert_same(disk / "runs" / "Pendulum-v1__sac__1", whole / "Pendulum-v1__sac__1")
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_without_its_head_the_trials_save_the_driver_says_so_and_another_cluster_goes_on(
    cluster: Any, grid: Path, whole: Path, tmp_path: Path
) -> None:
    """The last of this cluster."""
    hasty = "import sunrise.cli, sunrise.experiments.on_ray as on_ray; on_ray.SILENCE = 2; sunrise.cli.main()"
    driver = drive(grid, tmp_path, "--ray-address", cluster.address, "--only", "1/3", program=("-c", hasty))
    at_work(tmp_path)
    cluster.head_node.kill_gcs_server()
    said = said_by(driver, 2)
    assert re.search(r"The head of the Ray cluster, \S+, does not answer; it has 2 s to come back", said)
    assert re.search(r"error: the head of the Ray cluster, \S+, is gone.* Go on: sunrise sweep .* --only 1/3", said)
    assert "stopped" in {status["status"] for status in left(tmp_path).values()}
    from ray.cluster_utils import Cluster

    other = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    try:
        flags = ("--ray-address", other.address, "--only", "1/3")
        assert "2 of 2 trials are finished" in said_by(drive(grid, tmp_path, *flags), 0)
    finally:
        other.shutdown()
    for folder in (tmp_path / "runs").iterdir():
        runs.assert_same(folder, whole / folder.name)
