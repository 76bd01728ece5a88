"""Rainbow as its users meet it: games, poles, and the wrong environments."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise import SAC, Rainbow, SunriseError
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore, PlainStore
from sunrise.store.run_folder import RunFolder
from tests.support import tiny

TINY: dict[str, Any] = {
    "ensemble_size": 2,
    "net_arch": (8,),
    "batch_size": 4,
    "buffer_size": 500,
    "learning_starts": 30,
    "n_step": 3,
    "eval_freq": 0,
    "save_freq": 0,
    "seed": 1,
}


def learned(env: Any, steps: int = 50, **changes: Any) -> Rainbow:
    model = Rainbow("CnnPolicy", env, **{**TINY, **changes})
    return model.learn(steps, progress_bar=False, log_interval=None)


@pytest.fixture(scope="module")
def pole() -> Rainbow:
    return learned("CartPole-v1")


def test_a_pole_is_learned_from_with_prioritised_windows(pole: Rainbow, tmp_path: Path) -> None:
    assert pole.trainer is not None
    replay = pole.trainer.replay
    assert isinstance(replay, SequenceReplay)
    assert isinstance(replay.store, PlainStore)
    assert (replay.n_step, replay.prioritised) == (3, True)
    assert replay.tree is not None
    assert len(set(replay.tree[np.arange(30)].tolist())) > 2  # errors have made priorities of their own
    action, _ = pole.predict(np.zeros(4, np.float32), deterministic=True)
    assert action.shape == ()
    assert pole.action_space.contains(int(action))
    assert pole.predict(np.zeros((3, 4), np.float32), deterministic=True)[0].shape == (3,)
    assert pole.uncertainty(np.zeros(4, np.float32), np.asarray(1)) > 0
    pole.save(tmp_path / "pole")
    back = Rainbow.load(tmp_path / "pole", env="CartPole-v1")
    assert tiny.same_bits(back.ensemble, pole.ensemble)
    assert back.evaluate(2).returns == pole.evaluate(2).returns


def test_a_loaded_agent_goes_on_learning_when_there_is_something_to_learn_from(pole: Rainbow, tmp_path: Path) -> None:
    """Its counter is beyond `learning_starts`, and its replay is empty."""
    pole.save(tmp_path / "pole")
    again = Rainbow.load(tmp_path / "pole", env="CartPole-v1", learning_rate=lambda left: 1e-3 * left)
    steps = int(again.ensemble.step)
    again.learn(20, reset_num_timesteps=False, progress_bar=False)
    assert again.num_timesteps == 70
    assert again.trainer is not None
    assert steps + 10 < int(again.ensemble.step) < steps + 20  # the first windows of three steps come late


def test_what_is_chosen_of_a_finite_set_is_logged_as_actions(tmp_path: Path) -> None:
    for exploration, name, count in (("ucb", "action", 3), ("member", "chosen", 2)):
        run = tmp_path / exploration
        learned("MountainCar-v0", 40, exploration=exploration, run_dir=str(run), learning_starts=10, log_freq=40)
        row = RunFolder(run).read_metrics()[-1]
        shares = {key: value for key, value in row.items() if key.startswith(("action/", "chosen/"))}
        assert list(shares) == [f"{name}/{i}" for i in range(count)]
        assert sum(shares.values()) == pytest.approx(1)


def test_the_evaluation_action_has_the_highest_mean_value_without_noise(pole: Rainbow) -> None:
    obs = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    votes = []
    for action in range(2):
        one = pole.parts.make_learner(pole.numbers.learner)
        values = [
            np.asarray(one.judge(_member(pole.ensemble.members, i), jnp.asarray(obs), jnp.full(16, action), None))[0]
            for i in range(2)
        ]
        votes.append(np.mean(values, axis=0))
    np.testing.assert_array_equal(pole.predict(obs, deterministic=True)[0], np.argmax(votes, axis=0))


def _member(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


def test_games_side_by_side_are_learned_from_and_frames_are_counted() -> None:
    model = learned("ALE/Pong-v5", 60, num_envs=2)
    assert model.trainer is not None
    assert isinstance(model.trainer.replay, SequenceReplay)
    assert isinstance(model.trainer.replay.store, FrameStore)
    row = model.trainer.row()
    assert (row["timesteps"], row["env_steps"]) == (60, 240)
    assert model.predict(np.zeros((4, 84, 84), np.uint8), deterministic=True)[0].shape == ()


def test_the_full_set_of_actions_and_sticky_ones_are_options() -> None:
    model = Rainbow("CnnPolicy", "ALE/Pong-v5", **TINY, full_action_space=True, sticky_actions=0.25)
    assert model.action_space == gym.spaces.Discrete(18)
    assert Rainbow("CnnPolicy", "ALE/Pong-v5", **TINY).action_space == gym.spaces.Discrete(6)


def test_a_single_agent_of_the_authors_is_evaluated_with_a_few_random_actions() -> None:
    settings = {**TINY, "ensemble_size": 1}
    authors = Rainbow("MlpPolicy", "CartPole-v1", preset="authors", **settings)
    evaluator = authors._evaluator()
    assert evaluator is not None
    assert evaluator.epsilon == 0.001
    both = Rainbow("MlpPolicy", "CartPole-v1", preset="authors", **TINY)._evaluator()
    assert both is not None
    assert both.epsilon == 0
    assert authors.config.training.importance_horizon == 500_000
    assert authors.config.learner.max_grad_norm == 0
    assert authors.config.ensemble.empty_masks == "kept"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("Pendulum-v1", "Rainbow needs Discrete actions"),
        ("ALE/Pang-v5", "Pong"),
        (gym.make("CartPole-v1").unwrapped, ""),
    ],
)
def test_wrong_environments_are_refused_and_right_ones_taken(env: Any, message: str) -> None:
    if not message:
        assert Rainbow("MlpPolicy", env, **TINY).action_space == gym.spaces.Discrete(2)
        return
    with pytest.raises(SunriseError, match=message):
        Rainbow("CnnPolicy", env, **TINY)


@pytest.mark.parametrize("exploration", ["ucb", "member"])
def test_epsilon_is_the_chance_of_a_random_action_however_the_ensemble_explores(exploration: str) -> None:
    quiet = {"ensemble_size": 1, "noisy": False, "exploration": exploration, "learning_starts": 0, "train_freq": 10_000}
    model = learned("CartPole-v1", 400, epsilon=0.4, buffer_size=10_000, warmup="ensemble", **quiet)
    assert model.trainer is not None
    obs = np.ones((20_000, 4), np.float32)
    best = model.predict(obs, deterministic=True)[0]
    assert (model.predict(obs)[0] != best).mean() == pytest.approx(0.2, abs=0.02)  # half of what is random is the best
    assert isinstance(model.trainer.replay, SequenceReplay)
    replay, rows = model.trainer.replay, np.arange(400)
    best = model.predict(replay.store.obs(rows), deterministic=True)[0]
    assert (replay.action[rows] != best).mean() == pytest.approx(0.2, abs=0.06)


def test_atoms_that_run_backwards_are_refused() -> None:
    with pytest.raises(SunriseError, match=r"v_min is 3\.0, but must be below v_max, which is 3\.0"):
        Rainbow("MlpPolicy", "CartPole-v1", **TINY, v_min=3, v_max=3.0)


def test_any_learner_may_use_windows_and_priorities() -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", **{**TINY, "net_arch": (8, 8)}, prioritised=True)
    model.learn(50, progress_bar=False)
    assert model.trainer is not None
    assert isinstance(model.trainer.replay, SequenceReplay)
