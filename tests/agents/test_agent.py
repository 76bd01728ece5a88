"""The class as a user of Stable-Baselines3 would use it."""

import inspect
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import sunrise
from sunrise import SAC, NonFiniteError, SunriseError
from sunrise.config import migrations
from sunrise.config.settings import flatten_config
from sunrise.ensemble import Ensemble
from tests.support import tiny, toys

toys.register()
TINY: dict[str, Any] = {
    "ensemble_size": 2,
    "net_arch": (8, 8),
    "batch_size": 8,
    "buffer_size": 1000,
    "learning_starts": 20,
    "eval_freq": 0,
    "save_freq": 0,
}


def at(index: Any, leaf: Any) -> np.ndarray:
    return np.asarray(leaf[index])


def make(env: Any = "Pendulum-v1", **changes: Any) -> SAC:
    return SAC("MlpPolicy", env, **{**TINY, "seed": 1, **changes})


def learned(steps: int = 60, **changes: Any) -> SAC:
    return make(**changes).learn(steps, progress_bar=False, log_interval=None)


@pytest.fixture(scope="module")
def model() -> SAC:
    return learned()


def test_learning_returns_the_model_and_counts_timesteps(model: SAC) -> None:
    assert isinstance(model, SAC)
    assert model.num_timesteps == 60
    assert model.trainer is not None
    assert int(model.ensemble.step) == model.trainer.updates == 40


def test_a_prediction_is_an_action_of_the_environment(model: SAC) -> None:
    space = model.action_space
    obs = np.zeros(3, np.float32)
    action, state = model.predict(obs, deterministic=True)
    assert space.contains(action)
    assert state is None
    batch, _ = model.predict(np.stack([obs, obs + 1, obs - 1]), deterministic=True)
    assert batch.shape == (3, 1)
    np.testing.assert_allclose(batch[0], action, rtol=1e-6)
    assert np.array_equal(model.predict(obs, deterministic=True)[0], action)  # deterministic
    draws = {float(model.predict(obs, deterministic=False)[0][0]) for _ in range(5)}
    assert len(draws) == 5


def test_the_evaluation_action_is_the_mean_of_the_members_squashed_means(model: SAC) -> None:
    obs = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    members = model.ensemble.members
    actions = []
    for i in range(2):
        x = obs
        layers = jax.tree.map(partial(at, i), members.actor).layers
        for layer in layers[:-1]:
            x = np.maximum(x @ layer.weight + layer.bias, 0)
        out = x @ layers[-1].weight + layers[-1].bias
        actions.append(np.tanh(out[:, :1]))
    np.testing.assert_allclose(
        model.predict(obs, deterministic=True)[0], 2 * np.mean(actions, axis=0), rtol=1e-5
    )  # bounds are ±2


def critics_by_hand(members: Any, rows: np.ndarray) -> np.ndarray:
    """Every critic of every member on rows of (observation, action), in NumPy."""
    votes = []
    for i in range(2):
        for k in range(2):
            x = rows
            layers = jax.tree.map(partial(at, (i, k)), members.critics).layers
            for layer in layers[:-1]:
                x = np.maximum(x @ layer.weight + layer.bias, 0)
            votes.append((x @ layers[-1].weight + layers[-1].bias)[:, 0])
    return np.stack(votes)


def test_uncertainty_is_the_deviation_of_all_critics(model: SAC) -> None:
    rng = np.random.default_rng(1)
    obs, action = rng.standard_normal((5, 3)).astype(np.float32), rng.uniform(-2, 2, (5, 1)).astype(np.float32)
    votes = critics_by_hand(model.ensemble.members, np.concatenate([obs, action / 2], axis=1))
    got = model.uncertainty(obs, action)
    np.testing.assert_allclose(got, votes.std(axis=0), rtol=1e-4)
    single = model.uncertainty(obs[0], action[0])
    assert isinstance(single, float)
    assert single == pytest.approx(got[0], rel=1e-5)


