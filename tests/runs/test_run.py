"""A run from the command line, as a new user would try it: real processes, real files."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sunrise.config.algorithms import ALGORITHMS
from sunrise.store.run_folder import RunFolder

TINY = shlex.split("--ensemble-size 2 --net-arch 8 8 --batch-size 8 --buffer-size 1000 --learning-starts 20")


def sunrise(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sunrise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    done = sunrise(
        *shlex.split("train sac --env-id Pendulum-v1 --total-timesteps 400 --seed 3 --eval-freq 200 --eval-episodes 2"),
        *["--log-freq", "100", "--save-freq", "200", "--run-dir"],
        str(folder),
        *TINY,
    )
    assert done.returncode == 0, done.stderr
    assert "steps/s" in done.stderr
    assert "a replay buffer of 1,000 transitions: 0.00 GB when full" in done.stderr
    assert done.stdout == ""
    return folder


def test_the_folder_holds_what_the_contract_says(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    assert config["algo"] == "sac"
    assert config["settings"]["env_id"] == "Pendulum-v1"
    assert config["settings"]["seed"] == 3
    assert config["settings"]["net_arch"] == [8, 8]
    assert {"jax", "gymnasium", "sunrise-rl"} <= config["versions"].keys()
    assert {"cpu", "cores", "python"} <= config["machine"].keys()
    assert config["command"][1:3] == ["train", "sac"]
    status = json.loads((run / "status.json").read_text())
    assert (status["status"], status["timesteps"]) == ("finished", 400)
    assert {p.name for p in (run / "checkpoints").iterdir()} == {"step-000000200", "step-000000400", "replay"}


def test_every_row_of_metrics_says_what_is_always_logged(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["timesteps"] for row in rows] == [100, 200, 300, 400]
    assert [row["updates"] for row in rows] == [80, 180, 280, 380]
    always = {f"train/{kind}_{stat}" for kind in ("disagreement", "weight") for stat in ("mean", "p05", "p95")}
    always |= {"train/critic_loss", "train/actor_loss", "train/alpha", "train/q_mean"}
    always |= {"chosen/0", "chosen/1", "env_steps", "episodes", "time/updates_per_s", "time/steps_per_s"}
    for row in rows:
        assert always <= row.keys()
        assert row["chosen/0"] + row["chosen/1"] == pytest.approx(1)
        assert 0.5 <= row["train/weight_p05"] <= row["train/weight_mean"] <= row["train/weight_p95"] <= 1
        assert row["time/update_compilations"] == 1
    assert "rollout/return_mean" in rows[1]  # Pendulum's episodes have 200 steps


def test_evaluations_are_rows_of_a_table(run: Path) -> None:
    with (run / "eval.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["timesteps", "mean_return", "std_return", "min_return", "max_return", "episodes"]
    assert [row["timesteps"] for row in rows] == ["200", "400"]
    for row in rows:
        assert float(row["min_return"]) <= float(row["mean_return"]) <= float(row["max_return"]) < 0
        assert row["episodes"] == "2"


def test_tensorboard_reads_the_events(run: Path) -> None:
    events = EventAccumulator(str(run))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"train/critic_loss", "eval/mean_return", "train/weight_mean"} <= set(tags)
    assert [e.step for e in events.Scalars("eval/mean_return")] == [200, 400]


def test_evaluate_prints_one_line_of_json_that_agrees_with_the_run(run: Path) -> None:
    done = sunrise("evaluate", str(run), "--episodes", "2")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert result["episodes"] == 2
    with (run / "eval.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert result["mean_return"] == pytest.approx(float(last["mean_return"]))
    assert result["std_return"] == pytest.approx(float(last["std_return"]))


def test_the_same_command_gives_the_same_metrics(run: Path, tmp_path: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    again = tmp_path / "again"
    arguments = [str(again) if a == str(run) else a for a in config["command"][1:]]
    assert sunrise(*arguments).returncode == 0

    def rows(folder: Path) -> list[dict[str, Any]]:
        kept = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in row.items() if not k.startswith("time/")} for row in kept]

    assert rows(run) == rows(again)
    assert (run / "eval.csv").read_bytes() == (again / "eval.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("trian sac", "there is no command 'trian'. Did you mean train?"),
        ("train sak", "there is no algorithm 'sak'. Did you mean sac?"),
        ("train sac", "--env-id is missing"),
        ("train sac --env-id Hoper-v5", "no environment 'Hoper-v5'. Did you mean Hopper-v5"),
        ("train sac --env-id CartPole-v1", "SAC needs continuous actions"),
        ("train sac --env-id Pendulum-v1 --ensemble-size -1", "ensemble_size is -1, but must be at least 1"),
        ("train sac --env-id Pendulum-v1 --ensemble-sise 3", "--ensemble-size"),
        ("evaluate nowhere", "nowhere is not a run"),
    ],
)
def test_bad_input_is_one_clear_sentence_and_no_traceback(arguments: str, message: str, tmp_path: Path) -> None:
    done = sunrise(*arguments.split(), cwd=tmp_path)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_run_whose_process_is_gone_is_not_running(tmp_path: Path) -> None:
    """A kill cannot write to status.json; the lock knows better."""
    folder, reader = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run")
    folder.create("sac", "MlpPolicy", {"total_timesteps": 10})
    folder.status("running", 5, 5)
    assert reader.read_status()["status"] == "running"
    folder.close()
    assert reader.read_status() == {**reader.read_status(), "status": "stopped", "killed": True}
    folder.status("finished", 10, 10)
    assert "killed" not in reader.read_status()


def test_a_folder_that_holds_a_run_is_not_overwritten(run: Path) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    done = sunrise(*["train", "sac", "--env-id", "Pendulum-v1", "--run-dir"], str(run), *TINY)
    assert done.returncode == 2
    assert "already holds a run" in done.stderr
    assert (run / "metrics.jsonl").read_bytes() == before


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    command = [sys.executable, "-m", "sunrise", *shlex.split("train sac --env-id Pendulum-v1")]
    command += ["--total-timesteps", "10000000"]
    command += ["--log-freq", "50", "--eval-freq", "0", "--run-dir", str(folder), *TINY]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 120
    while not (folder / "metrics.jsonl").exists() and time.time() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert f"sunrise resume {folder}\n" in errors  # whole, to be copied
    status = json.loads((folder / "status.json").read_text())
    assert status["status"] == "stopped"
    assert (folder / "checkpoints" / f"step-{status['timesteps']:09d}" / "manifest.json").exists()


def test_an_environment_that_raises_is_shown_with_the_step_and_the_log_is_kept(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.support.toys import Counter; import gymnasium as gym; from sunrise.cli import main;"
        "gym.register('toy/Falls-v0', lambda: Counter(10, fail_at=75)); main(sys.argv[1:])"
    )
    arguments = ["train", "sac", "--env-id", "toy/Falls-v0", "--log-freq", "25", "--eval-freq", "0"]
    arguments += ["--max-env-restarts", "0"]
    command = [sys.executable, "-c", code, *arguments, "--run-dir", str(tmp_path / "run"), *TINY]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 2
    assert "the environment raised RuntimeError at timestep 74: the simulator fell over" in " ".join(
        done.stderr.split()
    )
    assert "Traceback" not in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["timesteps"] for row in rows] == [25, 50]
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "failed"


def test_help_shows_every_setting_and_envs_lists_what_there_is() -> None:
    shown = sunrise("train", "sac", "--help")
    assert shown.returncode == 0
    for flag in ("--env-id", "--ensemble-size", "--weight-temperature", "--preset", "--eval-freq", "--net-arch"):
        assert flag in shown.stdout
    for preset in ALGORITHMS["sac"].presets:
        assert preset in shown.stdout
    listed = sunrise("envs", "pendulum", env={**os.environ, "COLUMNS": "200"})
    assert listed.returncode == 0
    assert "Pendulum-v1" in listed.stdout
    assert "Box(3,)" in listed.stdout


def test_the_limit_of_failures_can_be_raised_when_a_run_is_resumed(tmp_path: Path) -> None:
    code = (
        "import sys; from functools import partial; from tests.support.toys import Counter; import gymnasium as gym;"
        "gym.register('toy/Falls-v0', partial(Counter, 10, fail_at=30));"
        "from sunrise.cli import main; main(sys.argv[1:])"
    )
    folder = str(tmp_path / "run")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        where = Path(__file__).parents[2]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=where)

    train = shlex.split("train sac --env-id toy/Falls-v0 --eval-freq 0 --save-freq 20 --total-timesteps 70")
    failed = run(*train, "--max-env-restarts", "0", "--run-dir", folder, *TINY)
    assert failed.returncode == 2
    assert "at timestep 29: the simulator fell over (step 10 of its episode 2)." in " ".join(failed.stderr.split())
    assert run("resume", folder).returncode == 2
    done = run("resume", folder, "--max-env-restarts", "3")
    assert done.returncode == 0, done.stderr
    assert "(restart 1 of 3 in 100,000 timesteps)" in " ".join(done.stderr.split())
    assert json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["max_env_restarts"] == 3
