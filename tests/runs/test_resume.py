"""A run that is stopped and resumed is the run that was never stopped, bit for bit."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sunrise import SAC, Rainbow, SunriseError
from sunrise.agents import Agent
from sunrise.cli import main
from sunrise.run.collect import Collector
from sunrise.run.loop import Trainer
from sunrise.store import machine
from tests.support import mixed_task, runs, tiny, toys
from tests.support.image_task import Lights

toys.register()
mixed_task.register()
if "toy/SmallLights-v0" not in gym.registry:
    gym.register("toy/SmallLights-v0", Lights)  # type: ignore[arg-type]
SMALL: dict[str, Any] = {
    "ensemble_size": 2,
    "net_arch": (8, 8),
    "batch_size": 8,
    "buffer_size": 90,
    "learning_starts": 20,
    "eval_freq": 50,
    "eval_episodes": 1,
    "log_freq": 25,
    "save_freq": 40,
    "seed": 3,
}
DISCRETE = SMALL | {"net_arch": (8,), "n_atoms": 5, "n_step": 3, "target_update_interval": 20, "bootstrap_prob": 0.5}
KINDS: dict[str, tuple[type[Agent], str, str, dict[str, Any]]] = {
    "uniform replay that wraps": (SAC, "MlpPolicy", "Pendulum-v1", SMALL),
    "three environments, noise, member exploration, statistics of what was seen": (
        SAC,
        "MlpPolicy",
        "toy/Pair-v0",
        SMALL
        | {
            "normalise_observations": True,
            "normalise_rewards": True,
            "num_envs": 3,
            "reward_noise": 0.5,
            "exploration": "member",
            "gradient_steps": -1,
            "bootstrap_prob": 0.5,
        },
    ),
    "rounds of updates, a weight that remembers": (
        SAC,
        "MlpPolicy",
        "Pendulum-v1",
        SMALL | {"train_freq": 7, "gradient_steps": 3, "weighting": "relative"},
    ),
    "priorities and n-step windows, a weight that follows the errors": (
        Rainbow,
        "MlpPolicy",
        "CartPole-v1",
        DISCRETE | {"weighting": "signal"},
    ),
    "a picture and a vector, both normalised, two environments": (
        Rainbow,
        "MultiInputPolicy",
        "toy/MixedChoice-v0",
        DISCRETE | {"num_envs": 2, "normalise_observations": True, "normalise_rewards": True},
    ),
    "frames, two environments": (Rainbow, "CnnPolicy", "toy/SmallLights-v0", DISCRETE | {"num_envs": 2}),
}


def make(kind: str, folder: Path, **changes: Any) -> Agent:
    cls, policy, env, settings = KINDS[kind]
    return cls(policy, env, **{**settings, "run_dir": str(folder), **changes})


def stop_at(timesteps: int) -> Callable[[dict[str, Any], Any], None]:
    """A callback that pulls the plug: no clean-up of ours runs."""

    def callback(now: dict[str, Any], _: Any) -> None:
        if now["self"].num_timesteps >= timesteps:
            now["self"].session.settle()
            raise KeyError("the power went")

    return callback


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_stopped_at_any_step_and_resumed_is_the_run_never_stopped(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(kind, tmp_path / "whole").learn(180, progress_bar=False, log_interval=None)
    for step in (57, 122):
        broken = tmp_path / f"broken-{step}"
        with pytest.raises(KeyError):
            make(kind, broken).learn(180, stop_at(step), progress_bar=False, log_interval=None)
        again = KINDS[kind][0].resume(broken)
        assert again.num_timesteps == 40 * (step // 40) or kind.startswith("three")
        again.learn(180 - again.num_timesteps, reset_num_timesteps=False, progress_bar=False, log_interval=None)
        runs.assert_same(tmp_path / "whole", broken)


def test_a_dead_weight_is_said_once_and_not_again_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sunrise.run.meter.FLAT_UPDATES", 60)
    kind = "uniform replay that wraps"
    make(kind, tmp_path / "alive", weight_temperature=1.0).learn(180, progress_bar=False, log_interval=None)
    assert not [r for r in caplog.records if "is dead" in r.getMessage()]
    dead = tmp_path / "dead"
    with caplog.at_level(logging.WARNING), pytest.raises(KeyError):
        make(kind, dead, weight_temperature=1e6).learn(180, stop_at(90), progress_bar=False, log_interval=None)
    said = [r.getMessage() for r in caplog.records if "is dead" in r.getMessage()]
    assert said == []  # 60 updates are at 80 timesteps, and the row after them is at 100
    again = SAC.resume(dead)
    again.learn(180 - again.num_timesteps, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    said = [r.getMessage() for r in caplog.records if "is dead" in r.getMessage()]
    assert len(said) == 1
    assert 'weighting="relative"' in said[0]


def test_a_run_of_more_timesteps_is_the_one_that_was_extended(tmp_path: Path) -> None:
    kind = "uniform replay that wraps"
    make(kind, tmp_path / "whole").learn(130, progress_bar=False, log_interval=None)
    make(kind, tmp_path / "part").learn(70, progress_bar=False, log_interval=None)
    assert json.loads((tmp_path / "part" / "status.json").read_text())["status"] == "finished"
    more = SAC.resume(tmp_path / "part")
    more.learn(60, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    runs.assert_same(tmp_path / "whole", tmp_path / "part")


def test_a_run_killed_between_its_last_checkpoint_and_its_end_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Three environments step over the end: 100 timesteps asked for are 102."""
    kind = next(kind for kind in KINDS if kind.startswith("three"))
    make(kind, tmp_path / "whole").learn(100, progress_bar=False, log_interval=None)

    def power_cut(self: Trainer) -> None:
        raise KeyError("the power went")

    with monkeypatch.context() as during:
        during.setattr(Trainer, "finish", power_cut)
        with pytest.raises(KeyError):
            make(kind, tmp_path / "cut").learn(100, progress_bar=False, log_interval=None)
    main(["resume", str(tmp_path / "cut")])
    assert json.loads((tmp_path / "cut" / "status.json").read_text())["status"] == "finished"
    assert "Nothing was learned" not in caplog.text
    runs.assert_same(tmp_path / "whole", tmp_path / "cut")


