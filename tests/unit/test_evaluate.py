"""Evaluation is a function of policy, seed and episode, and counts what it says it counts."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sunrise import SAC
from sunrise.randomness import episode_seed
from sunrise.run.evaluate import evaluate_episodes, evaluate_steps
from tests.support.toys import Counter


def still(obs: np.ndarray) -> np.ndarray:
    return np.zeros((len(obs), 1), np.float32)


def seed_of(obs: np.ndarray) -> np.ndarray:
    return obs[:, 1:]


def test_returns_and_lengths_are_those_of_whole_episodes() -> None:
    result = evaluate_episodes(still, [Counter(4) for _ in range(3)], 7, seed=1)
    assert result.returns == [10.0] * 7
    assert result.lengths == [4] * 7
    assert (result.mean, result.std) == (10.0, 0.0)


def test_the_result_does_not_depend_on_how_many_run_side_by_side() -> None:
    def pendulums(count: int) -> list[float]:
        envs = [gym.make("Pendulum-v1") for _ in range(count)]
        return evaluate_episodes(still, envs, 5, seed=3).returns

    assert pendulums(1) == pendulums(2) == pendulums(5)
    envs = [gym.make("Pendulum-v1")]
    assert evaluate_episodes(still, envs, 5, seed=3).returns == evaluate_episodes(still, envs, 5, seed=3).returns


def test_episode_j_begins_with_the_seed_of_j() -> None:
    envs = [Counter(2), Counter(2)]
    evaluate_episodes(still, envs, 4, seed=9)
    expected = [episode_seed(9, "evaluation", 0, j) for j in range(4)]
    assert envs[0].seeds == [expected[0], expected[2]]
    assert envs[1].seeds == [expected[1], expected[3]]


def test_the_authors_protocol_keeps_the_complete_episodes_of_a_number_of_steps() -> None:
    env = Counter(4)
    result = evaluate_steps(still, env, 10, seed=1)
    assert result.lengths == [4, 4]  # two steps of a third are thrown away
    assert env.total_steps == 10
    assert evaluate_steps(still, Counter(20), 10, seed=1).returns == []


def test_evaluations_by_steps_begin_in_states_of_their_own() -> None:
    first, second, again = Counter(4), Counter(4), Counter(4)
    for env, number in ((first, 1000), (second, 2000), (again, 1000)):
        evaluate_steps(still, env, 8, seed=1, number=number)
    assert first.seeds == again.seeds
    assert not set(first.seeds) & set(second.seeds)


def test_an_evaluation_whose_environment_fails_is_done_again_and_is_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[int] = []

    def make(falls: bool) -> Counter:
        made.append(len(made))
        return Counter(10, fail_at=5 if falls and len(made) == 3 else 0)  # the first to be evaluated in

    tiny: dict[str, Any] = {"ensemble_size": 1, "net_arch": (4, 4), "batch_size": 4, "buffer_size": 100}
    tiny |= {"learning_starts": 20, "eval_freq": 30, "eval_episodes": 2}
    results = []
    for falls in (True, False):
        made.clear()
        env_id = f"toy/Once{falls}-v0"
        gym.register(env_id, partial(make, falls))
        with caplog.at_level(logging.WARNING, "sunrise"):
            SAC("MlpPolicy", env_id, **tiny, run_dir=str(tmp_path / env_id)).learn(60, progress_bar=False)
        results.append((tmp_path / env_id / "eval.csv").read_text())
    assert results[0] == results[1]
    assert caplog.text.count("in an evaluation: the simulator fell over. The evaluation is done again (restart 1") == 1
