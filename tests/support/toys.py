"""Environments whose every number is known beforehand."""

from typing import Any

import gymnasium as gym
import numpy as np


class Counter(gym.Env[np.ndarray, np.ndarray]):
    """The observation is (step, seed of the episode); the episode ends after `length` steps in the way asked for."""

    def __init__(self, length: int = 4, ends: str = "terminated", fail_at: int = 0, bad: str = "") -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gym.spaces.Box(np.float32(-2), np.float32(4), (1,), np.float32)
        self.length, self.ends, self.fail_at, self.bad = length, ends, fail_at, bad
        self.seeds: list[int | None] = []
        self.actions: list[float] = []
        self.total_steps = 0

    def _obs(self) -> np.ndarray:
        return np.asarray([self.t, (self.seeds[-1] or 0) % 1000], np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.t = 0
        return self._obs(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.total_steps += 1
        self.actions.append(float(action[0]))
        if self.fail_at == self.total_steps:
            raise RuntimeError("the simulator fell over")
        over = self.t >= self.length
        obs, reward = self._obs(), float(self.t)
        if self.bad and self.total_steps == 50:
            obs, reward = (obs * np.nan, reward) if self.bad == "observation" else (obs, float("inf"))
        return obs, reward, over and self.ends == "terminated", over and self.ends == "truncated", {}


class Pair(gym.Env[Any, np.ndarray]):
    """Observations in two parts; the reward is higher the nearer the action is to the first part."""

    observation_space: gym.spaces.Dict[Any] = gym.spaces.Dict(
        {
            "goal": gym.spaces.Box(-1, 1, (1,), np.float32),
            "noise": gym.spaces.Box(-1, 1, (2, 2), np.float32),
        }
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def _obs(self) -> dict[str, np.ndarray]:
        return {
            "goal": self.np_random.uniform(-1, 1, 1).astype(np.float32),
            "noise": self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.now = 0, self._obs()
        return self.now, {}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        reward = -float(abs(action[0] - self.now["goal"][0]))
        self.t, self.now = self.t + 1, self._obs()
        return self.now, reward, False, self.t >= 10, {}


def register() -> None:
    """Make the toys known to Gymnasium."""
    for name, entry in (("toy/Counter-v0", Counter), ("toy/Pair-v0", Pair)):
        if name not in gym.registry:
            gym.register(name, entry)  # type: ignore[arg-type]