def test_exploration_takes_the_candidate_of_the_highest_upper_confidence_bound(model: SAC) -> None:
    """The members' proposals are recovered from member exploration, and ranked in NumPy."""
    obs = np.random.default_rng(2).standard_normal((6, 3)).astype(np.float32)
    key, counter = jax.random.key(3), np.int32(4)
    member = make(exploration="member")
    proposals = [
        np.asarray(
            member.sunrise.explore(
                model.ensemble.members, obs, np.full(6, i, np.int32), key, counter, model.numbers
            ).action
        )
        for i in range(2)
    ]
    scores = []
    for proposal in proposals:
        votes = critics_by_hand(model.ensemble.members, np.concatenate([obs, proposal], axis=1))
        scores.append(votes.mean(axis=0) + 1.0 * votes.std(axis=0))
    choice = model.sunrise.explore(model.ensemble.members, obs, np.zeros(6, np.int32), key, counter, model.numbers)
    best = np.argmax(scores, axis=0)
    np.testing.assert_array_equal(choice.candidate, best)
    np.testing.assert_allclose(choice.action, np.stack(proposals)[best, np.arange(6)], rtol=1e-5)
    assert len(set(best.tolist())) == 2  # the test would not see a constant choice otherwise


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(model: SAC) -> None:
    again, other = learned(), learned(seed=2)
    ends = [m.ensemble for m in (model, again, other) if m.trainer]
    assert tiny.same_bits(ends[0], ends[1])
    assert not tiny.same_bits(ends[0], ends[2])


def test_a_saved_model_is_the_same_model(model: SAC, tmp_path: Path) -> None:
    model.save(tmp_path / "pendulum")
    assert [p.name for p in tmp_path.iterdir()] == ["pendulum.safetensors"]  # one file, no part left behind
    back = SAC.load(tmp_path / "pendulum", env="Pendulum-v1")
    obs = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)
    assert np.array_equal(back.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
    assert model.trainer is not None
    assert tiny.same_bits(back.ensemble, model.ensemble)  # the optimiser too
    assert back.config.learner == model.config.learner
    assert back.evaluate(2).returns == model.evaluate(2).returns
    alone = SAC.load(tmp_path / "pendulum.safetensors")
    assert np.array_equal(alone.predict(obs[0], deterministic=True)[0], model.predict(obs[0], deterministic=True)[0])
    with pytest.raises(SunriseError, match="no environment to learn in"):
        alone.learn(10, progress_bar=False)
    with pytest.raises(SunriseError, match="the environment's observations are"):
        alone.set_env("MountainCarContinuous-v0")
    wide = gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(-10), np.float32(10))
    with pytest.raises(SunriseError, match="the environment's actions are"):
        alone.set_env(wide)
    assert back.num_timesteps == 60
    back.learn(40, progress_bar=False, reset_num_timesteps=False)  # and it can go on learning
    assert back.num_timesteps == 100


