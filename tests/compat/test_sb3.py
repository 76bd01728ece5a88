"""Stable-Baselines3's own environments, callbacks and evaluation on our models: the calls of its user guide.

`make test-compat` runs it; without Stable-Baselines3 it is skipped.
"""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: make test-compat")

import torch
from stable_baselines3.common import callbacks
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import CSVOutputFormat, Figure, Image, Logger, TensorBoardOutputFormat
from stable_baselines3.common.logger import configure as configure_logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.results_plotter import load_results, ts2xy
from stable_baselines3.common.save_util import save_to_zip_file
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecFrameStack, VecNormalize
from stable_baselines3.dqn import MlpPolicy

from sunrise import DQN, SAC, TD3, SunriseError
from sunrise.run.fitting import random_chance
from tests.compat.models import LENGTH, SMALL, Walk, dqn, sac
from tests.support import tiny

RUN: dict[str, Any] = {"progress_bar": False}
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # SB3's Monitor leaves files open
]


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


class Follower(callbacks.BaseCallback):  # type: ignore[misc]
    """Writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Any] = []
        self.told: list[str] = []

    def _on_training_start(self) -> None:
        assert isinstance(self.training_env, VecEnv)
        assert isinstance(self.logger, Logger)
        self.told.append("start")

    def _on_rollout_start(self) -> None:
        self.told.append("rollout")

    def _on_step(self) -> bool:
        own = self.locals
        assert self.num_timesteps == self.model.num_timesteps
        assert all(len(own[name]) == self.training_env.num_envs for name in ("actions", "new_obs", "infos", "dones"))
        self.steps.append((self.num_timesteps, own["rewards"].tolist(), own["infos"]))
        self.logger.record("mine/steps", len(self.steps))
        return True

    def _on_training_end(self) -> None:
        self.told.append("end")


def test_evaluation_finds_the_best_model_writes_its_table_and_stops_the_training(tmp_path: Path) -> None:
    seen: list[int] = []

    class After(callbacks.BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            seen.append(self.model.num_timesteps)
            return True

    stop = callbacks.StopTrainingOnRewardThreshold(reward_threshold=10)  # an episode is worth 15
    evaluation = callbacks.EvalCallback(
        Monitor(Walk()),
        callback_on_new_best=stop,
        callback_after_eval=After(),
        n_eval_episodes=2,
        eval_freq=7,
        best_model_save_path=str(tmp_path),
        log_path=str(tmp_path),
        verbose=0,
    )
    model = sac().learn(40, callback=evaluation, **RUN)
    assert model.num_timesteps == 7
    table = np.load(tmp_path / "evaluations.npz")
    assert table["timesteps"].tolist() == [7]
    assert table["results"].tolist() == [[15, 15]]
    for name in ("best_model", "best_model.zip"):
        assert tiny.same_bits(SAC.load(tmp_path / name).ensemble, model.ensemble)
    assert evaluation.best_mean_reward == 15
    assert seen == []  # the training stops before the second child is asked, as it does there


def test_a_list_of_callbacks_saves_counts_and_stops(tmp_path: Path) -> None:
    follower = Follower()
    several = callbacks.CallbackList(
        [
            callbacks.CheckpointCallback(10, str(tmp_path), save_replay_buffer=True, save_vecnormalize=True),
            callbacks.EveryNTimesteps(6, callbacks.CheckpointCallback(1, str(tmp_path / "every"))),
            callbacks.StopTrainingOnMaxEpisodes(max_episodes=3),
            follower,
        ]
    )
    model = sac().learn(100, callback=several, **RUN)
    assert model.num_timesteps == 3 * LENGTH
    assert [t for t, _, _ in follower.steps] == list(range(1, 16))
    assert follower.steps[4][2][0]["episode"]["r"] == 15
    assert follower.told == ["start"] + ["rollout"] * 16 + ["end"]
    assert names(tmp_path) == {"rl_model_10_steps.zip", "rl_model_replay_buffer_10_steps.pkl", "every"}
    assert names(tmp_path / "every") == {"rl_model_6_steps.zip", "rl_model_12_steps.zip"}
    again = SAC.load(tmp_path / "rl_model_10_steps", env=Walk())
    again.load_replay_buffer(tmp_path / "rl_model_replay_buffer_10_steps.pkl")
    assert (again.num_timesteps, again.replay_buffer.size()) == (10, 10)


@pytest.mark.filterwarnings("ignore:rich is experimental")
def test_a_bar_rows_on_demand_and_a_plain_function() -> None:
    calls: list[int] = []
    rows = callbacks.LogEveryNTimesteps(n_steps=10)
    model = sac().learn(20, callback=[callbacks.ProgressBarCallback(), rows], log_interval=None, **RUN)

    def count(own: dict[str, Any], _: dict[str, Any]) -> bool:
        calls.append(len(own["infos"]))
        return True

    model.learn(4, callback=count, **RUN)
    assert calls == [1, 1, 1, 1]


def test_what_a_callback_records_is_in_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Draws(callbacks.BaseCallback):  # type: ignore[misc]
        def _on_training_start(self) -> None:
            found = [each for each in self.logger.output_formats if isinstance(each, TensorBoardOutputFormat)]
            found[0].writer.add_text("direct", "text", 0)

        def _on_step(self) -> bool:
            import matplotlib.pyplot as plt

            self.logger.record("mine/value", float(self.num_timesteps))
            image = np.zeros((4, 4, 3), np.uint8)
            excluded = ("stdout", "log", "json", "csv")
            self.logger.record("mine/image", Image(image, "HWC"), exclude=excluded)
            if self.num_timesteps == 5:
                figure = plt.figure()
                self.logger.record("mine/figure", Figure(figure, close=True), exclude=excluded)
            return True

    model = sac(tensorboard_log=str(tmp_path))
    model.learn(10, callback=Draws(), log_interval=1, tb_log_name="one", **RUN)
    model.learn(10, log_interval=1, tb_log_name="one", reset_num_timesteps=False, **RUN)
    assert names(tmp_path) == {"one_1"}
    events = EventAccumulator(str(tmp_path / "one_1")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("mine/value")] == [(5, 5.0), (10, 10.0)]
    assert [e.value for e in events.Scalars("rollout/ep_rew_mean")] == [15] * 4
    assert {"mine/image", "mine/figure"} <= set(events.Tags()["images"])


def test_another_logger_takes_the_rows(tmp_path: Path) -> None:
    model = sac()
    model.set_logger(configure_logger(str(tmp_path), ["csv"]))
    assert isinstance(model.logger.output_formats[0], CSVOutputFormat)
    assert model.logger.get_dir() == str(tmp_path)
    model.learn(20, log_interval=2, **RUN)
    rows = (tmp_path / "progress.csv").read_text().splitlines()
    assert len(rows) == 3
    assert {"rollout/ep_rew_mean", "time/total_timesteps", "train/critic_loss"} <= set(rows[0].split(","))


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_a_vec_env_is_learned_from_and_given_back(kind: Any) -> None:
    makers = [lambda: Monitor(Walk("terminated")), lambda: Monitor(Walk("truncated"))]
    vec_env, follower = kind(makers), Follower()
    model = sac(vec_env, gradient_steps=2).learn(20, callback=follower, **RUN)
    assert model.get_env() is vec_env
    assert model.trainer is not None
    replay: Any = model.trainer.replay
    batch = replay.batch
    last = batch.next_obs[:20, 0] == LENGTH
    assert last.sum() == 4  # the true last observation of each episode, not the first of the next
    discounts = batch.discount[:20][last]
    np.testing.assert_allclose(np.sort(discounts), [0, 0, 0.99, 0.99])
    assert follower.steps[4][2][0]["episode"]["r"] == 15
    obs = vec_env.reset()
    for _ in range(3):
        action, _ = model.predict(obs)
        obs, _, _, _ = vec_env.step(action)
    again = Follower()
    model.learn(4, callback=again, reset_num_timesteps=False, **RUN)
    assert [rewards for _, rewards, _ in again.steps] == [[1, 1], [2, 2]]
    vec_env.close()


def test_get_env_is_a_vec_env_over_the_same_environments() -> None:
    model = sac(Walk(render_mode="rgb_array")).learn(7, **RUN)
    vec_env = model.get_env()
    assert isinstance(vec_env, DummyVecEnv)
    assert vec_env is model.get_env()
    assert vec_env.env_is_wrapped(Monitor) == [True]
    mean, std = evaluate_policy(model, vec_env, n_eval_episodes=3)
    assert (mean, std) == (15, 0)
    obs = vec_env.reset()
    for _ in range(LENGTH):
        obs, rewards, dones, infos = vec_env.step(model.predict(obs, deterministic=True)[0])
    assert (rewards[0], dones[0], obs[0, 0]) == (LENGTH, True, 0)
    assert infos[0]["TimeLimit.truncated"]
    assert infos[0]["terminal_observation"][0] == LENGTH
    assert infos[0]["episode"]["r"] == 15
    assert vec_env.render(mode="rgb_array").shape == (4, 4, 3)
    follower = Follower()
    model.learn(3, callback=follower, reset_num_timesteps=False, **RUN)
    assert [rewards for _, rewards, _ in follower.steps] == [[1], [2], [3]]
    assert not sac(monitor_wrapper=False).get_env().env_is_wrapped(Monitor)[0]
    assert model.get_vec_normalize_env() is None


def test_environments_in_processes_of_their_own_are_a_vec_env_too() -> None:
    model = SAC("MlpPolicy", Walk, num_envs=2, vectorization="async", **SMALL)
    vec_env = model.get_env()
    assert isinstance(vec_env, VecEnv)
    assert evaluate_policy(model, vec_env, n_eval_episodes=4) == (15, 0)
    vec_env.close()


def test_what_stands_between_is_seen_through_and_normalisation_is_refused() -> None:
    stacked = VecFrameStack(make_vec_env(Walk, n_envs=1), 2)
    model = sac(stacked).learn(12, **RUN)
    assert model.observation_space.shape == (6,)
    with pytest.raises(SunriseError, match="normalise_observations"):
        sac(VecNormalize(make_vec_env(Walk, n_envs=1)))


def test_a_monitor_of_the_user_writes_its_file(tmp_path: Path) -> None:
    sac(Monitor(Walk(), str(tmp_path))).learn(22, **RUN)
    x, y = ts2xy(load_results(str(tmp_path)), "timesteps")
    assert (x.tolist(), y.tolist()) == ([5, 10, 15, 20], [15] * 4)


def test_noise_policies_activations_and_schedules_are_taken() -> None:
    noise = NormalActionNoise(mean=np.zeros(1), sigma=0.2 * np.ones(1))
    model = TD3("MlpPolicy", Walk(), **SMALL, action_noise=noise)
    assert model.action_noise == 0.2
    with pytest.raises(SunriseError, match="NormalActionNoise"):
        TD3("MlpPolicy", None, action_noise=OrnsteinUhlenbeckActionNoise(np.zeros(1), np.ones(1)))
    shapes = {"activation_fn": torch.nn.Tanh, "net_arch": {"pi": [8], "qf": [6]}}
    network = SAC("MlpPolicy", Walk(), **(SMALL | {"policy_kwargs": shapes})).ensemble.members
    assert network.actor.layers[0].weight.shape == (2, 3, 8)
    assert network.critics.layers[0].weight.shape == (2, 2, 4, 6)
    assert DQN(MlpPolicy, Walk(finite=True), **SMALL).config.learner.net_arch == (8,)


def test_the_chance_of_a_random_action_is_that_of_stable_baselines3() -> None:
    settings = dqn(exploration_fraction=0.3, exploration_initial_eps=0.9, exploration_final_eps=0.2).config.learner
    theirs = LinearSchedule(0.9, 0.2, 0.3)
    for done in np.linspace(0, 1, 41):
        assert random_chance(settings, float(done)) == pytest.approx(theirs(1 - done))


def test_a_model_of_stable_baselines3_is_refused_by_a_sentence(tmp_path: Path) -> None:
    save_to_zip_file(tmp_path / "theirs.zip", data={"gamma": 0.9}, params={})
    with pytest.raises(SunriseError, match="model of Stable-Baselines3"):
        SAC.load(tmp_path / "theirs")


def test_a_script_of_the_user_guide_runs_with_another_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train, save, delete, load with the environment, evaluate, watch."""
    monkeypatch.chdir(tmp_path)
    env = gym.wrappers.TimeLimit(Walk("terminated", finite=True), 4)
    model = DQN("MlpPolicy", env, verbose=1, **SMALL)
    model.learn(total_timesteps=int(3e1), progress_bar=True)
    model.save("dqn_walk")
    del model
    model = DQN.load("dqn_walk", env=env, print_system_info=True)
    mean, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=3)
    assert mean == 1 + 2 + 3 + 4
    vec_env = model.get_env()
    obs = vec_env.reset()
    for _ in range(9):
        action, _states = model.predict(obs, deterministic=True)
        obs, _, _, _ = vec_env.step(action)
