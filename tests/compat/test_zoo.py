"""rl-zoo3's own scripts on our models; `make test-compat` runs it.

To start one takes longer than all it does here, so but for one they are run in this process.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("rl_zoo3", reason="rl-zoo3 is not installed: make test-compat")

from sunrise import SAC, TD3, SunriseError, zoo

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # SB3's Monitor leaves files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
SMALL = ("policy_kwargs:dict(net_arch=[8])", "ensemble_size:2", "batch_size:4", "learning_starts:20", "train_freq:4")
QUIET = ("--eval-freq", "-1")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs one of the zoo's scripts in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("MPLBACKEND", "agg")

    def run(name: str, *arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["zoo", *arguments])
        zoo.run(name)

    return run


def test_the_zoo_trains_evaluates_plays_and_films_our_models_and_goes_on(
    script: Any, tmp_path: Path, capfd: Any
) -> None:
    task = ("--algo", "dqn", "--env", "CartPole-v1", "-f", "logs")
    few = ("--n-eval-envs", "2", "--eval-episodes", "1", "-params", *SMALL, "gradient_steps:1")
    script("train", *task, "-n", "120", "--eval-freq", "60", "--save-freq", "60", "--save-replay-buffer", *few)
    folder = tmp_path / "logs" / "dqn" / "CartPole-v1_1"
    assert {"CartPole-v1.zip", "best_model.zip", "evaluations.npz", "replay_buffer.pkl", "rl_model_60_steps.zip"} <= {
        entry.name for entry in folder.iterdir()
    }
    assert np.load(folder / "evaluations.npz")["timesteps"].tolist() == [60, 120]
    saved = (folder / "CartPole-v1" / "config.yml").read_text()
    assert "exploration_fraction" in saved  # of the zoo's own file
    capfd.readouterr()
    script("enjoy", *task, "-n", "60", "--no-render", "--exp-id", "1", "--load-checkpoint", "60")
    said = capfd.readouterr()
    assert "Mean reward" in said.out
    assert "schedule" not in said.err  # the zoo's constant learning rate is a number
    script("record_video", *task, "-n", "20", "--exp-id", "1")
    assert list((folder / "videos").glob("*.mp4"))
    script("plot_train", "-a", "dqn", "-e", "CartPole-v1", "-f", "logs")
    script("train", *task, "-n", "40", "-i", str(folder / "CartPole-v1.zip"), *QUIET, *few)
    said = capfd.readouterr()
    assert "Loading replay buffer" in said.out
    assert "replay_size         | 160" in said.out


def test_settings_that_are_refused_end_the_process_with_our_sentence(tmp_path: Path) -> None:
    task = ("--algo", "sac", "--env", "MountainCarContinuous-v0", "-n", "10", "-f", "logs")
    command = [sys.executable, "-m", "sunrise.zoo", "train", *task]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("error: use_sde")
    assert "ucb_lambda" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("algo", "parameters", "ours"),
    [
        ("sac", ("normalize:True",), "normalise_observations"),
        ("sac", ("policy_kwargs:dict(log_std_init=-3)",), "log_std_init.*net_arch"),
        ("td3", ("noise_type:'ornstein-uhlenbeck'",), "NormalActionNoise"),
        ("discor", (), "-conf FILE"),
    ],
)
def test_what_the_zoo_offers_and_we_do_not_is_refused_by_naming_ours(
    script: Any, algo: str, parameters: tuple[str, ...], ours: str
) -> None:
    given = ("-params", *parameters) if parameters else ()
    with pytest.raises(SunriseError, match=ours):
        script("train", "--algo", algo, "--env", "Pendulum-v1", "-n", "10", "-f", "logs", *QUIET, *given)


def test_algorithms_that_only_we_have_are_run_from_a_file_of_settings(script: Any, tmp_path: Path) -> None:
    settings = {"n_timesteps": 15, "policy": "MlpPolicy", "learning_starts": 20, "ensemble_size": 2}
    (tmp_path / "own.yml").write_text(yaml.safe_dump({"Pendulum-v1": settings | {"policy_kwargs": {"net_arch": [8]}}}))
    script("train", "--algo", "discor", "--env", "Pendulum-v1", "-conf", "own.yml", "-f", "logs", *QUIET)
    assert (tmp_path / "logs" / "discor" / "Pendulum-v1_1" / "Pendulum-v1.zip").exists()


class Tiny:
    """What the zoo samples, with small networks: to compile those it has takes longer than the search."""

    def __init__(self, noise: list[Any]) -> None:
        self.noise = noise

    def __call__(self, trial: Any, *_: Any) -> dict[str, Any]:
        rate = trial.suggest_float("learning_rate", 1e-5, 1e-3)
        return {"learning_rate": rate, "policy_kwargs": {"net_arch": [8]}, "action_noise": self.noise[trial.number]}


@pytest.fixture
def search(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a search of as many trials as there are kinds of noise."""
    from rl_zoo3 import hyperparams_opt

    def run(noise: list[Any]) -> None:
        monkeypatch.setitem(hyperparams_opt.HYPERPARAMS_SAMPLER, "td3", Tiny(noise))
        asked = ("-optimize", "--n-trials", str(len(noise)), "--sampler", "random", "--pruner", "none")
        few = ("--n-evaluations", "1", "--eval-episodes", "1", "-n", "30", "--no-optim-plots")
        script("train", "--algo", "td3", "--env", "Pendulum-v1", "-f", "logs", *asked, *few, "-params", *SMALL)

    return run


def test_a_search_passes_over_what_we_refuse(search: Any, tmp_path: Path, capfd: Any) -> None:
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    refused = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.ones(1))
    search([refused, NormalActionNoise(np.zeros(1), np.ones(1)), None])
    assert "passed over: action_noise must be NormalActionNoise" in capfd.readouterr().out
    (report,) = (tmp_path / "logs" / "td3").glob("report_*.csv")
    states = [row.rpartition(",")[2] for row in report.read_text().splitlines()[1:]]
    assert states == ["PRUNED", "COMPLETE", "COMPLETE"]
    with pytest.raises(SunriseError, match="NormalActionNoise"):
        search([refused])


def test_what_a_script_starts_has_our_algorithms_too() -> None:
    command = ["python", "-m", "rl_zoo3.record_video", "--algo", "sac"]
    assert zoo.ours(command) == [sys.executable, "-m", "sunrise.zoo", "record_video", "--algo", "sac"]
    assert zoo.ours(["ffmpeg", "-i", "a.mp4"]) == ["ffmpeg", "-i", "a.mp4"]


def test_only_the_scripts_of_the_zoo_have_our_classes_under_its_names() -> None:
    import rl_zoo3

    zoo.register()
    assert issubclass(rl_zoo3.ALGOS["sac"], SAC)
    assert issubclass(rl_zoo3.ALGOS["td3"], TD3)
    assert os.fspath(rl_zoo3.ALGOS["sac"].suffix) == ".zip"
    assert SAC.suffix == ".safetensors"
    assert rl_zoo3.ALGOS["ppo"].__module__.startswith("stable_baselines3")
