"""Evaluation: a pure function of the policy, a seed and the index of an episode. It never touches training."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from sunrise.envs.make import AnyEnv
from sunrise.randomness import episode_seed
from sunrise.replay.uniform import as_stored
from sunrise.types import Observation

Policy = Callable[[Observation], np.ndarray]
"""obs[E] -> the environment's action[E], without noise."""


class Evaluation(NamedTuple):
    """The returns of the episodes of one evaluation."""

    returns: list[float]
    lengths: list[int]

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns)) if self.returns else float("nan")

    @property
    def std(self) -> float:
        return float(np.std(self.returns)) if self.returns else float("nan")


def _stack(observations: Sequence[Any]) -> Observation:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(as_stored, observations))


def evaluate_episodes(policy: Policy, envs: Sequence[AnyEnv], episodes: int, seed: int) -> Evaluation:
    """Run `episodes` whole episodes, as many side by side as there are environments.

    Episode j begins with the seed of (seed, j) whatever environment it runs in.
    """
    returns, lengths = np.zeros(episodes), np.zeros(episodes, int)
    for first in range(0, episodes, len(envs)):
        wave = range(first, min(first + len(envs), episodes))
        resets = [envs[j - first].reset(seed=episode_seed(seed, "evaluation", 0, j))[0] for j in wave]
        # Unused rows repeat the first, so that the policy sees one shape and compiles once.
        obs = [*resets, *[resets[0]] * (len(envs) - len(wave))]
        running = set(wave)
        while running:
            actions = policy(_stack(obs))
            for j in sorted(running):
                row = j - first
                obs[row], reward, terminated, truncated, _ = envs[row].step(actions[row])
                returns[j] += float(reward)
                lengths[j] += 1
                if terminated or truncated:
                    running.discard(j)
    return Evaluation(returns.tolist(), lengths.tolist())


def evaluate_steps(policy: Policy, env: AnyEnv, steps: int, seed: int) -> Evaluation:
    """Run for `steps` steps and keep the complete episodes: the authors' protocol."""
    returns: list[float] = []
    lengths: list[int] = []
    taken = 0
    while taken < steps:
        obs, _ = env.reset(seed=episode_seed(seed, "evaluation", 0, len(returns)))
        total, length, over = 0.0, 0, False
        while not over and taken < steps:
            obs, reward, terminated, truncated, _ = env.step(policy(_stack([obs]))[0])
            total, length, taken = total + float(reward), length + 1, taken + 1
            over = terminated or truncated
        if over:
            returns.append(total)
            lengths.append(length)
    return Evaluation(returns, lengths)