def test_saving_logging_and_evaluating_have_no_influence_on_the_result(tmp_path: Path) -> None:
    kind = "priorities and n-step windows, a weight that follows the errors"
    often = make(kind, tmp_path / "often", save_freq=3, log_freq=5, eval_freq=20, keep=1)
    never = make(kind, tmp_path / "never", save_freq=0, log_freq=1000, eval_freq=0)
    for model in (often, never):
        model.learn(120, progress_bar=False, log_interval=None)
    assert tiny.same_bits(often.ensemble, never.ensemble)
    assert len(list((tmp_path / "often" / "checkpoints").glob("step-*"))) == 1


def test_a_run_without_a_checkpoint_begins_again(tmp_path: Path) -> None:
    kind = "uniform replay that wraps"
    make(kind, tmp_path / "whole").learn(70, progress_bar=False, log_interval=None)
    with pytest.raises(KeyError):
        make(kind, tmp_path / "early").learn(70, stop_at(39), progress_bar=False, log_interval=None)
    assert (tmp_path / "early" / "metrics.jsonl").exists()
    again = SAC.resume(tmp_path / "early")
    assert again.num_timesteps == 0
    again.learn(70, progress_bar=False, log_interval=None)
    runs.assert_same(tmp_path / "whole", tmp_path / "early")