def test_a_model_and_a_run_of_an_older_version_are_read_under_todays_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written by a version in which `tau` was `how_far`, and a setting `colour` was there."""

    def written(config: Any) -> dict[str, Any]:
        names = {"tau": "how_far"}
        return {names.get(name, name): value for name, value in flatten_config(config).items()} | {"colour": "blue"}

    with monkeypatch.context() as older:
        for writer in ("agent", "training"):
            older.setattr(f"sunrise.agents.{writer}.flatten_config", written)
        model = make(tau=0.25, run_dir=str(tmp_path / "run"))
        model.learn(25, progress_bar=False)
        model.save(tmp_path / "old")
    ways: list[Callable[[], SAC]] = [
        lambda: SAC.load(tmp_path / "old"),
        lambda: SAC.resume(tmp_path / "run", env="Pendulum-v1"),
    ]
    for read in ways:
        with pytest.raises(SunriseError, match=r"colour|how_far"):
            read()
        with monkeypatch.context() as now:
            now.setitem(migrations.RENAMED, "how_far", "tau")
            now.setattr(migrations, "REMOVED", {"colour"})
            assert read().config.learner.tau == 0.25


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("text", b"not a model"), ("pickle", b"\x80\x04cos\nsystem\n(S'true'\ntR.")):
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        with pytest.raises(SunriseError, match="not a file of ours"):
            SAC.load(path)
    with pytest.raises(SunriseError, match="not a file of ours"):
        SAC.load(tmp_path / "missing")


def test_an_observation_in_parts_is_learned_from() -> None:
    model = SAC("MultiInputPolicy", "toy/Pair-v0", **{**TINY, "seed": 1}).learn(60, progress_bar=False)
    obs = model.observation_space.sample()
    assert model.predict(obs, deterministic=True)[0].shape == (1,)
    batch = {name: np.stack([part] * 4) for name, part in obs.items()}
    assert model.predict(batch, deterministic=True)[0].shape == (4, 1)
    assert model.trainer is not None
    assert set(model.trainer.replay.batch.obs) == {"goal", "noise"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_environments_side_by_side_are_learned_from(vectorization: str) -> None:
    model = learned(90, num_envs=3, vectorization=vectorization, gradient_steps=-1)
    assert model.num_timesteps == 90
    assert model.trainer is not None
    assert model.trainer.updates == 72  # at 21, 24, ..., 90 timesteps, three each
    assert model.env is not None
    model.env.close()


def test_an_environment_object_and_a_vector_of_them_are_taken() -> None:
    assert learned(env=gym.make("Pendulum-v1"), steps=30).num_timesteps == 30
    vector = SyncVectorEnv([lambda: gym.make("Pendulum-v1")] * 2)
    assert make(env=vector).learn(30, progress_bar=False).num_timesteps == 30


def test_gradient_steps_and_train_freq_decide_how_many_updates_there_are() -> None:
    model = learned(60, gradient_steps=3, train_freq=10, learning_starts=20)
    assert model.trainer is not None
    assert model.trainer.updates == 4 * 3  # rounds after 30, 40, 50 and 60 steps


def test_a_callback_can_stop_the_training() -> None:
    seen: list[int] = []

    def callback(scope: dict[str, Any], _: dict[str, Any]) -> bool:
        seen.append(scope["self"].num_timesteps)
        return len(seen) < 7

    model = make().learn(60, callback=callback, progress_bar=False)
    assert model.num_timesteps == 7
    assert seen == list(range(1, 8))


def test_learning_rate_may_be_a_schedule() -> None:
    still = learned(learning_rate=lambda left: 1e-3 if left == 1.0 else 0.0)  # the rate of the start is never used
    start = make()
    assert still.trainer is not None
    assert still.config.learner.learning_rate == 1e-3
    assert tiny.same_bits(still.ensemble.members.actor, start.ensemble.members.actor)
    seen: list[float] = []

    def falling(left: float) -> float:
        seen.append(left)
        return 1e-3 * left

    learned(learning_rate=falling)
    assert seen[0] == 1.0
    assert seen[1:] == pytest.approx([1 - t / 60 for t in range(21, 61)])


def test_learning_twice_goes_on_with_what_was_learned() -> None:
    model = learned(40)
    model.learn(30, progress_bar=False)
    assert model.num_timesteps == 30
    model.learn(50, progress_bar=False, reset_num_timesteps=False)  # on top, as in Stable-Baselines3
    assert model.num_timesteps == 80
    assert model.trainer is not None
    assert len(model.trainer.replay) == 120


def test_every_setting_is_a_keyword_with_a_default() -> None:
    parameters = inspect.signature(SAC).parameters
    assert parameters["ensemble_size"].default == 5
    assert parameters["weight_temperature"].default == "auto"
    assert {"learning_rate", "buffer_size", "tau", "gamma", "train_freq", "ent_coef", "seed"} <= set(parameters)
    with pytest.raises(SunriseError, match=r"no setting 'ensemble_sise'. Did you mean ensemble_size"):
        make(ensemble_sise=3)


def test_the_authors_preset_flips_every_switch_and_still_yields_to_keywords() -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", preset="authors", batch_size=8, net_arch=(8,))
    config = model.config
    assert (config.training.truncation, config.training.warmup) == ("terminal", "ensemble")
    assert (config.training.train_freq, config.training.gradient_steps) == (1000, 1000)
    assert (config.run.eval_steps, config.run.eval_freq) == (1000, 1000)
    learner = config.learner
    assert (learner.init, learner.target_init, learner.loss_normaliser) == ("rlkit", "random", "mask")
    assert (learner.weight_action, learner.alpha_in_target) == ("fresh", "after")
    assert config.training.batch_size == 8
    members = model.ensemble.members
    assert not tiny.same_bits(members.targets, members.critics)
    np.testing.assert_array_equal(members.actor.layers[0].bias, np.float32(0.1))
    assert np.abs(members.actor.layers[-1].weight).max() <= 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ensemble_size": 0}, "ensemble_size is 0, but must be at least 1"),
        ({"bootstrap_prob": 1.5}, "bootstrap_prob is 1.5, but must be between 0 and 1"),
        ({"bootstrap_prob": 0.0}, "bootstrap_prob is 0"),
        ({"buffer_size": "many"}, "buffer_size is 'many', but must be of type int"),
        ({"warmup": "uniforn"}, r"warmup is 'uniforn', but must be one of uniform, ensemble. Did you mean uniform"),
        ({"learning_rate": -1e-3}, "learning_rate is -0.001"),
        ({"gamma": 1.1}, "gamma is 1.1"),
        ({"tau": float("nan")}, "tau is nan"),
        ({"ent_coef": "much"}, "ent_coef is 'much'"),
        ({"weight_temperature": "hot"}, "weight_temperature is 'hot', but must be a number or `auto`"),
        ({"buffer_size": 3, "n_step": 3}, "buffer_size is 3, but must be more than 3"),
        ({"gradient_steps": 0}, "gradient_steps is 0"),
        ({"net_arch": (16, 0)}, "net_arch"),
        ({"net_arch": []}, "net_arch is "),
        ({"target_entropy": "low"}, "target_entropy is 'low'"),
        ({"prioritised": "no"}, "prioritised is 'no', but must be of type bool"),
        ({"run_dir": __file__}, "the run's folder .* cannot be made"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"device": "abacus"}, "device is 'abacus', but must be auto or one of cpu"),
        ({"buffer_size": 10**13}, "needs .* GB of memory"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SunriseError, match=message):
        make(**settings).learn(10, progress_bar=False)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("Pendulun-v1", "no environment 'Pendulun-v1'. Did you mean Pendulum-v1"),
        ("CartPole-v1", "SAC needs continuous actions"),
        ("Taxi-v4", "SAC needs continuous actions|must be a Box"),
        ("Blackjack-v1", "SAC needs continuous actions|must be a Box"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(env: str, message: str) -> None:
    with pytest.raises(SunriseError, match=message):
        make(env=env)


def test_observations_of_other_kinds_are_refused() -> None:
    class Odd(toys.Counter):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gym.spaces.Text(3)  # type: ignore[assignment]

    with pytest.raises(SunriseError, match="must be a Box, Discrete, MultiDiscrete, MultiBinary or a Dict of such"):
        make(env=Odd())


def test_a_loss_that_is_not_finite_stops_with_a_saved_state(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = make(learning_rate=1e30, run_dir=str(run))
    with pytest.raises(
        NonFiniteError,
        match=r"of member \d in update 1 is not finite .* at timestep 21.*state before it is saved in .*fault",
    ):
        model.learn(60, progress_bar=False)
    assert json.loads((run / "status.json").read_text())["status"] == "failed"
    saved = SAC.load(run / "fault" / "agents.safetensors")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(saved.ensemble))
    assert isinstance(saved.ensemble, Ensemble)


def test_auto_weighting_is_resolved_in_the_configuration() -> None:
    assert make().config.ensemble.weighting == "confidence"
    assert make(ensemble_size=1, net_arch=[8, 8]).config.ensemble.weighting == "none"


def test_numbers_of_numpy_and_forms_of_stable_baselines3_are_taken() -> None:
    model = make(ensemble_size=np.int64(2), learning_rate=np.float32(1e-3), train_freq=(4, "step"), ent_coef=0.0)
    assert (model.config.ensemble.ensemble_size, model.config.training.train_freq) == (2, 4)
    assert make(preset="ours").config == make().config


class Plain(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper as people write them: it does not record its arguments."""


