"""A run of every kind, killed at every single event on its files and resumed each time, is the run never killed."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.attack.dying import KILLED
from tests.runs.test_kills import finish
from tests.support import runs

EVERY = int(os.environ.get("SUNRISE_FILE_EVENTS", "0"))
"""0: the sample of an ordinary run of the tests. n: kills at each n-th event; `make soak` says 1."""
SMALL = "--ensemble-size 2 --batch-size 8 --learning-starts 20 --eval-episodes 1 --log-freq 30 --seed 3 --keep 2"
KINDS = {
    "uniform replay": "train sac --env-id Pendulum-v1 --net-arch 8 8 --buffer-size 90 --save-freq 40 --eval-freq 70 "
    "--total-timesteps 410",
    "prioritised frames": "train rainbow --env-id ALE/Pong-v5 --net-arch 8 --n-atoms 5 --n-step 3 --buffer-size 90 "
    "--target-update-interval 20 --save-freq 40 --eval-freq 0 --total-timesteps 330",
    "several environments": "train sac --env-id InvertedPendulum-v5 --net-arch 8 8 --buffer-size 90 --num-envs 3 "
    "--bootstrap-prob 0.5 --reward-noise 0.5 --save-freq 42 --eval-freq 60 --total-timesteps 410",
    "environments in processes of their own": "train sac --env-id InvertedPendulum-v5 --net-arch 8 8 --buffer-size 90 "
    "--num-envs 2 --vectorization async --save-freq 40 --eval-freq 0 --total-timesteps 330",
    "pictures": "train rad --env-id dmc/cartpole-swingup --render-size 20 --crop-size 16 --shadow-size 0 --filters 4 "
    "--conv-layers 2 --feature-dim 8 --net-arch 16 16 --buffer-size 90 --save-freq 40 --eval-freq 0 "
    "--total-timesteps 330",
}
TRIED = list(KINDS) if EVERY else list(KINDS)[:1]
SAMPLE = (5, 48, 168)
"""The first files of a run, the middle of a checkpoint, and one while an older one is removed."""


def killed_at(event: int, folder: Path, command: str) -> bool:
    """Run until an event, whatever it is; False if the command came to its end before it."""
    arguments = [sys.executable, "-m", "tests.attack.dying", str(event), str(folder), *shlex.split(command)]
    where = Path(__file__).parents[2]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=900, check=False, cwd=where)
    assert done.returncode in (0, KILLED), f"event {event}: {done.stderr}"
    killed = done.returncode == KILLED  # then a process of an environment that was about to start may complain
    wrong = "damaged|did not come back" if killed else "damaged|did not come back|Traceback"
    assert not re.search(wrong, done.stderr), f"event {event}: {done.stderr}"
    return killed


def kills(kind: str, folder: Path) -> int:
    """A run left alone, and one killed at event 1, resumed and killed at its event 2, and so on until it ends."""
    begin = f"{KINDS[kind]} {SMALL} --run-dir"
    finish(f"{begin} {folder / 'whole'}")
    run, count, step = folder / "killed", 0, EVERY or 1
    events = SAMPLE if not EVERY else range(1, 10_000, step)
    for event in events:
        # Killed before its first file, a run is not there to be resumed.
        there = (run / "config.json").exists()
        if not killed_at(event, run, f"resume {run}" if there else f"{begin} {run}"):
            break
        count += 1
    finish(f"resume {run}")
    return count


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, Future[int]]]]:
    folders = {kind: tmp_path_factory.mktemp("kind") for kind in TRIED}
    with ThreadPoolExecutor(2) as pool:
        yield {kind: (folder, pool.submit(kills, kind, folder)) for kind, folder in folders.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRIED)
def test_a_run_killed_at_every_event_on_its_files_is_the_run_never_killed(
    kind: str, outcomes: dict[str, tuple[Path, Future[int]]]
) -> None:
    folder, killing = outcomes[kind]
    count = killing.result()
    assert count >= (len(SAMPLE) if not EVERY else 40 // EVERY)
    runs.assert_same(folder / "whole", folder / "killed")
    if EVERY and (counts := os.environ.get("SUNRISE_COUNTS")):
        path = Path(counts).with_name("kills.json")
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(before | {kind: {"kills": count, "outcome": "equal in every bit"}}, indent=2) + "\n")
    assert not [path for path in (folder / "killed").rglob(".*") if path.name not in (".lock", ".turn")]