def test_a_schedule_is_asked_for_again(tmp_path: Path) -> None:
    kind = "uniform replay that wraps"

    def rate(left: float) -> float:
        return 1e-3 * left

    make(kind, tmp_path / "whole", learning_rate=rate).learn(100, progress_bar=False, log_interval=None)
    with pytest.raises(KeyError):
        make(kind, tmp_path / "run", learning_rate=rate).learn(100, stop_at(90), progress_bar=False, log_interval=None)
    with pytest.raises(SunriseError, match="schedule of learning rates"):
        SAC.resume(tmp_path / "run")
    again = SAC.resume(tmp_path / "run", learning_rate=rate)
    again.learn(20, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    runs.assert_same(tmp_path / "whole", tmp_path / "run")


def test_tensorboard_forgets_what_is_done_again(tmp_path: Path) -> None:
    kind = "uniform replay that wraps"
    with pytest.raises(KeyError):
        make(kind, tmp_path).learn(180, stop_at(118), progress_bar=False, log_interval=None)
    SAC.resume(tmp_path).learn(100, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [e.step for e in events.Scalars("train/alpha")] == [25, 50, 75, 100, 125, 150, 175, 180]


def test_other_versions_and_machines_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("uniform replay that wraps", tmp_path).learn(50, progress_bar=False)
    now = machine.versions(), machine.machine()
    monkeypatch.setattr("sunrise.store.session.versions", lambda: {**now[0], "jax": "99.1"})
    monkeypatch.setattr("sunrise.store.session.machine", lambda *_: {**now[1], "cores": 64, "system": "another"})
    with caplog.at_level(logging.WARNING, "sunrise"):
        SAC.resume(tmp_path)
    assert f"began with jax {now[0]['jax']} and goes on with 99.1" in caplog.text
    assert "goes on with 64" in caplog.text
    assert "system" not in caplog.text


def test_a_run_that_dropped_its_replay_buffer_can_be_looked_at_and_not_extended(tmp_path: Path) -> None:
    make("uniform replay that wraps", tmp_path, keep_replay=False).learn(90, progress_bar=False)
    assert not list((tmp_path / "checkpoints" / "replay").glob("*"))
    assert len(list((tmp_path / "checkpoints").glob("step-*"))) == 1
    with pytest.raises(SunriseError, match="without keeping its replay buffer"):
        SAC.resume(tmp_path)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    model = make("uniform replay that wraps", tmp_path)
    model.learn(50, progress_bar=False)
    assert model.folder is not None
    model.folder.lock()
    with pytest.raises(SunriseError, match="is in use by process"):
        SAC.resume(tmp_path)
    model.folder.close()
    assert SAC.resume(tmp_path).num_timesteps == 50


def test_a_minibatch_that_is_not_finite_is_kept_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import load_file

    from sunrise.cli import main

    model = make("uniform replay that wraps", tmp_path, learning_rate=1e30)
    with pytest.raises(SunriseError, match="of member 0 in update"):
        model.learn(60, progress_bar=False)
    batch = load_file(tmp_path / "fault" / "batch.safetensors")
    assert batch["batch.reward"].shape == (8,)
    assert np.isfinite(batch["batch.obs"]).all()
    main(["inspect", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "status            failed" in shown
    assert "not finite: " in shown
    assert "of member 1" in shown


def test_an_interrupt_in_the_middle_of_a_step_leaves_the_last_checkpoint_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second Ctrl-C does, which does not wait for the end of the step."""
    kind = "uniform replay that wraps"
    make(kind, tmp_path / "whole").learn(70, progress_bar=False, log_interval=None)
    model = make(kind, tmp_path / "torn")
    step = Collector.step

    def torn(self: Collector, action: np.ndarray, stored: np.ndarray, timesteps: int) -> Any:
        if timesteps == 55:
            raise KeyboardInterrupt
        return step(self, action, stored, timesteps)

    monkeypatch.setattr(Collector, "step", torn)
    with pytest.raises(KeyboardInterrupt):
        model.learn(70, progress_bar=False, log_interval=None)
    monkeypatch.undo()
    assert runs.newest(tmp_path / "torn").name == "step-000000040"
    again = SAC.resume(tmp_path / "torn")
    again.learn(30, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    runs.assert_same(tmp_path / "whole", tmp_path / "torn")
