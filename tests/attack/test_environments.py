"""Environments that raise, die, hang or answer nonsense, at the worst of times: the run goes on, or says why not."""

import logging
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import SAC, NonFiniteError
from sunrise.envs.vector import AsyncEnvs, SyncEnvs
from sunrise.errors import EnvironmentFailedError
from sunrise.run.collect import Collector
from sunrise.run.restarts import WINDOW
from tests.attack import hostile
from tests.attack.hostile import alive, wait_for
from tests.support.toys import Counter

TINY: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 200}
TINY |= {"learning_starts": 20, "eval_freq": 0}


def collector(env: Any, max_restarts: int = 0) -> Collector:
    return Collector(env, 5, 2, np.random.default_rng(0), 0.99, "bootstrap", max_restarts=max_restarts)


def step(subject: Collector, steps: int, first: int = 0) -> None:
    for t in range(first, first + steps):
        action = np.zeros((subject.count, 1), np.float32)
        subject.step(action, action, t)


def repeated(env: Any, after: Collector) -> tuple[Collector, dict[int, str]]:
    """A new collector in place of one, and what became of its environments."""
    new = collector(env, max_restarts=10)
    new.restore(after.state(), 50)
    return new, new.repeat_episodes()


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (partial(Counter, 99, fail_at=40), "it raised RuntimeError: the simulator fell over"),
        (partial(Counter, 99, bad="observation"), "it has state beyond its seed"),
        (partial(hostile.Odd, obs=np.zeros(3, np.float32), at=30), "it gave a bad observation: its shape is (3,)"),
    ],
)
def test_an_environment_that_fails_while_its_journal_is_replayed_begins_a_new_episode(second: Any, why: str) -> None:
    first = collector(SyncEnvs([partial(Counter, 99)] * 2))
    step(first, 50)
    new, elsewhere = repeated(SyncEnvs([partial(Counter, 99), second]), first)
    assert list(elsewhere) == [1]
    assert elsewhere[1].startswith(why)
    assert new.episode.tolist() == [0, 1]
    assert new.obs[:, 0].tolist() == [50, 0]  # the other one is where it was
    step(new, 20, 50)
    assert new.restarts.total == 0


def test_a_run_whose_environment_fails_in_the_replay_is_resumed_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    SAC("MlpPolicy", Counter(99, "truncated"), **TINY, run_dir=str(tmp_path / "run")).learn(40, progress_bar=False)
    with caplog.at_level(logging.WARNING, "sunrise"):
        model = SAC.resume(tmp_path / "run", env=Counter(99, fail_at=33))
    assert "Environment 0 did not come back to where it was: it raised RuntimeError: the simulator" in caplog.text
    assert model.learn(30, reset_num_timesteps=False, progress_bar=False).num_timesteps == 70


def test_resets_and_makers_that_fail_again_and_again_are_endured_up_to_the_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made: list[int] = []

    def make() -> Counter:
        made.append(len(made))
        if len(made) == 3:
            raise OSError("no licence")
        return hostile.Reluctant(10, refusals=2 if len(made) == 2 else 0, fail_at=15 if len(made) == 1 else 0)

    with caplog.at_level(logging.WARNING, "sunrise"):
        subject = collector(SyncEnvs([make]), max_restarts=4)
        step(subject, 40)
    # It falls over; the new one refuses to begin; the next cannot be made; the one after goes on.
    assert subject.restarts.total == 3
    assert [line.split("(")[1].split(")")[0] for line in caplog.messages] == [
        "step 5 of its episode 1",
        "step 0 of its episode 2",
        "step 0 of its episode 2",
    ]
    assert "raised OSError in the reset at timestep 14: no licence" in caplog.text
    assert "(restart 3 of 4 in 100,000 timesteps)" in caplog.text
    with pytest.raises(EnvironmentFailedError, match="raised RuntimeError in the reset at timestep 0: not now"):
        collector(SyncEnvs([partial(hostile.Reluctant, 10, refusals=99)]), max_restarts=4)


