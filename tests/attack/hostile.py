"""Environments nobody would want, and programs that use them."""

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from tests.support.toys import Counter


class Odd(Counter):
    """Gives something else at its `at`-th step."""

    def __init__(self, length: int = 99, at: int = 7, **instead: Any) -> None:
        super().__init__(length)
        self.at, self.instead = at, instead

    def step(self, action: np.ndarray) -> Any:
        obs, reward, *rest = super().step(action)
        if self.total_steps != self.at:
            return obs, reward, *rest
        return self.instead.get("answer", (self.instead.get("obs", obs), self.instead.get("reward", reward), *rest))


class Unsure(Counter):
    """Leaves its space after three steps, and does not say whether it is over."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.observation_space = gym.spaces.Box(0, np.asarray([3, np.inf], np.float32), (2,), np.float32)

    def step(self, action: np.ndarray) -> Any:
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, None if self.length > 3 else False, info


class Reluctant(Counter):
    """Does not begin the first few times it is asked to."""

    def __init__(self, length: int = 10, refusals: int = 0, fail_at: int = 0) -> None:
        super().__init__(length, fail_at=fail_at)
        self.refusals = refusals

    def reset(self, **given: Any) -> Any:
        self.refusals -= 1
        if self.refusals >= 0:
            raise RuntimeError("not now")
        return super().reset(**given)


class Hangs(Counter):
    """Does not come back from its `at`-th step: Python goes on counting the time, or nothing of Python runs."""

    def __init__(self, length: int = 99, at: int = 0, how: str = "sleeps") -> None:
        super().__init__(length)
        self.at, self.how = at, how

    def step(self, action: np.ndarray) -> Any:
        if self.total_steps + 1 == self.at:
            while self.how == "sleeps":
                time.sleep(1000)
            # As a simulator in an endless loop: a wait for no signal at all, which none ends.
            ctypes.CDLL(None).sigwait(ctypes.create_string_buffer(128), ctypes.byref(ctypes.c_int()))
        return super().step(action)


def alive(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(what: Callable[[], Any], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(what())


PARENT = """
from functools import partial
import threading
import numpy as np
from sunrise.envs.vector import AsyncEnvs
from tests.attack.hostile import Hangs

if __name__ == "__main__":
    envs = AsyncEnvs([partial(Hangs, at=1)] * 2)
    envs.reset(seed=1)
    print(*(process.pid for process in envs.processes), flush=True)
    envs.step(np.zeros((2, 1), np.float32))
"""

HANGS_HERE = """
import sys
from functools import partial
import gymnasium as gym
from sunrise import signals
from sunrise.cli import main
from tests.attack.hostile import Hangs

signals.GRACE, signals.PATIENCE = 1.0, 1.0
gym.register("attack/Hangs-v0", partial(Hangs, at=31, how=sys.argv[1]))
main(["train", "sac", "--env-id", "attack/Hangs-v0", "--env-timeout", "1", "--save-freq", "20", "--eval-freq", "0",
      "--ensemble-size", "2", "--net-arch", "8", "8", "--batch-size", "8", "--learning-starts", "100",
      "--run-dir", sys.argv[2]])
"""
