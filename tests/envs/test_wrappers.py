"""Wrappers: Gymnasium's own around one environment or many, and a user's own by name."""

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, RescaleAction
from gymnasium.wrappers import vector as wrappers

from sunrise import Random, SunriseError, settings_from
from sunrise.agents import load_run, resume_run
from sunrise.cli import main
from sunrise.envs.make import as_vector, make_env, rescale
from sunrise.envs.wrappers import read_wrapper, trusted_wrappers
from sunrise.run.collect import Collector
from tests.support.toys import Counter, Pair, register

register()
SHORT: dict[str, Any] = {"eval_freq": 10, "eval_episodes": 1, "seed": 1}
MODULE = """
import gymnasium as gym

class Times(gym.RewardWrapper):
    def __init__(self, env, factor=2.0):
        super().__init__(env)
        self.factor = factor
    def reward(self, reward):
        return self.factor * reward

def nothing(env):
    return None
"""


def totals(env: Any, steps: int = 40) -> list[float]:
    """The returns of the episodes that a collector sees."""
    source = Collector(env, 5, 1, np.random.default_rng(0), 0.9, "bootstrap")
    action = np.zeros((source.count, 1), np.float32)
    return [e.total for t in range(steps) for e in source.step(action, action, t).episodes]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_gymnasiums_statistics_around_a_vector_environment_are_ours_in_every_autoreset_mode(
    mode: AutoresetMode,
) -> None:
    """Its wrapper counts what it sees; a reset of one environment must not be taken for one of all."""
    vector = SyncVectorEnv([partial(Counter, n) for n in (2, 3, 5)], autoreset_mode=mode)
    env = wrappers.RecordEpisodeStatistics(vector)
    ours = totals(env)
    assert len(ours) > 20
    assert ours == list(env.return_queue)
    assert set(ours) == {3.0, 6.0, 15.0}  # 1 + 2, 1 + 2 + 3, 1 + ... + 5


def test_a_wrapper_that_knows_no_resets_of_single_environments_is_left_to_itself() -> None:
    """Gymnasium's running normalisation refuses them."""
    vector = SyncVectorEnv([partial(Counter, n) for n in (2, 3)])
    assert set(totals(wrappers.NormalizeObservation(vector))) == {3.0, 6.0}


def test_a_vector_environment_that_is_no_list_of_environments_is_learned_in() -> None:
    """Gymnasium's own CartPole in one array takes one seed for all."""

    def run() -> list[float]:
        env: Any = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
        source = Collector(env, 5, 1, np.random.default_rng(0), 0.9, "bootstrap")
        action = np.arange(3) % 2
        return [e.total for t in range(60) for e in source.step(action, action, t).episodes]

    assert len(run()) > 9
    assert run() == run()


class Batched(gym.vector.VectorEnv[Any, np.ndarray, np.ndarray]):
    """A foreign vector environment that gives its last observations as a batch, or not at all."""

    def __init__(self, key: str = "final_obs", mode: Any = AutoresetMode.SAME_STEP) -> None:
        self.num_envs, self.metadata, self.key = 2, {"autoreset_mode": mode}, key
        self.single_observation_space = gym.spaces.Dict({"t": gym.spaces.Box(0, 9, (1,), np.float32)})
        self.single_action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        assert isinstance(seed, int)
        self.t = np.zeros((2, 1), np.float32)
        return {"t": self.t.copy()}, {}

    def step(self, actions: np.ndarray) -> Any:
        self.t += 1
        last, done = {"t": self.t.copy()}, self.t[:, 0] >= [2, 3]
        self.t[done] = 0
        return {"t": self.t.copy()}, np.ones(2), done, np.zeros(2, bool), {self.key: last} if done.any() else {}


def test_last_observations_may_come_as_a_batch_and_must_come() -> None:
    action = np.zeros((2, 1), np.float32)
    source = Collector(Batched(), 5, 1, np.random.default_rng(0), 0.9, "bootstrap")
    after = [source.step(action, action, t).batch.next_obs["t"][:, 0].tolist() for t in range(6)]
    assert after == [[1, 1], [2, 2], [1, 3], [2, 1], [1, 2], [2, 3]]
    source = Collector(Batched("elsewhere"), 5, 1, np.random.default_rng(0), 0.9, "bootstrap")
    source.step(action, action, 0)
    with pytest.raises(SunriseError, match="does not give the last observation"):
        source.step(action, action, 1)
    with pytest.raises(SunriseError, match="its autoreset_mode is 'sometimes', but must be one of NextStep"):
        totals(Batched(mode="sometimes"))


def test_gymnasiums_wrappers_around_one_environment_are_learned_through() -> None:
    """As objects: what is made like them for evaluations is wrapped too."""
    inner = FlattenObservation(gym.make("toy/Pair-v0", disable_env_checker=True))
    counted = RecordEpisodeStatistics(inner)
    env = RescaleAction(counted, np.float32(-3), np.float32(5))
    model, episodes = Random("MlpPolicy", env, **SHORT), []
    model.learn(30, lambda now, _: episodes.extend(now["episodes"]), progress_bar=False)
    assert model.trainer is not None
    assert model.trainer.last_evaluation is not None
    assert list(counted.return_queue) == pytest.approx([e.total for e in episodes])
    assert len(episodes) == 3
    assert model.action_space == gym.spaces.Box(-3, 5, (1,), np.float32)