def test_a_wrapped_environment_is_learned_from_and_evaluated_in_a_given_one(caplog: pytest.LogCaptureFixture) -> None:
    model = make(env=Plain(gym.make("Pendulum-v1")), eval_freq=20)
    model.learn(30, progress_bar=False)
    assert "No evaluation while training" in caplog.text
    with pytest.raises(SunriseError, match="second environment"):
        model.evaluate(1)
    watched = make(env=Plain(gym.make("Pendulum-v1")), eval_freq=20, eval_env="Pendulum-v1", eval_episodes=1)
    watched.learn(30, progress_bar=False)
    assert watched.trainer is not None
    assert watched.trainer.evaluated_at == 30  # the end of a training is always evaluated
    assert len(watched.evaluate(2).returns) == 2


def test_learning_twice_in_one_folder_goes_on_in_it(tmp_path: Path) -> None:
    model = make(run_dir=str(tmp_path / "run"), log_freq=10)
    model.learn(30, progress_bar=False, log_interval=None)
    model.learn(30, progress_bar=False, log_interval=None, reset_num_timesteps=False)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["timesteps"] for row in rows] == [10, 20, 30, 40, 50, 60]
    assert all(row["time/steps_per_s"] > 0 for row in rows)
    assert json.loads((tmp_path / "run" / "status.json").read_text())["timesteps"] == 60


