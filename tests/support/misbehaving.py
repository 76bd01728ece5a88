"""Environments that go wrong, by ids like `tests.support.misbehaving:Raises-v0`."""

from typing import Any

import gymnasium as gym
import numpy as np

from tests.support.toys import Counter


class Raises(Counter):
    """It falls over in the middle of an episode."""

    def __init__(self) -> None:
        super().__init__(fail_at=40)


class Eats(Counter):
    """It takes a hundred megabytes at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.eaten: list[np.ndarray] = []

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.eaten.append(np.ones(12_500_000))
        return super().step(action)


for name, entry in (("Raises-v0", Raises), ("Eats-v0", Eats)):
    if name not in gym.registry:
        gym.register(name, entry)  # type: ignore[arg-type]
