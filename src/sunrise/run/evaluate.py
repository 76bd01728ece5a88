"""Evaluation: a pure function of the policy, a seed and the index of an episode. It never touches training.

Every evaluation of a run by episodes plays the same ones, so that evaluations differ by the policy alone. By steps,
where an evaluation is often a single episode, each has episodes of its own.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np

from sunrise.config.groups import RunSettings
from sunrise.envs.make import AnyEnv, to_env, uniform_actions
from sunrise.errors import EnvironmentFailedError, SunriseError
from sunrise.randomness import episode_seed, generator
from sunrise.replay.uniform import as_stored
from sunrise.types import Observation

Policy = Callable[[Observation], np.ndarray]
"""obs[E] -> action[E], without noise."""


SIDE_BY_SIDE = 10
"""Episodes of an evaluation that run in step."""
SPEAK_AFTER = 10.0
"""Seconds after which an evaluation says how far it is."""
log = logging.getLogger("sunrise")


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


class Progress:
    """Says now and then how far a long evaluation is."""

    def __init__(self, episodes: int) -> None:
        self.episodes, self.next = episodes, time.perf_counter() + SPEAK_AFTER

    def step(self, done: int, steps: int) -> None:
        if time.perf_counter() >= self.next:
            self.next += SPEAK_AFTER
            log.info("Evaluating: %d of %d episodes are over, %s steps so far.", done, self.episodes, f"{steps:,}")


def evaluate_episodes(
    policy: Policy, envs: Sequence[AnyEnv], episodes: int, seed: int, max_steps: int = 0
) -> Evaluation:
    """Run `episodes` whole episodes, as many side by side as there are environments.

    Episode j begins with the seed of (seed, j) whatever environment it runs in. One that is not over after `max_steps`
    is cut there and counts as it is, and that is said.
    """
    progress, cut = Progress(episodes), 0
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
                too_long = 0 < max_steps <= lengths[j]
                if terminated or truncated or too_long:
                    running.discard(j)
                    cut += bool(too_long and not (terminated or truncated))
            progress.step(first + len(wave) - len(running), int(lengths.sum()))
    if cut:
        log.warning(
            "%d of %d episodes of an evaluation were not over after %s steps and were cut there: give the environment "
            "a time limit, or set eval_max_steps.",
            *(cut, episodes, f"{max_steps:,}"),
        )
    return Evaluation(returns.tolist(), lengths.tolist())


def evaluate_steps(policy: Policy, env: AnyEnv, steps: int, seed: int, number: int = 0) -> Evaluation:
    """Run for `steps` steps and keep the complete episodes: the authors' protocol. `number` names the evaluation."""
    returns: list[float] = []
    lengths: list[int] = []
    taken = 0
    while taken < steps:
        obs, _ = env.reset(seed=episode_seed(seed, "evaluation", number, len(returns)))
        total, length, over = 0.0, 0, False
        while not over and taken < steps:
            obs, reward, terminated, truncated, _ = env.step(policy(_stack([obs]))[0])
            total, length, taken = total + float(reward), length + 1, taken + 1
            over = terminated or truncated
        if over:
            returns.append(total)
            lengths.append(length)
    return Evaluation(returns, lengths)


class Evaluator:
    """Evaluation in environments of its own, made when they are first needed: by episodes, or by steps.

    A single agent may take a random action now and then (`epsilon`), as some protocols ask; an ensemble does not.
    """

    def __init__(
        self,
        make: Callable[[], AnyEnv],
        exploit: Policy,
        space: gym.Space[Any],
        run: RunSettings,
        epsilon: float,
    ) -> None:
        """`exploit` gives the ensemble's action in its own scale, which `space` turns into the environment's."""
        self.make, self.exploit, self.space, self.run, self.epsilon = make, exploit, space, run, epsilon
        self.envs: list[AnyEnv] = []
        self.since: float | None = None
        """When the environments were last asked for something that has not come back yet, by `time.monotonic`."""

    def __call__(self, episodes: int | None = None, seed: int | None = None, number: int = 0) -> Evaluation:
        """The returns of `episodes`, or by the protocol of the run, whose evaluations are told apart by `number`."""
        seed = self.run.seed if seed is None else seed
        rng = generator(seed, "evaluation")

        def policy(obs: Observation) -> np.ndarray:
            self.since = None
            action = np.array(to_env(self.exploit(obs), self.space))
            random = rng.random(len(action)) < self.epsilon
            action[random] = to_env(uniform_actions(rng, self.space, int(random.sum())), self.space)
            self.since = time.monotonic()
            return action

        by_steps = episodes is None and self.run.eval_steps > 0
        count = episodes or self.run.eval_episodes
        wanted = 1 if by_steps else min(count, SIDE_BY_SIDE)
        self.since = time.monotonic()
        try:
            self.envs += [self.make() for _ in range(wanted - len(self.envs))]
            if by_steps:
                return evaluate_steps(policy, self.envs[0], self.run.eval_steps, seed, number)
            return evaluate_episodes(policy, self.envs[:wanted], count, seed, self.run.eval_max_steps)
        except SunriseError:
            raise
        except (Exception, SystemExit) as error:
            with contextlib.suppress(Exception):  # it may be broken: the next evaluation is in new ones
                self.close()
            self.envs = []
            text = f"the environment raised {type(error).__name__} in an evaluation: {error}."
            raise EnvironmentFailedError(text) from error
        finally:
            self.since = None

    def whom(self) -> str:
        """Who is being waited for."""
        return "an environment of an evaluation"

    def close(self) -> None:
        for env in self.envs:
            env.close()
        self.envs = []