def test_the_limit_counts_the_failures_of_the_last_timesteps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sunrise.run.collect.A_MOMENT", 0.0)
    subject = collector(SyncEnvs([partial(Counter, 10, fail_at=5)]), max_restarts=2)
    for t in range(0, 9 * WINDOW, WINDOW // 2):
        step(subject, 5, t)  # fails once each time
    assert subject.restarts.total == 18
    with pytest.raises(EnvironmentFailedError, match="the simulator fell over"):
        step(subject, 15, 9 * WINDOW)


def test_the_failures_and_a_higher_limit_come_along_when_a_run_is_resumed(tmp_path: Path) -> None:
    env_id = "attack/Falls-v0"
    if env_id not in gym.registry:
        gym.register(env_id, partial(Counter, 10, fail_at=30))
    settings = TINY | {"max_env_restarts": 2, "save_freq": 20, "run_dir": str(tmp_path)}
    with pytest.raises(EnvironmentFailedError, match="the simulator fell over"):
        SAC("MlpPolicy", env_id, **settings).learn(300, progress_bar=False)  # at 29, 58, 87
    again = SAC.resume(tmp_path)
    assert again.trainer is not None
    assert again.trainer.collector.restarts.recent == [29, 58]
    with pytest.raises(EnvironmentFailedError, match="the simulator fell over"):
        again.learn(220, reset_num_timesteps=False, progress_bar=False)
    model = SAC.resume(tmp_path, max_env_restarts=50)
    assert model.learn(100, reset_num_timesteps=False, progress_bar=False).num_timesteps >= 180


def test_a_worker_that_hangs_is_killed_and_the_others_lose_nothing(caplog: pytest.LogCaptureFixture) -> None:
    envs = AsyncEnvs([partial(Counter, 99), partial(hostile.Hangs, at=7)], timeout=8.0)
    pids = [process.pid for process in envs.processes]
    with caplog.at_level(logging.WARNING, "sunrise"):
        subject = collector(envs, max_restarts=10)
        step(subject, 10)
    assert "environment 1 did not answer at timestep 6: nothing came for 8 s" in caplog.text
    assert subject.length.tolist() == [10, 3]
    assert [process.pid == pid for process, pid in zip(envs.processes, pids, strict=True)] == [True, False]
    assert not alive(pids[1] or 0)
    envs.close()
    assert not any(process.is_alive() for process in envs.processes)


def started(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    return process


def test_workers_end_with_a_parent_that_is_killed_even_in_the_middle_of_a_step() -> None:
    process = started(hostile.PARENT)
    pids = [int(pid) for pid in (process.stdout or sys.stdin).readline().split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.communicate()
    assert wait_for(lambda: not any(alive(pid) for pid in pids), 20)


@pytest.mark.parametrize("how", ["sleeps", "in C"])
def test_ctrl_c_ends_a_run_whose_environment_hangs_in_this_process(how: str, tmp_path: Path) -> None:
    """Once, after a grace period, and twice where Python itself does not get to act."""
    process = started(hostile.HANGS_HERE, how, str(tmp_path / "run"))
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "Waiting for the environment (step 31 of its episode 0) for more than 1 s" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    if how == "in C":
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, "".join([*said, rest])
    assert "Traceback" not in rest
    if how == "sleeps":
        assert "Stopping without the environment (step 31 of its episode 0), which does not come back" in rest
        assert '"status": "stopped"' in (tmp_path / "run" / "status.json").read_text()
    else:
        assert "Left at once" in rest
    assert (tmp_path / "run" / "checkpoints" / "step-000000020" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"obs": np.zeros(3, np.float32)},
            r"bad observation at timestep 6: its shape is \(3,\), its space says \(2,\)",
        ),
        ({"obs": "none"}, r"bad observation at timestep 6: its shape is \(\), its space says"),
        ({"obs": np.zeros(2, object)}, r"bad observation at timestep 6: its type is object, its space says float32"),
        ({"reward": "much"}, r"bad reward at timestep 6: 'much' is not a number"),
        ({"reward": np.zeros(2)}, r"bad reward at timestep 6: array\(\[0., 0.\]\) is not a number"),
        ({"answer": (np.zeros(2), 0.0, False, {})}, r"bad answer at timestep 6: 4 values instead of a tuple of 5"),
    ],
)
def test_an_answer_that_is_none_is_reported_with_environment_episode_and_step(changes: Any, message: str) -> None:
    subject = collector(SyncEnvs([partial(Counter, 4), partial(hostile.Odd, 5, at=7, **changes)]), max_restarts=10)
    with pytest.raises(EnvironmentFailedError, match=f"environment 1 gave a {message}.*step 2 of its episode 1"):
        step(subject, 10)


@pytest.mark.parametrize(
    ("changes", "name"), [({"obs": np.full(2, np.nan)}, "n observation"), ({"reward": -np.inf}, " reward")]
)
def test_a_value_that_is_not_finite_is_reported_with_environment_episode_and_step(changes: Any, name: str) -> None:
    subject = collector(SyncEnvs([partial(Counter, 4), partial(hostile.Odd, 5, at=7, **changes)]))
    message = f"a{name} is not finite .* at timestep 6. It came from environment 1, step 2 of its episode 1."
    with pytest.raises(NonFiniteError, match=message):
        step(subject, 10)


def test_what_is_odd_but_can_be_lived_with_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    subject = collector(SyncEnvs([partial(hostile.Unsure, 3), partial(hostile.Unsure, 5)]))
    with caplog.at_level(logging.WARNING, "sunrise"):
        step(subject, 12)
    assert [line.split(" (")[0] for line in caplog.messages] == [
        "Environment 1 says None for whether its episode is over, which counts as no",
        "Environment 1 gave an observation outside of its declared space",
    ]


def test_a_snapshot_of_an_endless_episode_copies_one_array() -> None:
    """And the journal is what a plain list would be, whatever its length."""
    from sunrise.run.journal import Journal

    rng, journal, plain = np.random.default_rng(0), Journal(), []
    for leg in range(3):
        journal.begin(plays_on=leg > 0)
        for _ in range(100):
            action = rng.standard_normal(2).astype(np.float32)
            journal.add(action)
            plain.append(action)
            action[:] = 9  # the environment's own array
            plain[-1] = journal.actions[-1].copy()
    assert journal.lengths.tolist() == [100, 100, 100]
    assert journal.actions.flags.c_contiguous
    np.testing.assert_array_equal(journal.actions, np.stack(plain))
    assert [len(leg) for leg in journal.legs] == [100, 100, 100]
    grown = 0
    before = journal.room
    for _ in range(10_000):
        journal.add(plain[0])
        grown += journal.room is not before
        before = journal.room
    assert grown < 8  # amortised: an action costs the same at any length
