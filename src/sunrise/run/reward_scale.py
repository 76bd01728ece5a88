"""Rewards in units of the deviation of returns: what Stable-Baselines3's VecNormalize does to them.

Replay keeps them as they came, and an update sees them scaled by what is known then. What is reported is not scaled.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sunrise.moments import EPS, FIRST_COUNT, Moments
from sunrise.types import Collected, Sample

CLIP = 10.0
"""Rewards of an update are at most so many deviations."""


class RewardScaleState(NamedTuple):
    """What is known of the rewards."""

    returns: Float[np.ndarray, "E"]
    moments: Moments


class RewardScale:
    """The variance of discounted returns so far: G ← γ G + r in each environment, from 0 where an episode begins."""

    def __init__(self, envs: int, gamma: float) -> None:
        self.gamma = gamma
        self.returns: Float[np.ndarray, "E"] = np.zeros(envs)
        self.moments = Moments(np.zeros(1), np.ones(1), np.asarray(FIRST_COUNT))

    @property
    def deviation(self) -> float:
        """What rewards are divided by."""
        return float(np.sqrt(self.moments.variance[0] + EPS))

    def note(self, collected: Collected, fresh: Bool[np.ndarray, "E"]) -> None:
        """Take note of rewards; `fresh` are the environments whose episode began with this step."""
        self.returns[fresh] = 0
        env = collected.env
        if not env.size:
            return
        self.returns[env] = self.gamma * self.returns[env] + collected.batch.reward
        self.moments = self.moments.including(self.returns[env][:, None])

    def scaled(self, sample: Sample) -> Sample:
        """What an update learns from: r / √(Var[G] + ε), or the same of the sum of n rewards."""
        reward = np.clip(sample.batch.reward / self.deviation, -CLIP, CLIP)
        return sample._replace(batch=sample.batch._replace(reward=np.asarray(reward, np.float32)))

    def state(self) -> RewardScaleState:
        return RewardScaleState(self.returns, self.moments)

    def restore(self, state: RewardScaleState) -> None:
        self.returns, self.moments = state.returns.copy(), state.moments
