"""Stepping the environments: the one place that tells termination from truncation."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import jax
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from jaxtyping import Bool, Float, Int

from sunrise.envs.answers import Failure, not_finite, outside
from sunrise.envs.autoreset import ResetMask, autoreset_mode, last_observations
from sunrise.envs.make import AnyVectorEnv
from sunrise.envs.vector import FAILED, UNSAID, AsyncEnvs, SyncEnvs
from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.randomness import episode_seed, generator
from sunrise.replay.uniform import as_stored
from sunrise.run.journal import Journal, mask, not_arrived, repeat
from sunrise.run.restarts import Restarts
from sunrise.run.state import CollectorState
from sunrise.types import Batch, Collected, Episode, Observation, Seen

log = logging.getLogger("sunrise")
A_MOMENT = 0.2
"""Seconds in which a signal that struck others arrives here too."""
IN_RESET = "in the reset "
OUTSIDE = "gave an observation outside of its declared space"


class Collector:
    """Steps E environments and closes their transitions.

    Every episode is reset with a seed derived from (run seed, environment, episode). Gymnasium's own vector
    environments take such resets in each of their autoreset modes. A foreign one, and one inside a wrapper, which may
    know nothing of such resets, is followed as its mode says: where it resets itself, its episodes after the first have
    no seed of ours.

    An environment that fails loses its episode and is made anew, as often as `restarts` allows. The others lose
    nothing; only a vector environment that is not of ours fails as a whole.
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
        max_restarts: int = 0,
    ) -> None:
        self.env, self.seed, self.members, self.rng = env, seed, members, rng
        self.gamma, self.truncation = gamma, truncation
        self.reward_noise, self.noise_rng = reward_noise, generator(seed, "reward noise")
        self.count = env.num_envs
        self.mode = autoreset_mode(env)
        self.ours = env if isinstance(env, SyncEnvs | AsyncEnvs) else None
        self.seeds_each = isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        """Whether a reset takes a seed for each environment; a foreign one takes one for all, at the start."""
        self.reseeds = isinstance(env, SyncVectorEnv | AsyncVectorEnv) or self.mode == AutoresetMode.DISABLED
        """Whether episodes begin by a reset of ours."""
        self.episode: Int[np.ndarray, "E"] = np.zeros(self.count, np.int64)
        self.acting: Int[np.ndarray, "E"] = rng.integers(members, size=self.count)
        """The member that acts in each environment for this episode, where one member acts."""
        self.total: Float[np.ndarray, "E"] = np.zeros(self.count)
        self.length: Int[np.ndarray, "E"] = np.zeros(self.count, np.int64)
        self.resetting: Bool[np.ndarray, "E"] = np.zeros(self.count, bool)
        """Environments that spend their next step on resetting themselves."""
        self.journal = [Journal() for _ in range(self.count)]
        self.restarts = Restarts(max_restarts)
        self.stopping = threading.Event()
        """Set when the run was asked to stop: what fails then was struck by the same signal, and is no failure."""
        self.since: float | None = None
        """When the call into the environments began that has not come back yet, by `time.monotonic`."""
        self.said: set[str] = set()
        self.timesteps = 0
        raw, failed = self._reset(np.ones(self.count, bool))
        self.obs = (
            self._go_on(mask([], self.count), failed, None) if failed else self._checked(raw, "the first observation")
        )

    def step(self, action: np.ndarray, stored_action: np.ndarray, timesteps: int) -> Collected:
        """Act in every environment; `stored_action` is what the transition remembers."""
        self.timesteps = timesteps
        raw, reward, terminated, truncated, info = self._step(action)
        failed: dict[int, Failure] = info.get(FAILED, {})
        stepped = ~self.resetting & ~mask(failed, self.count)
        self.length += stepped
        for e in np.flatnonzero(stepped):
            self.journal[e].add(action[e])
        next_obs = self._checked(raw, "an observation")
        reward = np.asarray(reward, np.float32)
        self._finite(reward, "a reward")
        given = reward
        if UNSAID in info:
            self._say_once("says None for whether its episode is over, which counts as no", info[UNSAID][0])
        done = terminated | truncated
        self.total += np.where(stepped, reward, 0)
        begun = self.mode == AutoresetMode.SAME_STEP and done.any()  # the next episodes, already
        last_obs = last_observations(next_obs, done, info) if begun else next_obs
        ends = done if self.truncation == "terminal" else terminated
        discount = np.where(ends, 0, self.gamma).astype(np.float32)
        if self.reward_noise:
            # r' = r + z, z ~ N(0, σ²): what is learned from is noisy, what is reported is not.
            reward = reward + self.noise_rng.normal(0, self.reward_noise, self.count).astype(np.float32)
        batch = Batch(self.obs, stored_action, reward, discount, last_obs)
        if not stepped.all():
            batch = jax.tree.map(lambda x: x[stepped], batch)
        plays_on = np.asarray(info.get("plays_on", np.zeros(self.count)), bool)
        episodes = [Episode(int(e), float(self.total[e]), int(self.length[e])) for e in np.flatnonzero(done & stepped)]
        self.resetting = done & (not self.reseeds) & (self.mode == AutoresetMode.NEXT_STEP)
        self.obs = self._go_on(done & stepped, failed, next_obs, plays_on)
        seen = Seen(action, given, terminated, truncated, info, last_obs, self.obs)
        return Collected(batch, np.flatnonzero(stepped), done[stepped], episodes, seen)

    def begin_anew(self) -> None:
        """Begin an episode everywhere: somebody may have stepped the environments since."""
        everywhere = np.ones(self.count, bool)
        self._begin(np.flatnonzero(everywhere), None)
        self.resetting[:] = False
        raw, failed = self._reset(everywhere)
        self.obs = self._go_on(~everywhere, failed, None) if failed else self._checked(raw, "the first observation")

    def _step(self, action: np.ndarray) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step the environments; ours say which of them failed, of a foreign vector environment all have."""
        try:
            with self._waiting():
                return self.env.step(action)
        except Exception as error:
            failed, nothing = dict.fromkeys(range(self.count), Failure.of(error)), np.zeros(self.count)
        return self.obs, nothing, nothing.astype(bool), nothing.astype(bool), {FAILED: failed}

    def _reset(self, begin: Bool[np.ndarray, "E"]) -> tuple[Any, dict[int, Failure]]:
        """Reset some environments, each with the seed of its episode: what all show, and which of them failed."""
        seeds: Any = [self._seed(e, int(self.episode[e])) for e in range(self.count)]
        if not self.seeds_each:
            seeds = seeds[0] if begin.all() else None
        try:
            with self._waiting():
                raw, info = self.env.reset(seed=seeds, options=None if begin.all() else ResetMask(begin))
        except Exception as error:
            return None, dict.fromkeys(range(self.count), Failure.of(error))
        return raw, info.get(FAILED, {})

    def _go_on(
        self,
        ended: Bool[np.ndarray, "E"],
        failed: Mapping[int, Failure],
        obs: Observation,
        plays_on: Bool[np.ndarray, "E"] | None = None,
    ) -> Observation:
        """Begin a new episode where one ended, and where one was lost with its environment, which is made anew."""
        begin, during = ended.copy(), "" if obs is not None else IN_RESET
        while begin.any() or failed:
            for e, failure in failed.items():
                self._lose(e, failure, during)
                begin[e] = True
            self._begin(np.flatnonzero(begin), plays_on)
            if not self.reseeds and not failed:
                return obs  # it begins its episodes itself
            raw, failed = self._reset(begin)
            if not failed:
                return self._checked(raw, "the first observation of an episode")
            begin, plays_on, during = np.zeros(self.count, bool), None, IN_RESET
        return obs

    def _begin(self, begin: Int[np.ndarray, "ended"], plays_on: Bool[np.ndarray, "E"] | None) -> None:
        """Write down that new episodes begin."""
        self.episode[begin] += 1
        self.acting[begin] = self.rng.integers(self.members, size=begin.size)
        self.total[begin], self.length[begin] = 0, 0
        for e in begin:
            self.journal[e].begin(plays_on is not None and bool(plays_on[e]))

    def _lose(self, e: int, failure: Failure, during: str) -> None:
        """Make an environment anew that failed; with too many failures, or a value that is none, the run ends."""
        while True:
            where = f"{during}at timestep {self.timesteps:,}"
            place = self._place(e, 0 if during else 1)
            text = f"{self._name(e)} {failure.what} {where}: {failure.why} ({place})."
            error = EnvironmentFailedError(text)
            error.add_note(failure.trace)
            if failure.is_bad_value:
                raise error
            self.count_failure(error, "Its episode is dropped")
            self.resetting[e] = False
            try:
                if self.ours is not None:
                    self.ours.revive(e)
                return
            except Exception as again:
                failure = Failure.of(again)

    def count_failure(self, error: EnvironmentFailedError, what_now: str) -> None:
        """Count a failure and say what is done about it; raise it if there were too many."""
        if self.stopping.wait(A_MOMENT):
            raise KeyboardInterrupt
        if not self.restarts.note(self.timesteps):
            raise error
        log.warning("%s %s (%s).", error, what_now, self.restarts)

    def state(self) -> CollectorState:
        return CollectorState(
            episode=self.episode,
            acting=self.acting,
            total=self.total,
            length=self.length,
            resetting=self.resetting,
            obs=self.obs,
            journal=[journal.state() for journal in self.journal],
            restarts=self.restarts.state(),
            rng=self.rng.bit_generator.state,
            noise_rng=self.noise_rng.bit_generator.state,
        )

    def restore(self, state: CollectorState, timesteps: int) -> None:
        """Know again where the environments were; they are there after `repeat_episodes`."""
        self.timesteps = timesteps
        self.episode, self.acting = state.episode.copy(), state.acting.copy()
        self.total, self.length, self.resetting = state.total.copy(), state.length.copy(), state.resetting.copy()
        self.obs = jax.tree.map(np.copy, state.obs)
        for journal, own in zip(self.journal, state.journal, strict=True):
            journal.restore(own)
        self.restarts.restore(state.restarts)
        self.rng.bit_generator.state, self.noise_rng.bit_generator.state = state.rng, state.noise_rng

    def repeat_episodes(self) -> dict[int, str]:
        """Send every environment through its journal again, to `obs`; where one does not arrive, a new episode begins.

        Returns those, and why. An environment with state that neither its seed nor its actions decide is found out.
        """
        elsewhere = dict.fromkeys(range(self.count), "it is of a vector environment that we did not make")
        if self.ours is not None:
            wanted = self.obs
            seeds = [
                [self._seed(e, int(self.episode[e]) - back) for back in reversed(range(len(journal.starts)))]
                for e, journal in enumerate(self.journal)
            ]
            raw, failed = repeat(self.ours, self.journal, seeds)
            self.obs = jax.tree.map(np.copy, as_stored(raw))
            elsewhere = not_arrived(self.obs, wanted, failed)
            for e in elsewhere:
                with contextlib.suppress(Exception):  # then the reset fails too, and counts
                    self.ours.revive(e)
        self.obs = self._go_on(mask(elsewhere, self.count), {}, self.obs)
        return elsewhere

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.since = time.monotonic()
        try:
            yield
        finally:
            self.since = None

    def whom(self) -> str:
        """Who is being waited for."""
        e = self.ours.current if isinstance(self.ours, SyncEnvs) else None
        return "an environment" if e is None else f"{self._name(e)} ({self._place(e, 1)})"

    def _name(self, e: int) -> str:
        return "the environment" if self.count == 1 else f"environment {e}"

    def _place(self, e: int, ahead: int = 0) -> str:
        return f"step {self.length[e] + ahead} of its episode {self.episode[e]}"

    def _seed(self, env: int, episode: int) -> int:
        return episode_seed(self.seed, "episodes", env, episode)

    def _checked(self, raw: Observation, name: str) -> Observation:
        """A copy in the precision that is stored: an environment may write to its own array again."""
        obs = jax.tree.map(np.copy, as_stored(raw))
        self._finite(obs, name)
        if OUTSIDE not in self.said:
            beyond = np.flatnonzero(outside(raw, self.env.single_observation_space))
            if beyond.size:
                self._say_once(OUTSIDE, int(beyond[0]))
        return obs

    def _say_once(self, what: str, e: int) -> None:
        if what not in self.said:
            self.said.add(what)
            log.warning("%s %s (%s); this is said once.", self._name(e).capitalize(), what, self._place(e))

    def _finite(self, values: Any, name: str) -> None:
        bad = np.flatnonzero(not_finite(values))
        if bad.size:
            e = int(bad[0])
            whose = f"It came from {self._name(e)}, {self._place(e)}."
            raise NonFiniteError(name, self.timesteps, f"{whose} Look at what it computes.")
