"""An environment comes back to where it was by its seed and its actions; one that cannot is found out."""

import itertools
import logging
import os
import signal
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sunrise import SAC, SunriseError
from sunrise.config.tasks import GAMES_100K
from sunrise.envs.make import AnyVectorEnv, as_vector, to_env, uniform_actions
from sunrise.errors import EnvironmentFailedError
from sunrise.replay.uniform import UniformReplay
from sunrise.run.collect import Collector
from tests.support import toys

toys.register()


def collector(env: AnyVectorEnv, **options: Any) -> Collector:
    return Collector(env, 5, 2, np.random.default_rng(0), 0.99, "bootstrap", **options)


def wander(subject: Collector, steps: int, rng: np.random.Generator) -> list[Any]:
    """Random actions; what came of them."""
    space, seen = subject.env.single_action_space, []
    for t in range(steps):
        kept = uniform_actions(rng, space, subject.count)
        collected = subject.step(to_env(kept, space), kept, t)
        seen.append((collected.batch.reward, collected.batch.next_obs, collected.ended))
    return seen


def repeated(env: str, steps: int, count: int = 1, vectorization: Any = "sync", **options: Any) -> list[int]:
    """Leave an environment in the middle of an episode, take it up in a new one, and compare how both go on."""
    first = collector(as_vector(env, count, vectorization, **options))
    wander(first, steps, np.random.default_rng(1))
    assert first.journal[0].count
    second = collector(as_vector(env, count, vectorization, **options))
    second.restore(first.state(), steps)
    elsewhere = list(second.repeat_episodes())
    if not elsewhere:
        jax.tree.map(np.testing.assert_array_equal, second.obs, first.obs)
        ahead = [wander(each, 30, np.random.default_rng(2)) for each in (first, second)]
        jax.tree.map(np.testing.assert_array_equal, *ahead)
    for each in (first, second):
        each.env.close()
    return elsewhere


MUJOCO = ["Hopper-v5", "Ant-v5", "Humanoid-v5", "sunrise/Walker-v0", "sunrise/SlimHumanoid-v0"]
DMC = ["dmc/reacher-easy", "dmc/cheetah-run", "dmc/ball_in_cup-catch", "dmc/finger-turn_hard", "dmc/quadruped-escape"]
GAMES = [f"ALE/{game}-v5" for game in itertools.islice(GAMES_100K, 0, None, 6)]


@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1", "toy/Pair-v0", *MUJOCO, *DMC, *GAMES])
def test_an_episode_is_taken_up_bit_for_bit(env: str) -> None:
    assert repeated(env, 137) == []


def test_pictures_are_taken_up_bit_for_bit() -> None:
    assert repeated("dmc/cartpole-swingup", 17, pixels=True, render_size=16, action_repeat=8) == []


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_environments_side_by_side_are_taken_up_each_where_it_was(vectorization: str) -> None:
    assert repeated("InvertedPendulum-v5", 45, count=3, vectorization=vectorization) == []


class Moody(gym.Wrapper[Any, Any, Any, Any]):
    """State that neither the seed nor the actions decide."""

    made = 0

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        Moody.made += 1
        self.mood = np.float32(Moody.made)

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        return obs + self.mood, *rest


def test_an_environment_with_hidden_state_is_found_out_and_goes_on_with_a_new_episode(
    caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    if "toy/Moody-v0" not in gym.registry:
        entry: Any = lambda: Moody(toys.Counter(30, "truncated"))  # noqa: E731
        gym.register("toy/Moody-v0", entry)
    assert repeated("toy/Moody-v0", 7) == [0]
    tiny: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 100}
    tiny |= {"learning_starts": 20, "eval_freq": 0, "run_dir": str(tmp_path / "run")}
    SAC("MlpPolicy", "toy/Moody-v0", **tiny).learn(45, progress_bar=False)
    with caplog.at_level(logging.WARNING, "sunrise"):
        model = SAC.resume(tmp_path / "run")
    assert caplog.text.count("did not come back to where it was") == 1
    assert model.trainer is not None
    assert [int(n) for n in (*model.trainer.collector.episode, *model.trainer.collector.length)] == [2, 0]
    assert model.learn(40, reset_num_timesteps=False, progress_bar=False).num_timesteps == 85


def test_a_vector_environment_of_the_users_own_goes_on_at_a_boundary() -> None:
    first = collector(SyncVectorEnv([lambda: gym.make("Pendulum-v1")] * 2))
    wander(first, 20, np.random.default_rng(1))
    second = collector(SyncVectorEnv([lambda: gym.make("Pendulum-v1")] * 2))
    second.restore(first.state(), 20)
    assert list(second.repeat_episodes()) == [0, 1]
    assert [journal.count for journal in second.journal] == [0, 0]
    assert second.episode.tolist() == [1, 1]


def test_an_environment_that_fails_loses_its_episode_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    if "toy/Falls-v1" not in gym.registry:
        gym.register("toy/Falls-v1", lambda: toys.Counter(10, fail_at=37))  # type: ignore[arg-type]
    tiny: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "learning_starts": 20}
    tiny |= {"eval_freq": 0, "buffer_size": 1000}
    model = SAC("MlpPolicy", "toy/Falls-v1", **tiny)
    rows: list[dict[str, Any]] = []

    def watch(now: dict[str, Any], _: Any) -> None:
        rows.append(now["self"].trainer.row())

    with caplog.at_level(logging.WARNING, "sunrise"):
        model.learn(100, callback=watch, progress_bar=False)
    assert model.num_timesteps == 100
    assert rows[-1]["env_restarts"] == 2  # it falls over at its 37th step, each time it is made
    assert "raised RuntimeError at timestep 36: the simulator fell over" in caplog.text
    assert "restart 2 of 10" in caplog.text
    assert model.trainer is not None
    replay = model.trainer.replay
    assert isinstance(replay, UniformReplay)
    # No transition goes over the gap: each leads from a step to the next.
    before, after = replay.batch.obs[:100, 0], replay.batch.next_obs[:100, 0]
    np.testing.assert_array_equal(after, before + 1)
    with pytest.raises(EnvironmentFailedError, match="at timestep 36"):
        SAC("MlpPolicy", "toy/Falls-v1", **tiny, max_env_restarts=0).learn(100, progress_bar=False)


def test_a_worker_that_dies_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    tiny: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "learning_starts": 20}
    tiny |= {"eval_freq": 0, "num_envs": 2, "vectorization": "async", "buffer_size": 1000}
    model = SAC("MlpPolicy", "Pendulum-v1", **tiny)
    killed: list[int] = []

    def kill(now: dict[str, Any], _: Any) -> None:
        env = now["self"].env
        assert isinstance(env, AsyncVectorEnv)
        if now["self"].num_timesteps == 30 and not killed:
            killed.append(env.processes[1].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    with caplog.at_level(logging.WARNING, "sunrise"):
        model.learn(60, callback=kill, progress_bar=False)
    assert model.num_timesteps == 61  # the step in which one of the two was lost gave one transition
    assert model.trainer is not None
    collector = model.trainer.collector
    assert collector.restarts.total == 1
    assert "environment 1 lost its process at timestep 30: it was killed by SIGKILL (step 16 of" in caplog.text
    assert collector.episode.tolist() == [0, 1]  # the other one goes on with its own
    assert collector.length.tolist() == [31, 15]
    assert model.env is collector.env
    model.env.close()
    with pytest.raises(SunriseError, match="max_env_restarts"):
        SAC("MlpPolicy", "Pendulum-v1", **tiny, max_env_restarts=-1)
