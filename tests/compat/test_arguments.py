"""Stable-Baselines3's keywords mean what they mean there, or are refused by a sentence that names ours."""

from functools import partial
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise import DQN, SAC, TD3, SunriseError
from sunrise.config.algorithms import algorithm
from sunrise.config.settings import flatten_config, with_settings
from sunrise.learners.normalised import normalised
from sunrise.run.fitting import random_chance
from tests.support import tiny, toys

toys.register()


class Tanh:
    """PyTorch's class, as far as it is looked at."""


class HerReplayBuffer:
    """Stable-Baselines3's class, as far as it is looked at."""


class NormalActionNoise:
    """Stable-Baselines3's class, as far as it is looked at."""

    def __init__(self, mean: Any, sigma: Any) -> None:
        self._mu, self._sigma = mean, sigma


class ConstantSchedule:
    """Stable-Baselines3's class, as far as it is looked at."""

    def __call__(self, _: float) -> float:
        return 0.02


def settings(cls: Any, **keywords: Any) -> dict[str, Any]:
    """What a model makes of its keywords; it is made without an environment, so nothing is compiled."""
    return flatten_config(cls("MlpPolicy", None, **keywords).config)


def test_keywords_of_stable_baselines3_become_settings() -> None:
    shapes = {"net_arch": {"pi": [8, 4], "qf": [16]}, "activation_fn": Tanh, "n_critics": 3}
    sac = settings(SAC, train_freq=(2, "episode"), policy_kwargs=shapes, n_steps=3, replay_buffer_class=None)
    assert (sac["train_freq"], sac["train_freq_unit"], sac["n_step"]) == (2, "episode", 3)
    assert (sac["net_arch"], sac["critic_net_arch"], sac["activation"], sac["n_critics"]) == ((8, 4), (16,), "tanh", 3)
    assert settings(SAC, train_freq=(3, "step"))["train_freq"] == 3
    assert settings(SAC, replay_buffer_kwargs={"handle_timeout_termination": False})["truncation"] == "terminal"
    noise = NormalActionNoise(np.zeros(2), 0.3 * np.ones(2))
    assert settings(TD3, action_noise=noise)["action_noise"] == 0.3
    assert settings(TD3, action_noise=None)["action_noise"] == 0.0
    assert settings(TD3)["action_noise"] == 0.1
    assert SAC("MlpPolicy", None, stats_window_size=7).habits.stats_window_size == 7
    constant = SAC("MlpPolicy", None, learning_rate=ConstantSchedule())
    assert (constant.learning_rate, constant.schedule) == (0.02, None)  # a number, which a file can hold


@pytest.mark.parametrize(
    ("cls", "keywords", "ours"),
    [
        (SAC, {"use_sde": True}, "ucb_lambda"),
        (SAC, {"action_noise": NormalActionNoise(np.zeros(1), np.ones(1))}, "ucb_lambda"),
        (SAC, {"target_update_interval": 2}, "tau"),
        (SAC, {"replay_buffer_class": HerReplayBuffer}, "prioritised"),
        (SAC, {"replay_buffer_kwargs": {"n_sampled_goal": 4}}, "n_step"),
        (SAC, {"optimize_memory_usage": True}, "buffer_size"),
        (SAC, {"_init_setup_model": False}, "load"),
        (SAC, {"policy_kwargs": {"features_extractor_class": Tanh}}, "network"),
        (SAC, {"policy_kwargs": {"net_arch": {"pi": [8], "vf": [8]}}}, "qf"),
        (SAC, {"policy_kwargs": {"activation_fn": HerReplayBuffer}}, "Tanh"),
        (SAC, {"train_freq": (1, "epoch")}, "episode"),
        (SAC, {"train_freq": (1, "episode"), "num_envs": 2}, "num_envs"),
        (TD3, {"action_noise": NormalActionNoise(np.ones(1), np.ones(1))}, "mean 0"),
        (DQN, {"policy_kwargs": {"activation_fn": Tanh}}, "ReLU"),
        (DQN, {"stats_window_size": 0}, "above 0"),
    ],
)
def test_what_has_no_equal_is_refused_by_naming_ours(cls: Any, keywords: dict[str, Any], ours: str) -> None:
    with pytest.raises(SunriseError, match=ours):
        cls("MlpPolicy", None, **keywords)


@pytest.mark.parametrize(("interval", "envs", "tau"), [(10, 1, 1.0), (10, 4, 1.0), (3, 8, 1.0), (4, 1, 0.25)])
def test_dqn_moves_its_target_at_the_steps_that_a_plain_loop_says(interval: int, envs: int, tau: float) -> None:
    config = with_settings(
        algorithm("dqn").defaults, {"target_update_interval": interval, "tau": tau, "net_arch": (2,)}
    )
    spaces = gym.spaces.Box(-1, 1, (1,), np.float32), gym.spaces.Discrete(2)
    parts = algorithm("dqn").fit(config, *spaces)
    learner = parts.make_learner(parts.numbers)
    assert learner.elapse is not None
    elapse = jax.jit(learner.elapse)
    state, rng = learner.init(jax.random.key(0)), np.random.default_rng(0)
    target, network, calls = 0.0, 0.0, 0  # of each weight
    state = state._replace(target=jax.tree.map(jnp.zeros_like, state.target))
    for steps in rng.integers(0, 9, 30):
        network += 1
        state = state._replace(online=jax.tree.map(partial(jnp.full_like, fill_value=network), state.online))
        for _ in range(steps):
            calls += 1
            if calls % max(interval // envs, 1) == 0:
                target += tau * (network - target)
        state = elapse(state, np.int32(steps), np.int32(envs))
        for leaf in jax.tree.leaves(state.target):
            np.testing.assert_allclose(leaf, target, rtol=1e-6)


def test_what_goes_by_steps_does_so_in_a_learner_of_normalised_observations() -> None:
    config = with_settings(algorithm("dqn").defaults, {"target_update_interval": 5, "net_arch": (2,)})
    parts = algorithm("dqn").fit(config, gym.spaces.Box(-1, 1, (1,), np.float32), gym.spaces.Discrete(2))
    learner = normalised(parts.make_learner(parts.numbers), 1)
    assert learner.elapse is not None
    state = learner.init(jax.random.key(0))
    network = jax.tree.map(jnp.zeros_like, state.inner.online)
    state = state._replace(inner=state.inner._replace(online=network))
    early, late = (learner.elapse(state, jnp.asarray(steps), jnp.asarray(1)) for steps in (4, 5))
    assert tiny.same_bits(early.inner.target, state.inner.target)
    assert tiny.same_bits(late.inner.target, network)


def test_the_chance_of_a_random_action_falls_in_a_straight_line() -> None:
    changes = {"exploration_fraction": 0.5, "exploration_initial_eps": 0.8, "exploration_final_eps": 0.2}
    learner = with_settings(algorithm("dqn").defaults, changes).learner
    assert [round(random_chance(learner, done), 6) for done in (0, 0.25, 0.5, 1)] == [0.8, 0.5, 0.2, 0.2]
