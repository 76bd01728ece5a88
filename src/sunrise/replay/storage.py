"""Where a replay buffer keeps its observations: as they come, or each picture once.

Both have a ring of `rows` transitions for each of `envs` environments. Slot `env * rows + t % rows` holds the t-th
transition of an environment.
"""

from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Bool, Int, UInt8

from sunrise.errors import SunriseError
from sunrise.replay import memory
from sunrise.replay.uniform import empty
from sunrise.rings import Ring
from sunrise.trees import named_leaves
from sunrise.types import Observation


@runtime_checkable
class Store(Protocol):
    """The observations before and after each transition."""

    envs: int
    rows: int
    """Transitions in one environment's ring."""
    nbytes: int

    def write(
        self, env: Int[np.ndarray, "E"], slot: Int[np.ndarray, "E"], obs: Observation, next_obs: Observation
    ) -> Bool[np.ndarray, "E"]:
        """env[E], slot[E], obs[E], next_obs[E] -> does each begin where the last of its environment ended? [E].

        Stores the next transition of some environments, each named once.
        """

    def obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """slot[B] -> the observations[B] before these transitions, in fresh arrays."""

    def next_obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """slot[B] -> the observations[B] after these transitions, in fresh arrays."""

    def lost(self, slot: int) -> bool:
        """Whether a part of this transition has been overwritten."""

    def beside(self) -> dict[str, np.ndarray]:
        """Arrays[slots] that belong to the transitions, by name."""

    def rings(self) -> dict[str, Ring]:
        """What is appended apart from the transitions."""

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, to be read and written in place."""


def rows_each(capacity: int, envs: int) -> int:
    """Transitions in all, E -> transitions of each environment."""
    if capacity < envs:
        raise SunriseError(f"buffer_size is {capacity}, but must hold a transition of each of {envs} environments.")
    return capacity // envs


def _same(a: Observation, b: Observation) -> Bool[np.ndarray, "B"]:
    """Which rows are equal, in all parts of the observation."""
    equal = jax.tree.map(lambda x, y: (x == y).reshape(len(x), -1).all(1), a, b)
    return np.asarray(np.logical_and.reduce(jax.tree.leaves(equal)))


class PlainStore:
    """Any observation, a Box or a Dict of Boxes, stored as it is on both sides of the transition."""

    def __init__(self, space: gym.Space[Any], capacity: int, envs: int = 1) -> None:
        self.envs, self.rows = envs, rows_each(capacity, envs)
        slots = envs * self.rows
        self.nbytes = 2 * slots * sum(leaf.nbytes for leaf in jax.tree.leaves(empty(space, 1)))
        memory.require(self.nbytes, f"a replay buffer of {capacity:,} transitions", "lower buffer_size", say=False)
        self.before, self.after = empty(space, slots), empty(space, slots)

    def write(
        self, env: Int[np.ndarray, "E"], slot: Int[np.ndarray, "E"], obs: Observation, next_obs: Observation
    ) -> Bool[np.ndarray, "E"]:
        """env[E], slot[E], obs[E], next_obs[E] -> does each begin where the last of its environment ended? [E].

        Stores the next transition of some environments, each named once.
        """
        first = env * self.rows
        follows = _same(self.next_obs(first + (slot - first - 1) % self.rows), obs)
        jax.tree.map(lambda stored, new: stored.__setitem__(slot, new), (self.before, self.after), (obs, next_obs))
        return follows

    def obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """slot[B] -> the observations[B] before these transitions, in fresh arrays."""
        return jax.tree.map(lambda stored: stored[slot], self.before)

    def next_obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """slot[B] -> the observations[B] after these transitions, in fresh arrays."""
        return jax.tree.map(lambda stored: stored[slot], self.after)

    def lost(self, slot: int) -> bool:
        """Nothing is shared, so nothing is lost."""
        return False

    def beside(self) -> dict[str, np.ndarray]:
        """Arrays[slots] that belong to the transitions, by name."""
        return named_leaves({"before": self.before, "after": self.after})

    def rings(self) -> dict[str, Ring]:
        """Everything is beside the transitions."""
        return {}

    def counters(self) -> dict[str, np.ndarray]:
        """There is nothing to count."""
        return {}


class FrameStore:
    """Stacks of pictures, `[stack, height, width]` or `[stack, height, width, channels]`, the newest last.

    A frame is written once, into its environment's ring of frames, and a stack is the addresses of its frames. A
    frame that is already at hand (in the stack before, beside it in its own stack, or black) is pointed to. So an
    episode of T transitions takes T + 1 frames, whether its first stack is padded with zeros, repeats one frame or
    goes on from the last episode, and every stack comes back exactly as it was. There is room for a twentieth more
    frames than transitions; where episodes are so short that it runs out, the oldest transitions go a little earlier.
    """

    BLACK = -1

    def __init__(self, space: gym.Space[Any], capacity: int, envs: int = 1) -> None:
        if not isinstance(space, gym.spaces.Box) or len(space.shape) not in {3, 4} or space.dtype != np.uint8:
            raise SunriseError(
                f"observations are {space}, but stacked frames are a Box of uint8 [stack, height, width]."
            )
        self.envs, self.rows = envs, rows_each(capacity, envs)
        self.stack, *picture = space.shape
        self.ring = self.rows + self.rows // 20 + 4 * self.stack
        """Frames in one environment's ring."""
        slots, frames = envs * self.rows, envs * self.ring + 1
        self.nbytes = frames * int(np.prod(picture)) + 8 * (slots * (2 * self.stack + 1) + envs * (self.stack + 1))
        memory.require(self.nbytes, f"a replay buffer of {capacity:,} transitions", "lower buffer_size", say=False)
        self.frames: UInt8[np.ndarray, "frames *picture"] = np.zeros((frames, *picture), np.uint8)
        """The rings, one after the other, and then the black frame."""
        self.address: Int[np.ndarray, "slots 2 stack"] = np.full((slots, 2, self.stack), self.BLACK)
        """The frames before and after each transition: how many were written to the ring before each."""
        self.oldest: Int[np.ndarray, "slots"] = np.zeros(slots, np.int64)
        """The first frame each transition needs. It never goes back, so what is lost are the first transitions."""
        self.newest: Int[np.ndarray, "envs stack"] = np.full((envs, self.stack), self.BLACK)
        """The stack after the last transition of each environment."""
        self.written: Int[np.ndarray, "envs"] = np.zeros(envs, np.int64)

    def write(
        self, env: Int[np.ndarray, "E"], slot: Int[np.ndarray, "E"], obs: Observation, next_obs: Observation
    ) -> Bool[np.ndarray, "E"]:
        """env[E], slot[E], obs[E], next_obs[E] -> does each begin where the last of its environment ended? [E].

        Stores the next transition of some environments, each named once.
        """
        follows = _same(self._gather(env[:, None], self.newest[env]), obs)
        for i, (e, s) in enumerate(zip(env.tolist(), slot.tolist(), strict=True)):
            before = self.newest[e].copy() if follows[i] else self._addresses(e, obs[i], self.newest[e])
            self.newest[e] = self._addresses(e, next_obs[i], before)
            self.address[s] = before, self.newest[e]
            self.oldest[s] = np.where(self.address[s] == self.BLACK, self.written[e], self.address[s]).min()
        return follows

    def obs(self, slot: Int[np.ndarray, "B"]) -> UInt8[np.ndarray, "B stack *picture"]:
        """slot[B] -> the stacks[B] before these transitions, in fresh arrays."""
        return self._gather((slot // self.rows)[:, None], self.address[slot, 0])

    def next_obs(self, slot: Int[np.ndarray, "B"]) -> UInt8[np.ndarray, "B stack *picture"]:
        """slot[B] -> the stacks[B] after these transitions, in fresh arrays."""
        return self._gather((slot // self.rows)[:, None], self.address[slot, 1])

    def lost(self, slot: int) -> bool:
        """Whether a frame of this transition has been overwritten."""
        return bool(self.oldest[slot] < self.written[slot // self.rows] - self.ring)

    def beside(self) -> dict[str, np.ndarray]:
        """Arrays[slots] that belong to the transitions, by name."""
        return {"address": self.address, "oldest": self.oldest}

    def rings(self) -> dict[str, Ring]:
        """The frames of each environment."""
        return {
            f"frames.{e}": Ring({"frame": self.frames[e * self.ring : (e + 1) * self.ring]}, int(self.written[e]))
            for e in range(self.envs)
        }

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, to be read and written in place."""
        return {"newest": self.newest, "frames_written": self.written}

    def _gather(
        self, env: Int[np.ndarray, "B 1"], address: Int[np.ndarray, "B stack"]
    ) -> UInt8[np.ndarray, "B stack *picture"]:
        place = np.where(address == self.BLACK, len(self.frames) - 1, env * self.ring + address % self.ring)
        return self.frames.take(place, axis=0)

    def _addresses(
        self, env: int, stack: UInt8[np.ndarray, "stack *picture"], last: Int[np.ndarray, "stack"]
    ) -> Int[np.ndarray, "stack"]:
        """The address of each frame of a stack, most likely the last stack moved on by one; new frames are written."""
        addresses = np.append(last[1:], self.BLACK)
        beside = self.BLACK
        for i, frame in enumerate(stack):
            for known in dict.fromkeys((int(addresses[i]), beside, self.BLACK)):
                if self._holds(env, known, frame):
                    break
            else:
                known = int(self.written[env])
                self.frames[env * self.ring + known % self.ring] = frame
                self.written[env] += 1
            addresses[i] = beside = known
        return addresses

    def _holds(self, env: int, address: int, frame: UInt8[np.ndarray, "*picture"]) -> bool:
        """Whether this very frame is at an address."""
        if address == self.BLACK:
            return not frame.any()
        return bool((self.frames[env * self.ring + address % self.ring] == frame).all())
