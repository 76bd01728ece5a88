"""A tiny image task of our own: go to the bright square."""

from typing import Any

import gymnasium as gym
import numpy as np


class Lights(gym.Env[np.ndarray, int]):
    """One of `choices` quarters of a dark picture is bright; the action that names it is worth 1, any other nothing."""

    choices = 4

    def __init__(self, size: int = 84, length: int = 10) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (1, size, size), np.uint8)
        self.action_space = gym.spaces.Discrete(self.choices)  # type: ignore[assignment]
        self.size, self.length = size, length

    def _picture(self) -> np.ndarray:
        self.bright = int(self.np_random.integers(self.choices))
        picture = np.zeros((1, self.size, self.size), np.uint8)
        half = self.size // 2
        row, column = divmod(self.bright, 2)
        picture[0, row * half : (row + 1) * half, column * half : (column + 1) * half] = 255
        return picture

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = float(action == self.bright)
        self.t += 1
        return self._picture(), reward, self.t >= self.length, False, {}