@pytest.mark.filterwarnings("ignore:.*precision lowered")  # Gymnasium's, about a bound that is a plain number
def test_a_named_wrapper_is_what_gymnasium_makes_of_it() -> None:
    named = (
        "gymnasium.wrappers:FlattenObservation",
        "gymnasium.wrappers:RescaleAction(min_action=-3.0, max_action=5.0)",
    )
    env = make_env("toy/Pair-v0", wrappers=named)
    inner = FlattenObservation(gym.make("toy/Pair-v0", disable_env_checker=True))
    plain = RescaleAction(inner, np.float32(-3), np.float32(5))
    assert env.observation_space == plain.observation_space
    assert env.action_space == plain.action_space
    action = rescale(np.asarray([[0.25]], np.float32), gym.spaces.Box(-3, 5, (1,)))[0]
    for one, other in ((env.reset(seed=3), plain.reset(seed=3)), (env.step(action), plain.step(action))):
        np.testing.assert_array_equal(one[0], other[0])
    vector = as_vector("toy/Pair-v0", 2, wrappers=named)
    assert vector.single_observation_space == plain.observation_space


@pytest.mark.parametrize(
    "text",
    [
        "Times",
        "mod:",
        ":Times",
        "mod:Times(2)",
        "mod:Times(factor=open('x'))",
        "mod:Times(**{})",
        "mod:a.b",
        "mod:Times(",
    ],
)
def test_a_name_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SunriseError, match=r"must be like pkg\.mod:Wrapper"):
        read_wrapper(text)


@pytest.mark.parametrize("text", ["gymnasium.wrappers:RecordVideo(video_folder='x')", "gymnasium:make(id='x')", "os:x"])
def test_a_wrapper_of_a_file_that_could_do_harm_needs_trust(text: str) -> None:
    with pytest.raises(SunriseError, match="--trust-env"):
        trusted_wrappers([text], trust=False)
    assert trusted_wrappers([text], trust=True) == (text,)
    assert trusted_wrappers(["gymnasium.wrappers:TimeLimit(max_episode_steps=3)"], trust=False)


def test_a_users_wrapper_is_trained_through_and_a_strangers_is_not_imported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "changing_rewards.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    flags = ["--env-id", "toy/Counter-v0", "--run-dir", "run", "--total-timesteps", "12"]
    main(["train", "random", *flags, "--wrapper", "changing_rewards:Times(factor=3.0)", "changing_rewards:Times"])
    monkeypatch.delitem(sys.modules, "changing_rewards")
    for use in (load_run, resume_run):
        with pytest.raises(SunriseError, match=r"wrapped by changing_rewards:Times.*--trust-env"):
            use(Path("run"))
    with pytest.raises(SunriseError, match="--trust-env"):
        Random.resume("run", env="toy/Counter-v0")
    assert Random.resume("run", env=Counter).num_timesteps == 12  # an environment that was made is taken as it is
    assert "changing_rewards" not in sys.modules
    model = load_run(Path("run"), trust_env=True)
    assert model.evaluate(1).returns == [6 * (1 + 2 + 3 + 4)]
    with pytest.raises(SystemExit):
        main(["train", "random", "--config", "run", "--run-dir", "again"])
    assert 'say so with --wrapper "changing_rewards:Times(factor=3.0)"' in capsys.readouterr().err
    assert "wrapper" not in settings_from("run")
    model.save("model")
    monkeypatch.delitem(sys.modules, "changing_rewards")
    caplog.set_level(logging.WARNING, "sunrise")
    assert Random.load("model", env="toy/Counter-v0").evaluate(1).returns == [1 + 2 + 3 + 4]
    assert "was trained inside changing_rewards:Times(factor=3.0), changing_rewards:Times: give" in caplog.text
    assert "changing_rewards" not in sys.modules


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ("changing_rewards:Time", "there is no wrapper 'Time' in changing_rewards. Did you mean Times?"),
        ("nowhere_at_all:Times", "the module 'nowhere_at_all' of the wrapper 'Times' cannot be imported"),
        ("changing_rewards:nothing", "makes None, which is no environment"),
        ("changing_rewards:Times(factors=2)", "cannot be put around"),
    ],
)
def test_a_wrapper_that_cannot_be_is_refused_in_a_sentence(
    wrapper: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changing_rewards.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SunriseError) as error:
        make_env("toy/Counter-v0", wrappers=[wrapper])
    assert said in str(error.value)


def test_wrappers_are_for_environments_made_by_their_id() -> None:
    with pytest.raises(SunriseError, match="wrapper is for environments made by their id"):
        Random("MlpPolicy", Pair, wrapper="gymnasium.wrappers:FlattenObservation")
