"""Stepping the environments: the one place that tells termination from truncation."""

import logging
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from jaxtyping import Bool, Float, Int

from sunrise.envs.make import JOURNAL, AnyVectorEnv
from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.randomness import episode_seed, generator
from sunrise.replay.uniform import as_stored
from sunrise.types import Batch, Collected, Episode, Observation

log = logging.getLogger("sunrise")


class Collector:
    """Steps E environments and closes their transitions.

    Every episode is reset with a seed derived from (run seed, environment, episode). Gymnasium's own vector
    environments take such resets in each of their autoreset modes; a foreign one that resets itself is followed
    as its mode says, and then its episodes after the first have no seed of ours.
    """

    def __init__(
        self,
        env: AnyVectorEnv,
        seed: int,
        members: int,
        rng: np.random.Generator,
        gamma: float,
        truncation: Literal["bootstrap", "terminal"],
        reward_noise: float = 0.0,
        rebuild: Callable[[], AnyVectorEnv] | None = None,
        max_restarts: int = 0,
    ) -> None:
        self.env, self.seed, self.members, self.rng = env, seed, members, rng
        self.gamma, self.truncation = gamma, truncation
        self.reward_noise, self.noise_rng = reward_noise, generator(seed, "reward noise")
        self.count = env.num_envs
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.reseeds = isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        self.episode: Int[np.ndarray, "E"] = np.zeros(self.count, np.int64)
        self.acting: Int[np.ndarray, "E"] = rng.integers(members, size=self.count)
        """The member that acts in each environment for this episode, where one member acts."""
        self.total: Float[np.ndarray, "E"] = np.zeros(self.count)
        self.length: Int[np.ndarray, "E"] = np.zeros(self.count, np.int64)
        self.resetting: Bool[np.ndarray, "E"] = np.zeros(self.count, bool)
        """Environments that spend their next step on resetting themselves."""
        self.journal: list[list[list[np.ndarray]]] = [[[]] for _ in range(self.count)]
        """The actions of each environment's last episodes: with their seeds, all it takes to go there again. It is one
        episode, and more where a game plays on after a lost life."""
        self.rebuild, self.max_restarts, self.restarts = rebuild, max_restarts, 0
        self.timesteps = 0
        self.obs = self._checked(self._reset(), "the first observation")

    def step(self, action: np.ndarray, kept_action: np.ndarray, timesteps: int) -> Collected:
        """Act in every environment; `kept_action` is what the transition remembers."""
        self.timesteps = timesteps
        try:
            raw, reward, terminated, truncated, info = self.env.step(action)
        except Exception as error:
            self.obs = self._restart(EnvironmentFailedError(f"at timestep {timesteps:,}", error))
            return self._nothing(kept_action)
        next_obs = self._checked(raw, "an observation")
        reward = np.asarray(reward, np.float32)
        if not np.isfinite(reward).all():
            raise NonFiniteError("a reward", timesteps, "Look at the environment's reward.")
        done = terminated | truncated
        stepped = ~self.resetting
        self.total += np.where(stepped, reward, 0)
        self.length += stepped
        for e in np.flatnonzero(stepped):
            self.journal[e][-1].append(np.copy(action[e]))
        last_obs = self._last_observation(next_obs, done, info)
        ends = done if self.truncation == "terminal" else terminated
        discount = np.where(ends, 0, self.gamma).astype(np.float32)
        if self.reward_noise:
            # r' = r + z, z ~ N(0, σ²): what is learned from is noisy, what is reported is not.
            reward = reward + self.noise_rng.normal(0, self.reward_noise, self.count).astype(np.float32)
        batch = Batch(self.obs, kept_action, reward, discount, last_obs)
        if not stepped.all():
            batch = jax.tree.map(lambda x: x[stepped], batch)
        ended = np.flatnonzero(done & stepped)
        plays_on = np.asarray(info.get("plays_on", np.zeros(self.count)), bool)
        episodes = [Episode(int(e), float(self.total[e]), int(self.length[e])) for e in ended]
        self.obs = next_obs
        if ended.size:
            try:
                self.obs = self._begin(ended, next_obs, plays_on)
            except EnvironmentFailedError as failure:
                self.obs = self._restart(failure)
        self.resetting = done & (not self.reseeds) & (self.mode == AutoresetMode.NEXT_STEP)
        return Collected(batch, np.flatnonzero(stepped), done[stepped], episodes)

    def _begin(
        self, ended: Int[np.ndarray, "ended"], next_obs: Observation, plays_on: Bool[np.ndarray, "E"] | None = None
    ) -> Observation:
        """Start a new episode where one ended."""
        self.episode[ended] += 1
        self.acting[ended] = self.rng.integers(self.members, size=ended.size)
        self.total[ended], self.length[ended] = 0, 0
        for e in ended:
            self.journal[e] = [*(self.journal[e] if plays_on is not None and plays_on[e] else []), []]
        if not self.reseeds:
            return next_obs
        mask = np.zeros(self.count, bool)
        mask[ended] = True
        return self._checked(self._reset({"reset_mask": mask}), "the first observation of an episode")

    def take_up(self, wanted: Observation) -> list[int]:
        """Go through the journal again; the environments that did not arrive at `wanted` begin a new episode instead.

        Returns those. An environment with state that neither its seed nor its actions decide is found out here.
        """
        strayed = np.ones(self.count, bool)
        if self.reseeds:
            for e in range(self.count):
                only, first = np.arange(self.count) == e, int(self.episode[e]) + 1 - len(self.journal[e])
                legs = [(self._seed(e, first + i), actions) for i, actions in enumerate(self.journal[e])]
                raw = self._reset({"reset_mask": only, JOURNAL: legs})
                self.obs = self._checked(raw, "an observation of the journal")
            same = jax.tree.map(lambda a, b: (a == b).reshape(self.count, -1).all(1), self.obs, wanted)
            strayed = ~np.logical_and.reduce(jax.tree.leaves(same))
        if strayed.any():
            self.obs = self._begin(np.flatnonzero(strayed), self.obs)
        return [int(e) for e in np.flatnonzero(strayed)]

    def _restart(self, failure: EnvironmentFailedError) -> Observation:
        """Environments anew after one of them failed: their episodes are dropped, up to a limit."""
        self.restarts += 1
        if self.restarts > self.max_restarts:
            raise failure from failure.__cause__
        log.warning("%s Its episode is dropped (restart %d of %d).", failure, self.restarts, self.max_restarts)
        if self.rebuild is not None:
            self.env = self.rebuild()
        self.resetting[:] = False
        return self._begin(np.arange(self.count), self.obs)

    def _nothing(self, action: np.ndarray) -> Collected:
        """A step that gave no transition."""
        batch = Batch(self.obs, action, self.total.astype(np.float32), self.total.astype(np.float32), self.obs)
        nobody = np.zeros(0, np.int64)
        return Collected(jax.tree.map(lambda x: x[:0], batch), nobody, nobody.astype(bool), [])

    def _reset(self, options: dict[str, Any] | None = None) -> Observation:
        seeds: Any = [self._seed(e, int(self.episode[e])) for e in range(self.count)]
        try:
            return self.env.reset(seed=seeds, options=options)[0]
        except Exception as error:
            raise EnvironmentFailedError(f"in the reset at timestep {self.timesteps:,}", error) from error

    def _seed(self, env: int, episode: int) -> int:
        return episode_seed(self.seed, "episodes", env, episode)

    def _last_observation(self, next_obs: Observation, done: np.ndarray, info: dict[str, Any]) -> Observation:
        """The true last observation of an episode, also where the environment has already begun the next."""
        if self.mode != AutoresetMode.SAME_STEP or not done.any():
            return next_obs
        last = jax.tree.map(np.copy, next_obs)
        for e in np.flatnonzero(done):
            final = as_stored(info["final_obs"][e])
            jax.tree.map(lambda rows, row, e=e: rows.__setitem__(e, row), last, final)
        return last

    def _checked(self, raw: Observation, name: str) -> Observation:
        """A copy in the precision that is kept: an environment may write to its own array again."""
        obs = jax.tree.map(np.copy, as_stored(raw))
        for leaf in jax.tree.leaves(obs):
            if not np.isfinite(leaf).all():
                raise NonFiniteError(name, self.timesteps, "Look at the environment's observations.")
        return obs
