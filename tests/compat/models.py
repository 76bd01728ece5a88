"""Tiny models for the tests of compatibility: all of one shape, so that one compiled program serves them all."""

from typing import Any

import gymnasium as gym
import numpy as np

from sunrise import DQN, SAC

LENGTH = 5
SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [8]},
    "batch_size": 4,
    "buffer_size": 500,
    "learning_starts": 10,
    "ensemble_size": 2,
    "eval_freq": 0,
    "seed": 3,
}


class Walk(gym.Env[np.ndarray, Any]):
    """Observations are (step, 0, 0); the reward is the step; five steps, then a termination or a time limit."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, ends: str = "truncated", finite: bool = False, render_mode: str | None = None) -> None:
        self.observation_space = gym.spaces.Box(-1, 100, (3,), np.float32)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(2) if finite else gym.spaces.Box(-1, 1, (1,))
        self.ends, self.render_mode = ends, render_mode

    def _obs(self) -> np.ndarray:
        return np.asarray([self.t, 0, 0], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.t < LENGTH, "stepped after its end"
        self.t += 1
        over = self.t == LENGTH
        return (
            self._obs(),
            float(self.t),
            over and self.ends != "truncated",
            over and self.ends == "truncated",
            {"lap": self.t},
        )

    def render(self) -> Any:
        return np.zeros((4, 4, 3), np.uint8)


def sac(env: Any = None, **changes: Any) -> SAC:
    return SAC("MlpPolicy", Walk() if env is None else env, **(SMALL | changes))


def dqn(env: Any = None, **changes: Any) -> DQN:
    return DQN("MlpPolicy", Walk(finite=True) if env is None else env, **(SMALL | changes))
