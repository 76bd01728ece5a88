"""A toy whose observations are in parts: a picture, a vector and two choices."""

from typing import Any

import gymnasium as gym
import numpy as np


class Mixed(gym.Env[Any, Any]):
    """The camera shows one number and the arm another; an action is worth more the nearer it is to their sum."""

    def __init__(self, layout: str = "stack", size: int = 15, finite: bool = True, length: int = 7) -> None:
        shape = {"stack": (2, size, size), "last": (size, size, 3)}[layout]
        self.observation_space: gym.spaces.Dict[Any] = gym.spaces.Dict(
            {
                "arm": gym.spaces.Box(-np.inf, np.inf, (2,), np.float32),
                "camera": gym.spaces.Box(0, 255, shape, np.uint8),
                "mode": gym.spaces.MultiDiscrete([2, 3]),
            }
        )
        self.action_space = gym.spaces.Discrete(3) if finite else gym.spaces.Box(-1, 1, (1,), np.float32)
        self.layout, self.size, self.length = layout, size, length
        self.frames = np.zeros((2, size, size), np.uint8)

    def _obs(self) -> dict[str, np.ndarray]:
        shown, felt = self.np_random.uniform(-0.5, 0.5, 2)
        self.sum = shown + felt
        frame = self.np_random.integers(0, 20, (self.size, self.size), np.uint8)
        frame[:, round((shown + 0.5) * (self.size - 1))] = 255
        self.frames = np.stack([self.frames[1] if self.t else np.zeros_like(frame), frame])
        return {
            "arm": np.asarray([100 * felt + 50, self.t], np.float32),
            "camera": self.frames.copy() if self.layout == "stack" else np.stack([frame] * 3, axis=-1),
            "mode": np.asarray([self.t % 2, self.t % 3]),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        place = float(np.asarray(action).ravel()[0])
        reward = 10 * (1 - abs(self.sum - (place - 1 if isinstance(self.action_space, gym.spaces.Discrete) else place)))
        self.t += 1
        return self._obs(), reward, False, self.t >= self.length, {}


def register() -> None:
    """Make the toys known to Gymnasium."""
    for name, options in (("toy/MixedChoice-v0", {}), ("toy/MixedControl-v0", {"finite": False, "layout": "last"})):
        if name not in gym.registry:
            gym.register(name, Mixed, kwargs=options)  # type: ignore[arg-type]