def test_a_start_that_is_refused_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(SunriseError, match="of memory"):
        make(buffer_size=10**13, run_dir=str(tmp_path / "run")).learn(10)
    assert not (tmp_path / "run").exists()


class Breaks(toys.Counter):
    """Its reset fails after a while."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if len(self.seeds) == 3:
            raise RuntimeError("no new episode")
        return super().reset(seed=seed, options=options)


def test_an_environment_that_fails_in_reset_or_evaluation_is_named() -> None:
    with pytest.raises(SunriseError, match="raised RuntimeError in the reset at timestep 29: no new episode"):
        make(env=Breaks(10)).learn(60, progress_bar=False)
    watched = make(env="toy/Counter-v0", eval_env=Breaks(10))
    with pytest.raises(SunriseError, match="raised RuntimeError in an evaluation: no new episode"):
        watched.evaluate(10)
    with pytest.raises(SunriseError, match="episodes is 0"):
        watched.evaluate(0)


def test_an_observation_or_action_that_does_not_fit_is_refused(model: SAC) -> None:
    with pytest.raises(SunriseError, match=r"shape \(4,\)"):
        model.predict(np.zeros(4), deterministic=True)
    with pytest.raises(SunriseError, match="an action of shape"):
        model.uncertainty(np.zeros((2, 3)), np.zeros((2, 5)))
    parts = SAC("MultiInputPolicy", "toy/Pair-v0", **TINY)
    with pytest.raises(SunriseError, match="must have the parts goal, noise"):
        parts.predict({"goal": np.zeros(1)}, deterministic=True)
    with pytest.raises(SunriseError, match="one or a batch of"):
        parts.predict({"goal": np.zeros((2, 1)), "noise": np.zeros((3, 2, 2))}, deterministic=True)


def test_the_public_names_are_there() -> None:
    assert set(sunrise.__all__) >= {"SAC", "SunriseError", "NonFiniteError", "__version__"}
