"""One contract for every algorithm: whatever is in the table can be used in every way. A new one is in it by itself."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from sunrise import NonFiniteError, SunriseError
from sunrise.agents import AGENTS, Agent
from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.settings import flatten_config
from tests.support import runs, tiny
from tests.support.image_control import Dot

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {
    "net_arch": (8,),
    "batch_size": 4,
    "buffer_size": 200,
    "learning_starts": 20,
    "eval_freq": 0,
    "log_freq": 20,
    "save_freq": 20,
    "seed": 5,
    "filters": 2,
    "conv_layers": 2,
    "feature_dim": 4,
    "crop_size": 18,
    "n_atoms": 3,
    "n_step": 1,
    "n_critics": 2,
}
ALWAYS = {f"train/{kind}_{stat}" for kind in ("disagreement", "weight") for stat in ("mean", "p05", "p50", "p95")}
ALWAYS |= {"train/effective_batch", "timesteps", "env_steps", "episodes", "updates", "replay_size"}


class Straight(gym.Env[Any, Any]):
    """Numbers for observations, and the actions asked for."""

    def __init__(self, actions: gym.Space[Any]) -> None:
        self.observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        obs = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return obs, float(np.sum(action)), self.t == 9, False, {}


def pictures(name: str) -> bool:
    return "MlpPolicy" not in ALGORITHMS[name].policies


def make_env(name: str) -> gym.Env[Any, Any]:
    """A task that the algorithm can learn."""
    if pictures(name):
        return Dot()
    finite = name in ("rainbow", "dqn")
    actions: gym.Space[Any] = gym.spaces.Discrete(3) if finite else gym.spaces.Box(-1, 1, (2,), np.float32)
    return Straight(actions)


def side_by_side(name: str, count: int) -> gym.vector.SyncVectorEnv:
    mode = gym.vector.AutoresetMode.DISABLED
    return gym.vector.SyncVectorEnv([lambda: make_env(name)] * count, autoreset_mode=mode)


def make(name: str, **changes: Any) -> Agent:
    known = flatten_config(ALGORITHMS[name].defaults)
    settings = {key: value for key, value in (SMALL | changes).items() if key in known or key in changes}
    if name == "random":
        settings["learning_starts"] = known["learning_starts"]
    return AGENTS[name](ALGORITHMS[name].policies[0], lambda: make_env(name), **settings)


def learn(model: Agent, timesteps: int = 60, **more: Any) -> Agent:
    return model.learn(timesteps, progress_bar=False, log_interval=None, **more)


@pytest.fixture(scope="module", params=list(ALGORITHMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(name) / "run"


@pytest.fixture(scope="module")
def model(name: str, run: Path) -> Agent:
    """Three members, two environments, a run's folder."""
    return learn(make(name, ensemble_size=3, num_envs=2, run_dir=str(run)))


def observations(model: Agent, rows: int) -> np.ndarray:
    model.observation_space.seed(0)
    return np.stack([model.observation_space.sample() for _ in range(rows)])


def state(model: Agent) -> Any:
    return model.ensemble


def test_it_predicts_one_and_a_batch_and_says_how_sure_it_is(model: Agent) -> None:
    obs = observations(model, 4)
    batch, _ = model.predict(obs, deterministic=True)
    assert all(model.action_space.contains(action) for action in batch)
    one, _ = model.predict(obs[1], deterministic=True)
    np.testing.assert_allclose(one, batch[1], atol=1e-5)
    assert model.action_space.contains(model.predict(obs[0], deterministic=False)[0])
    unsure = model.uncertainty(obs, batch)
    assert unsure.shape == (4,)
    assert (unsure >= 0).all()
    assert model.uncertainty(obs[2], batch[2]) == pytest.approx(unsure[2], rel=1e-3, abs=1e-5)


def test_its_rows_of_metrics_have_the_names_that_all_have(model: Agent, run: Path, name: str) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["timesteps"] for row in rows] == [20, 40, 60]
    if name != "random":
        assert rows[-1].keys() >= ALWAYS
        assert {f"train/{metric}" for metric in model.parts.make_learner(model.numbers.learner).metrics} <= rows[
            -1
        ].keys()


def test_it_is_saved_loaded_and_goes_on(model: Agent, name: str, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = AGENTS[name].load(tmp_path / "model", env=lambda: make_env(name))
    assert tiny.same_bits(state(again), state(model))
    assert again.num_timesteps == 60
    learn(again, 8, reset_num_timesteps=False)
    assert again.num_timesteps == 68
    assert tiny.same_bits(state(again), state(model)) == (name == "random")


def test_a_run_that_is_stopped_and_resumed_is_the_run_never_stopped(run: Path, model: Agent, name: str) -> None:
    broken = run.parent / "broken"

    def stop(now: dict[str, Any], _: Any) -> None:
        if now["self"].num_timesteps >= 48:
            now["self"].session.settle()
            raise KeyError("the power went")

    with pytest.raises(KeyError):
        make(name, ensemble_size=3, num_envs=2, run_dir=str(broken)).learn(
            60, stop, progress_bar=False, log_interval=None
        )
    again = AGENTS[name].resume(broken, env=lambda: make_env(name))
    assert again.num_timesteps == 40
    learn(again, 20, reset_num_timesteps=False)
    runs.assert_same(run, broken)


def test_another_environment_takes_the_place_of_the_first(model: Agent, name: str) -> None:
    with pytest.raises(SunriseError, match="training with environments: 2"):
        model.set_env(side_by_side(name, 3))
    model.set_env(side_by_side(name, 2))
    learn(model, 4, reset_num_timesteps=False)
    assert model.num_timesteps == 64


def test_wrong_spaces_are_refused(name: str) -> None:
    finite = name in ("rainbow", "dqn")
    actions: gym.Space[Any] = gym.spaces.Box(-1, 1, (2,), np.float32) if finite else gym.spaces.Discrete(3)
    with pytest.raises(SunriseError):
        AGENTS[name](ALGORITHMS[name].policies[0], Straight(actions))


@pytest.fixture(scope="module")
def alone(name: str) -> Agent:
    """One member, a schedule of learning rates."""
    schedule = {} if name == "random" else {"learning_rate": lambda left: 1e-3 * left}
    return learn(make(name, ensemble_size=1, **schedule), 30)


def test_one_member_with_a_schedule_learns_and_the_same_seed_gives_the_same_bits(alone: Agent, name: str) -> None:
    schedule = {} if name == "random" else {"learning_rate": lambda left: 1e-3 * left}
    again = learn(make(name, ensemble_size=1, **schedule), 30)
    assert tiny.same_bits(state(again), state(alone))
    assert not tiny.same_bits(state(make(name, ensemble_size=1, seed=6)), state(alone)) or name == "random"


def test_values_that_are_not_finite_are_refused(name: str) -> None:
    """Steps so large that parameters overflow: the update that would make them so is not made."""
    if name == "random":
        pytest.skip("it learns nothing")
    wild = make(name, ensemble_size=1, learning_rate=1e38)
    with pytest.raises(NonFiniteError):
        learn(wild, 40)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(state(wild)))
