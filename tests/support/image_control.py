"""A tiny control task seen in pictures: push a dot to the middle."""

from typing import Any

import gymnasium as gym
import numpy as np


class Dot(gym.Env[np.ndarray, np.ndarray]):
    """A white dot on black, moved by the action; a step is worth 1 minus twice its distance from the middle."""

    def __init__(self, size: int = 20, length: int = 12, layout: str = "stack") -> None:
        self.size, self.length, self.layout = size, length, layout
        shapes = {"stack": (2, size, size, 1), "last": (size, size, 3), "first": (3, size, size), "grey": (size, size)}
        shape = shapes[layout]
        self.frames = np.zeros((2, size, size, 1), np.uint8)
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def _picture(self) -> np.ndarray:
        picture = np.zeros((self.size, self.size), np.uint8)
        left = round((self.place + 1) / 2 * (self.size - 8)) + 2
        picture[self.size // 2 - 2 : self.size // 2 + 2, left : left + 4] = 255
        if self.layout == "first":
            return np.stack([picture, 255 - picture, picture // 2])
        if self.layout == "grey":
            return picture
        if self.layout == "last":
            return np.stack([picture] * 3, -1)
        self.frames = np.stack([self.frames[1], picture[..., None]]) if self.t else np.stack([picture[..., None]] * 2)
        return self.frames

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.place = 0, float(self.np_random.uniform(-1, 1))
        return self._picture(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.place = float(np.clip(self.place + 0.5 * float(action[0]), -1, 1))
        return self._picture(), 1 - 2 * abs(self.place), False, self.t >= self.length, {}
