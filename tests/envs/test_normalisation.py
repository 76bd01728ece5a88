"""Normalised observations and rewards, against Stable-Baselines3's VecNormalize and against plain NumPy."""

from functools import partial
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise import Random
from sunrise.config.learners import RandomSettings
from sunrise.learners.normalised import normalised
from sunrise.learners.random import random
from sunrise.run.reward_scale import RewardScale
from sunrise.types import Batch, Collected, Sample

LENGTHS, GAMMA, STEPS = (3, 5), 0.9, 20
SB3: dict[str, Any] = {
    "count": 42.0001,
    "mean": [1.4523774943392993, 0.849204328828702],
    "variance": [1.5810693985324493, 0.9422366571305779],
    "reward_variance": 3.4571259514310984,
    "returns": [0.7625, 0.0],
    "three": 1.6134802103042603,
    "seen": [0.43551769852638245, 0.15534915030002594],
}
"""What VecNormalize(gamma=0.9) of Stable-Baselines3 2.9.2 had after a reset and 20 steps of two ramps, and what it made
of a reward of 3 and of the observation (2, 1)."""


class Ramp(gym.Env[np.ndarray, np.ndarray]):
    """Observations and rewards that depend on nothing but the step and the length of the episode."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, length: int) -> None:
        self.length = length

    def _obs(self) -> np.ndarray:
        return np.asarray([self.t, self.t**2 / self.length], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.t = 0
        return self._obs(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return self._obs(), self.t - 1.5 * self.length / 4, self.t >= self.length, False, {}


def trained(**settings: Any) -> Random:
    envs = gym.vector.SyncVectorEnv([partial(Ramp, n) for n in LENGTHS])
    model = Random("MlpPolicy", envs, eval_freq=0, gamma=GAMMA, normalise_rewards=True, **settings)
    return model.learn(2 * STEPS, progress_bar=False, log_interval=None)


def sample(reward: list[float]) -> Sample:
    rows = np.asarray(reward, np.float32)
    return Sample(Batch(rows, rows, rows, rows, rows), rows, rows)


def test_rewards_are_scaled_as_stable_baselines_scales_them() -> None:
    """Through the whole loop, whose replay keeps them as they came."""
    model = trained()
    assert model.trainer is not None
    scale = model.trainer.reward_scale
    assert scale is not None
    np.testing.assert_allclose(scale.moments.variance[0], SB3["reward_variance"], rtol=1e-12)
    np.testing.assert_allclose(scale.moments.total, 2 * STEPS, rtol=1e-5)
    ended = model.trainer.collector.length == 0
    np.testing.assert_allclose(np.where(ended, 0, scale.returns), SB3["returns"], rtol=1e-12)
    got = scale.scaled(sample([3.0, -300.0, 300.0])).batch.reward
    np.testing.assert_allclose(got, [SB3["three"], -10, 10], rtol=1e-6)
    kept = model.trainer.replay.state().rings["transitions"].arrays["reward"][: 2 * STEPS]
    assert kept.min() == 1 - 1.5 * 5 / 4
    assert model.trainer.row()["rollout/reward_deviation"] == pytest.approx(SB3["reward_variance"] ** 0.5)


def test_updates_learn_from_scaled_rewards() -> None:
    """What reaches an update is what replay has, divided by the deviation at that moment."""
    model = trained(learning_starts=2 * STEPS, batch_size=64, ensemble_size=1)
    trainer = model.trainer
    assert trainer is not None
    assert trainer.reward_scale is not None
    seen: list[tuple[float, Any]] = []

    def update(sample: Any, key: Any) -> Any:
        seen.append((trainer.reward_scale.deviation, sample.batch.reward))  # type: ignore[union-attr]
        return itself(sample, key)

    itself = trainer.live.update
    trainer.live.update = update  # type: ignore[method-assign]
    model.learn(10, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    raw = {t - 1.5 * n / 4 for n in LENGTHS for t in range(1, n + 1)}
    assert len(seen) == 5
    assert len({deviation for deviation, _ in seen}) == 5
    for deviation, reward in seen:
        nearest = [min(abs(r * deviation - one) for one in raw) for r in reward.tolist()]
        assert max(nearest) < 1e-5


def test_noise_is_part_of_the_rewards_that_are_scaled() -> None:
    model = trained(reward_noise=20.0)
    assert model.trainer is not None
    assert model.trainer.reward_scale is not None
    assert model.trainer.reward_scale.deviation > 10


def test_returns_are_those_of_episodes_also_where_one_was_lost() -> None:
    """Three environments against a plain loop; the second one fails in the third step."""
    rng, scale = np.random.default_rng(0), RewardScale(3, GAMMA)
    returns, seen = np.zeros(3), []
    for t in range(12):
        fresh = np.asarray([t % 4 == 0, t in (0, 3), t % 5 == 0])
        env = np.asarray([0, 2] if t == 2 else [0, 1, 2])
        reward = rng.standard_normal(len(env)).astype(np.float32)
        for e, r in zip(env, reward, strict=True):
            returns[e] = r + (0 if fresh[e] else GAMMA * returns[e])
            seen.append(returns[e])
        scale.note(Collected(sample(reward.tolist()).batch, env, np.zeros(len(env), bool), []), fresh)
    assert scale.deviation == pytest.approx(np.std(seen), rel=1e-4)
    nobody = np.zeros(0, int)
    scale.note(Collected(sample([]).batch, nobody, np.zeros(0, bool), []), np.zeros(3, bool))
    assert scale.deviation == pytest.approx(np.std(seen), rel=1e-4)


def test_observations_are_normalised_as_stable_baselines_normalises_them() -> None:
    """By statistics of what was acted on, a first observation of 0 that counts for a ten thousandth included."""
    seeing: list[Any] = []
    inner = random(2, 1, RandomSettings(), ())

    def judge(state: Any, obs: Any, action: Any, key: Any) -> Any:
        seeing.append(obs)
        return jnp.zeros((1, 1))

    learner = normalised(inner._replace(judge=judge), 2)
    assert learner.observe is not None
    state, envs = learner.init(jax.random.key(0)), [Ramp(n) for n in LENGTHS]
    obs = [env.reset()[0] for env in envs]
    for _ in range(STEPS + 1):
        state = learner.observe(state, jnp.stack(obs))
        steps = [env.step(np.zeros(1)) for env in envs]
        obs = [env.reset()[0] if step[2] else step[0] for env, step in zip(envs, steps, strict=True)]
    np.testing.assert_allclose(state.moments.total, SB3["count"], rtol=1e-6)
    np.testing.assert_allclose(state.moments.mean, SB3["mean"], rtol=1e-5)
    np.testing.assert_allclose(state.moments.variance, SB3["variance"], rtol=1e-5)
    learner.judge(state, jnp.asarray([[2.0, 1.0]]), jnp.zeros((1, 1)), None)
    np.testing.assert_allclose(seeing[0][0], SB3["seen"], rtol=1e-5)
