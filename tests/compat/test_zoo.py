"""rl-zoo3's own commands on our models; `make test-compat` runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rl_zoo3", reason="rl-zoo3 is not installed: make test-compat")

SMALL = ("policy_kwargs:dict(net_arch=[8])", "ensemble_size:2", "batch_size:4", "learning_starts:20", "train_freq:4")


def zoo(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "sunrise.zoo", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_zoo_trains_evaluates_plays_and_goes_on_with_our_models(tmp_path: Path) -> None:
    task = ("--algo", "dqn", "--env", "CartPole-v1", "-f", "logs")
    few = ("--n-eval-envs", "1", "--eval-episodes", "1", "-params", *SMALL, "gradient_steps:1")
    said = zoo(tmp_path, "train", *task, "-n", "120", "--eval-freq", "60", "--save-replay-buffer", "--seed", "1", *few)
    assert "Saving to" in said
    folder = tmp_path / "logs" / "dqn" / "CartPole-v1_1"
    assert {"CartPole-v1.zip", "best_model.zip", "evaluations.npz", "replay_buffer.pkl"} <= {
        entry.name for entry in folder.iterdir()
    }
    assert "exploration_fraction" in (folder / "CartPole-v1" / "config.yml").read_text()  # the zoo's own settings
    assert "Mean reward" in zoo(tmp_path, "enjoy", *task, "-n", "40", "--no-render", "--exp-id", "1")
    again = zoo(tmp_path, "train", *task, "-n", "40", "-i", str(folder / "CartPole-v1.zip"), "--eval-freq", "-1", *few)
    assert "Loading replay buffer" in again


def test_the_zoo_searches_with_our_models(tmp_path: Path) -> None:
    search = ("-optimize", "--n-trials", "1", "--n-startup-trials", "1", "--n-evaluations", "1", "--eval-episodes", "1")
    few = ("-params", "ensemble_size:1", "policy:'MlpPolicy'")
    zoo(tmp_path, "train", "--algo", "dqn", "--env", "CartPole-v1", "-n", "60", "-f", "logs", *search, *few)
    assert list((tmp_path / "logs" / "dqn").glob("report_*.csv"))
