"""Callbacks that come with other packages, on our models: W&B's, sb3-contrib's, rl-zoo3's.

`make test-compat` runs it; without Stable-Baselines3 it is skipped.
"""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: make test-compat")
pytest.importorskip("rl_zoo3", reason="rl-zoo3 is not installed: make test-compat")

from rl_zoo3 import callbacks
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor

from sunrise import DQN, SAC
from tests.compat.models import LENGTH, Walk, dqn, sac
from tests.support import tiny

RUN: dict[str, Any] = {"progress_bar": False, "log_interval": 1}
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # SB3's Monitor leaves files open
]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
def test_the_callback_of_weights_and_biases_keeps_models_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    from wandb.integration.sb3 import WandbCallback

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="tests", mode="offline", dir=tmp_path, config={"mine": 7}) as run:
        callback = WandbCallback(model_save_path=str(tmp_path / "models"), model_save_freq=10)
        model = sac().learn(2 * LENGTH + 1, callback=callback, **RUN)
        with pytest.raises((TypeError, ValueError), match="pytorch model"):  # there is no such module here
            sac().learn(1, callback=WandbCallback(gradient_save_freq=1), **RUN)
        kept = dict(run.config)
    assert tiny.same_bits(SAC.load(tmp_path / "models" / "model.zip").ensemble, model.ensemble)
    assert (kept["mine"], kept["algo"], kept["policy_name"]) == (7, "SAC", "MlpPolicy")


def test_the_evaluation_of_sb3_contrib_runs_without_masks(tmp_path: Path) -> None:
    evaluation = MaskableEvalCallback(
        Monitor(Walk(finite=True)),
        use_masking=False,
        eval_freq=7,
        n_eval_episodes=2,
        best_model_save_path=str(tmp_path),
        verbose=0,
    )
    model = dqn().learn(7, callback=evaluation, **RUN)
    assert evaluation.best_mean_reward == 15
    assert tiny.same_bits(DQN.load(tmp_path / "best_model.zip").ensemble, model.ensemble)
    masked = MaskableEvalCallback(Monitor(Walk(finite=True)), eval_freq=1, verbose=0)
    with pytest.raises(ValueError, match="does not support action masking"):
        dqn().learn(7, callback=masked, **RUN)


class Pruned:
    """A trial of a search that is to end at its second report."""

    def __init__(self) -> None:
        self.reports: list[tuple[float, int]] = []

    def report(self, value: float, step: int) -> None:
        self.reports.append((value, step))

    def should_prune(self) -> bool:
        return len(self.reports) == 2


def test_a_trial_of_the_zoo_is_evaluated_and_pruned() -> None:
    trial = Pruned()
    evaluation = callbacks.TrialEvalCallback(make_vec_env(Walk), trial, n_eval_episodes=2, eval_freq=6)
    model = sac().learn(100, callback=evaluation, **RUN)
    assert trial.reports == [(15, 1), (15, 2)]
    assert (evaluation.is_pruned, model.num_timesteps) == (True, 12)


def test_the_zoos_raw_statistics_are_in_tensorboard_and_there_is_nothing_to_normalise(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    both = [callbacks.RawStatisticsCallback(), callbacks.SaveVecNormalizeCallback(1, str(tmp_path / "statistics"))]
    sac(tensorboard_log=str(tmp_path / "events")).learn(3 * LENGTH, callback=both, tb_log_name="one", **RUN)
    events = EventAccumulator(str(tmp_path / "events" / "one_1")).Reload()
    returns = events.Scalars("raw/rollouts/episodic_return")
    assert [(event.step, event.value) for event in returns] == [(LENGTH * i, 15) for i in (1, 2, 3)]
    assert list((tmp_path / "statistics").iterdir()) == []


def test_training_in_a_thread_beside_is_refused_by_the_zoo_itself() -> None:
    with pytest.raises(AssertionError, match="not supported for parallel training"):
        sac().learn(3, callback=callbacks.ParallelTrainCallback(), **RUN)
