"""The way an environment came to where it is: its actions since its episode, or its game, began."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool

from sunrise.envs.answers import Failure
from sunrise.envs.vector import FAILED, OurEnvs
from sunrise.errors import DamagedError
from sunrise.types import Observation


class JournalState(NamedTuple):
    """The actions of one environment, and how many of them each leg has."""

    actions: np.ndarray
    lengths: np.ndarray


class Journal:
    """The actions of one environment, in one array that only grows at its end; a copy of it is one contiguous copy.

    With the seeds of the episodes it is all it takes to go there again. It is one leg, an episode, and more where a
    game plays on after a lost life.
    """

    def __init__(self) -> None:
        self.room = np.zeros(0, np.float32)
        self.count = 0
        self.starts = [0]
        """Where each leg begins."""

    def add(self, action: np.ndarray) -> None:
        """Note an action; the room is doubled when it is full, so that an action costs the same at any length."""
        if self.count == 0 and (not len(self.room) or self.room[0].shape != np.shape(action)):
            self.room = np.zeros((16, *np.shape(action)), np.asarray(action).dtype)
        elif self.count == len(self.room):
            self.room = np.concatenate([self.room, np.zeros_like(self.room)])
        self.room[self.count] = action
        self.count += 1

    def begin(self, plays_on: bool = False) -> None:
        """A new leg: of the same game, or of a new one that needs nothing of what was before."""
        if plays_on:
            self.starts.append(self.count)
        else:
            self.count, self.starts = 0, [0]

    @property
    def actions(self) -> np.ndarray:
        """All of them, as a view."""
        return self.room[: self.count] if self.count else np.zeros(0, np.float32)

    @property
    def lengths(self) -> np.ndarray:
        """The number of actions of each leg."""
        return np.diff([*self.starts, self.count])

    @property
    def legs(self) -> list[np.ndarray]:
        """The actions of each leg, as views."""
        return np.split(self.actions, self.starts[1:])

    def state(self) -> JournalState:
        return JournalState(self.actions, self.lengths)

    def restore(self, state: JournalState) -> None:
        actions, lengths = state
        if lengths.ndim != 1 or not lengths.size or (lengths < 0).any() or lengths.sum() != len(actions):
            raise DamagedError("the journal of an environment does not fit its legs")
        self.room, self.count = np.array(actions), len(actions)
        self.starts = [0, *(int(n) for n in np.cumsum(lengths)[:-1])]


def repeat(
    envs: OurEnvs, journals: Sequence[Journal], seeds: Sequence[Sequence[int]]
) -> tuple[Observation, dict[int, Failure]]:
    """Send every environment its way again, side by side: a reset with the seed of each leg, and the leg's actions.

    That is exact where restoring the simulator's own state is not, because every wrapper and every hidden variable goes
    the same way again. What they show at the end, and which of them failed on the way.
    """
    failed: dict[int, Failure] = {}
    ways = {e: moves(journal, own) for e, (journal, own) in enumerate(zip(journals, seeds, strict=True))}
    obs: Observation = None
    while ways:
        now = {e: next(way, None) for e, way in ways.items()}
        begin = {e: move for e, move in now.items() if isinstance(move, int)}
        go = {e: move for e, move in now.items() if isinstance(move, np.ndarray)}
        if begin:
            options = {"reset_mask": mask(begin, envs.num_envs)}
            obs, info = envs.reset(seed=[begin.get(e) for e in range(envs.num_envs)], options=options)
            failed |= info.get(FAILED, {})
        if go:
            like = next(iter(go.values()))
            actions = np.stack([go.get(e, like) for e in range(envs.num_envs)])
            obs, _, _, _, info = envs.step(actions, mask(go, envs.num_envs))
            failed |= info.get(FAILED, {})
        ways = {e: way for e, way in ways.items() if now[e] is not None and e not in failed}
    return obs, failed


def not_arrived(obs: Observation, wanted: Observation, failed: Mapping[int, Failure]) -> dict[int, str]:
    """The environments that do not show what they should, and why."""
    same = jax.tree.map(lambda a, b: (a == b).reshape(len(a), -1).all(1), obs, wanted)
    arrived = np.logical_and.reduce(jax.tree.leaves(same))
    elsewhere = {int(e): "it has state beyond its seed and its actions" for e in np.flatnonzero(~arrived)}
    return elsewhere | {e: f"it {failure.what}: {failure.why}" for e, failure in failed.items()}


def moves(journal: Journal, seeds: Sequence[int]) -> Iterator[int | np.ndarray]:
    """A seed, the actions that followed it, the next seed, and so on."""
    for seed, actions in zip(seeds, journal.legs, strict=True):
        yield seed
        yield from map(np.asarray, actions)


def mask(meant: Iterable[int], count: int) -> Bool[np.ndarray, "E"]:
    """True for the environments that are meant."""
    chosen = np.zeros(count, bool)
    chosen[list(meant)] = True
    return chosen
