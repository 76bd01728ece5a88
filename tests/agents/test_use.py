"""What a newcomer tries first: numbers as people write them, lists, odd action sets, environments without an end."""

import logging
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import Rainbow, SunriseError
from sunrise.cli import plain_numbers
from sunrise.console import as_table, members
from sunrise.envs.catalogue import matches
from sunrise.envs.make import check_continuous, find_spec
from sunrise.run.evaluate import evaluate_episodes
from tests.support.toys import Counter

TINY: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8,), "batch_size": 4, "buffer_size": 1e3, "n_step": 1}


class FromOne(gym.Env[np.ndarray, Any]):
    """Actions are 1, 2 and 3, and nothing else is taken."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(3, start=1)

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(int(action))
        self.seen.add(int(action))
        self.t += 1
        return np.zeros(2, np.float32), float(action), False, self.t == 10, {}


@pytest.fixture(scope="module")
def from_one() -> Rainbow:
    model = Rainbow("MlpPolicy", FromOne(), **TINY, learning_starts=20, eval_freq=0, seed=1)
    return model.learn(3e1, progress_bar=False)


def test_a_finite_set_of_actions_may_begin_anywhere(from_one: Rainbow) -> None:
    assert from_one.env is not None
    inner = from_one.env.unwrapped.envs[0].unwrapped  # type: ignore[attr-defined]
    assert inner.seen == {1, 2, 3}
    assert from_one.trainer is not None
    stored = from_one.trainer.replay.rings()["transitions.0"].arrays["action"][:30]
    assert set(stored.tolist()) == {0, 1, 2}
    action, _ = from_one.predict(np.zeros(2, np.float32), deterministic=True)
    assert from_one.action_space.contains(int(action))
    assert from_one.uncertainty(np.zeros(2, np.float32), action) >= 0


def test_whole_numbers_may_be_written_as_people_write_them(from_one: Rainbow) -> None:
    assert from_one.num_timesteps == 30
    assert from_one.config.training.buffer_size == 1000
    assert type(from_one.config.training.buffer_size) is int
    written = ["--total-timesteps", "1e6", "--learning-rate", "1e-3", "--run-dir", "1e6", "--eval-freq", "2.5e3"]
    plain = ["--total-timesteps", "1000000", "--learning-rate", "1e-3", "--run-dir", "1e6", "--eval-freq", "2500"]
    assert plain_numbers(written) == plain
    for wrong in ("a", 10.5, True):
        with pytest.raises(SunriseError, match=r"total_timesteps is .* but must be a whole number"):
            from_one.learn(wrong)  # type: ignore[arg-type]


def test_a_list_of_numbers_is_an_observation(from_one: Rainbow) -> None:
    assert (
        from_one.predict([0.0, 0.0], deterministic=True)[0]
        == from_one.predict(np.zeros(2, np.float32), deterministic=True)[0]
    )
    assert from_one.predict([[0.0, 0.0], [1.0, 1.0]], deterministic=True)[0].shape == (2,)


def test_an_episode_without_an_end_is_cut_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    envs = [Counter(10**9), Counter(3)]

    def still(obs: Any) -> np.ndarray:
        return np.zeros((len(obs), 1), np.float32)

    with caplog.at_level(logging.WARNING, "sunrise"):
        result = evaluate_episodes(still, envs, 2, seed=1, max_steps=25)
    assert result.lengths == [25, 3]
    assert result.returns[0] == sum(range(1, 26))
    assert "1 of 2 episodes of an evaluation were not over after 25 steps" in caplog.text


def test_a_long_evaluation_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sunrise.run.evaluate.SPEAK_AFTER", 0.0)
    with caplog.at_level(logging.INFO, "sunrise"):
        evaluate_episodes(lambda obs: np.zeros((len(obs), 1), np.float32), [Counter(3)], 1, seed=1)
    assert "Evaluating: 0 of 1 episodes are over, 1 steps so far." in caplog.text


def test_environments_are_found_by_the_beginnings_of_their_words() -> None:
    ids = ["Hopper-v5", "sunrise/Hopper-v0", "dmc/hopper-hop", "ALE/ChopperCommand-v5", "HalfCheetah-v5"]
    assert [env for env in ids if matches("Hopper", env)] == ids[:3]
    assert matches("cheetah", "HalfCheetah-v5")
    assert all(matches("", env) for env in ids)
    with pytest.raises(SunriseError, match=r"Did you mean .*ALE/Pong-v5"):
        find_spec("Pong-v5")


def test_a_name_that_is_like_no_setting_gets_no_wrong_advice() -> None:
    for wrong, advice in (("colour", ""), ("batchsize", " Did you mean batch_size?")):
        with pytest.raises(SunriseError) as refused:
            Rainbow("MlpPolicy", FromOne(), **{wrong: 1})  # type: ignore[arg-type]
        assert str(refused.value) == f"there is no setting {wrong!r}.{advice}"


def test_advice_on_actions_without_bounds_is_advice_that_works() -> None:
    endless = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    with pytest.raises(SunriseError, match="no bounds") as refused:
        check_continuous(endless, "SAC")
    assert "RescaleAction" not in str(refused.value)  # it refuses them itself


def test_a_row_of_metrics_is_shown_as_a_table() -> None:
    assert as_table({"timesteps": 1000, "rollout/return_mean": -123.456}).splitlines() == [
        "--------------------------",
        "| run/           |       |",
        "|    timesteps   | 1,000 |",
        "| rollout/       |       |",
        "|    return_mean | -123  |",
        "--------------------------",
    ]
    assert (members(1), members(5)) == ("1 member", "5 members")
