"""Transitions as they are stored: true last observations, termination against truncation, seeds, rescaling."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from sunrise.envs.make import as_vector, rescale, unscale
from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.randomness import episode_seed
from sunrise.run.collect import Collector
from tests.support.toys import Counter

MODES = [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def collector(env: Any, truncation: Any = "bootstrap") -> Collector:
    return Collector(env, 5, 3, np.random.default_rng(0), 0.9, truncation)


def gather(source: Collector, steps: int) -> list[dict[str, Any]]:
    """Every transition as a plain dict."""
    kept = []
    for t in range(steps):
        action = np.zeros((source.count, 1), np.float32)
        got = source.step(action, action, t)
        for row, env in enumerate(got.env):
            fields = {name: np.asarray(value)[row] for name, value in got.batch._asdict().items()}
            kept.append({"env": int(env), "ended": bool(got.ended[row]), **fields})
    return kept


def counters(mode: AutoresetMode, lengths: tuple[int, ...], ends: str) -> SyncVectorEnv:
    return SyncVectorEnv([partial(Counter, n, ends) for n in lengths], autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_every_transition_is_true_in_every_autoreset_mode(mode: AutoresetMode, ends: str) -> None:
    """Three environments of different lengths, against the arithmetic of the toy."""
    transitions = gather(collector(counters(mode, (2, 3, 5), ends)), 30)
    assert len(transitions) == 90  # no step is spent on a reset
    for env, length in enumerate((2, 3, 5)):
        own = [t for t in transitions if t["env"] == env]
        for step, t in enumerate(own):
            now, episode = step % length, step // length
            last = now == length - 1
            seed = episode_seed(5, "episodes", env, episode) % 1000
            np.testing.assert_array_equal(t["obs"], [now, seed])
            np.testing.assert_array_equal(t["next_obs"], [now + 1, seed])  # the true last one, not the next episode's
            assert t["reward"] == now + 1
            assert t["ended"] == last
            assert t["discount"] == pytest.approx(0.0 if last and ends == "terminated" else 0.9)


def test_a_truncated_episode_may_be_counted_as_terminal_as_the_authors_do() -> None:
    transitions = gather(collector(counters(AutoresetMode.DISABLED, (3,), "truncated"), "terminal"), 6)
    assert [float(t["discount"]) for t in transitions] == pytest.approx([0.9, 0.9, 0, 0.9, 0.9, 0])


class Foreign(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """A vector environment that is not Gymnasium's: it resets itself and takes no masks."""

    def __init__(self, mode: AutoresetMode) -> None:
        self.inner = counters(mode, (2, 3), "truncated")
        self.num_envs, self.metadata = 2, {"autoreset_mode": mode}
        self.single_observation_space = self.inner.single_observation_space
        self.single_action_space = self.inner.single_action_space

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        assert options is None
        return self.inner.reset(seed=seed)

    def step(self, actions: np.ndarray) -> Any:
        return self.inner.step(actions)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_foreign_vector_environment_is_followed_as_its_mode_says(mode: AutoresetMode) -> None:
    transitions = gather(collector(Foreign(mode)), 24)
    for env, length in enumerate((2, 3)):
        own = [t for t in transitions if t["env"] == env]
        steps = 24 * length // (length + 1) if mode == AutoresetMode.NEXT_STEP else 24
        assert len(own) == steps  # the step that only resets is no transition
        assert [int(t["obs"][0]) for t in own] == [i % length for i in range(steps)]
        assert [int(t["next_obs"][0]) for t in own] == [i % length + 1 for i in range(steps)]


def test_every_episode_is_reset_with_the_seed_of_run_environment_and_episode() -> None:
    envs = [Counter(3), Counter(2)]
    vector = SyncVectorEnv([partial(lambda e: e, env) for env in envs], autoreset_mode=AutoresetMode.DISABLED)
    gather(collector(vector), 6)
    assert envs[0].seeds == [episode_seed(5, "episodes", 0, i) for i in range(3)]
    assert envs[1].seeds == [episode_seed(5, "episodes", 1, i) for i in range(4)]
    streams = ("episodes", "evaluation")
    seeds = {episode_seed(s, n, e, i) for s in range(3) for n in streams for e in range(3) for i in range(9)}
    assert len(seeds) == 3 * 2 * 3 * 9


def test_one_random_member_acts_for_a_whole_episode() -> None:
    source = Collector(
        counters(AutoresetMode.DISABLED, (4, 4), "terminated"), 5, 3, np.random.default_rng(0), 0.9, "bootstrap"
    )
    acting = []
    for t in range(400):
        acting.append(source.acting.copy())
        source.step(np.zeros((2, 1), np.float32), np.zeros((2, 1), np.float32), t)
    by_episode = np.stack(acting).reshape(100, 4, 2)
    assert (by_episode == by_episode[:, :1]).all()
    np.testing.assert_allclose(np.bincount(by_episode[:, 0].ravel(), minlength=3) / 200, 1 / 3, atol=0.1)


def test_finished_episodes_are_reported_with_their_return_and_length() -> None:
    source = collector(counters(AutoresetMode.DISABLED, (3, 4), "terminated"))
    episodes = []
    for t in range(12):
        episodes += source.step(np.zeros((2, 1), np.float32), np.zeros((2, 1), np.float32), t).episodes
    assert sorted(episodes) == [(0, 6.0, 3)] * 4 + [(1, 10.0, 4)] * 3


@pytest.mark.parametrize("bad", ["observation", "reward"])
def test_a_value_that_is_not_finite_stops_with_its_name_and_step(bad: str) -> None:
    source = collector(as_vector(Counter(200, bad=bad)))
    with pytest.raises(NonFiniteError, match=f"{bad} is not finite .* at timestep 49"):
        gather(source, 60)


def test_an_environment_that_raises_is_named_with_the_step() -> None:
    source = collector(as_vector(Counter(200, fail_at=8)))
    with pytest.raises(EnvironmentFailedError, match="RuntimeError at timestep 7: the simulator fell over"):
        gather(source, 10)


def test_an_environment_that_reuses_its_array_does_not_change_what_is_stored() -> None:
    shared = SyncVectorEnv([partial(Counter, 9)] * 2, copy=False, autoreset_mode=AutoresetMode.DISABLED)
    for t in gather(collector(shared), 8):
        assert t["next_obs"][0] == t["obs"][0] + 1


def test_actions_are_rescaled_to_the_bounds_and_back() -> None:
    box = gym.spaces.Box(np.asarray([-2, 0], np.float32), np.asarray([4, 10], np.float32))
    unit = np.asarray([[-1, -1], [0, 0], [1, 1], [0.5, -0.5]], np.float32)
    np.testing.assert_allclose(rescale(unit, box), np.asarray([[-2, 0], [1, 5], [4, 10], [2.5, 2.5]]))
    np.testing.assert_allclose(unscale(rescale(unit, box), box), unit, atol=1e-6)
    np.testing.assert_allclose(rescale(np.asarray([[3, -3]], np.float32), box), [[4, 0]])  # clipped
