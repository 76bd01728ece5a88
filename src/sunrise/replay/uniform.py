"""Uniform replay: a ring of transitions with their bootstrap masks."""

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from sunrise.replay import memory
from sunrise.replay.state import put_back, state_of
from sunrise.rings import ReplayState, Ring, Rows
from sunrise.trees import named_leaves
from sunrise.types import Batch, Collected, Observation, Sample


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type of a number -> the type it is stored in: single precision for floats, everything else as it is."""
    return np.dtype(np.float32) if np.issubdtype(dtype, np.floating) else dtype


def as_stored(obs: Observation) -> Observation:
    """obs[...] -> the same in the precision that is stored and that the networks see."""
    return jax.tree.map(lambda x: np.asarray(x, stored_dtype(np.asarray(x).dtype)), obs)


def empty(space: gym.Space[Any], rows: int) -> Observation:
    """Space, rows -> zeros[rows, ...] for elements of a Box, or of a Dict of Boxes."""
    if isinstance(space, gym.spaces.Dict):
        return {name: empty(part, rows) for name, part in space.spaces.items()}
    assert space.shape is not None
    assert space.dtype is not None
    return np.zeros((rows, *space.shape), stored_dtype(space.dtype))


class UniformReplay:
    """A ring buffer of `capacity` transitions; the oldest is overwritten first."""

    prioritised = False

    def __init__(
        self,
        capacity: int,
        observation_space: gym.Space[Any],
        action_shape: tuple[int, ...],
        action_dtype: np.dtype[Any],
        members: int,
        rng: np.random.Generator,
    ) -> None:
        self.capacity, self.rng = capacity, rng
        self.written: Int[np.ndarray, ""] = np.zeros((), np.int64)
        """Transitions stored so far, whether they are still there or not."""
        row = (empty(observation_space, 1), np.zeros(action_shape, action_dtype))
        obs_bytes, action_bytes = (sum(x.nbytes for x in jax.tree.leaves(part)) for part in row)
        self.nbytes = capacity * (2 * obs_bytes + action_bytes + 8 + members)
        memory.require(self.nbytes, f"a replay buffer of {capacity:,} transitions", "lower buffer_size")
        self.batch = Batch(
            obs=empty(observation_space, capacity),
            action=np.zeros((capacity, *action_shape), action_dtype),
            reward=np.zeros(capacity, np.float32),
            discount=np.zeros(capacity, np.float32),
            next_obs=empty(observation_space, capacity),
        )
        self.mask = np.zeros((capacity, members), bool)

    def __len__(self) -> int:
        return min(int(self.written), self.capacity)

    @property
    def ready_to_sample(self) -> bool:
        """Whether there is anything to sample yet."""
        return len(self) > 0

    def add(self, collected: Collected, mask: Bool[np.ndarray, "rows N"]) -> None:
        """Transitions[rows] with the masks[rows, N] that the updates will use; the oldest are overwritten."""
        count = len(mask)
        slots = (self.written + np.arange(count)) % self.capacity
        jax.tree.map(lambda store, new: store.__setitem__(slots, new), self.batch, collected.batch)
        self.mask[slots] = mask
        self.written += count

    def sample(self, rows: int, timesteps: int) -> tuple[Sample, Int[np.ndarray, "B"]]:
        """B, timesteps so far -> B transitions, uniform and with replacement, and where they are stored[B].

        They are in fresh arrays: JAX may read them after this returns.
        """
        index = self.rng.integers(len(self), size=rows)
        batch = jax.tree.map(lambda store: store[index], self.batch)
        return Sample(batch, self.mask[index], np.ones(rows, np.float32)), index

    def reprioritise(self, index: Int[np.ndarray, "B"], error: Float[np.ndarray, "B"]) -> None:
        """Every transition is as likely as any other: there is nothing to note."""

    def rings(self) -> dict[str, Ring]:
        """What is appended."""
        return {"transitions": Ring(named_leaves(self.batch) | {"mask": self.mask}, int(self.written))}

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, to be read and written in place."""
        return {"written": self.written}

    def state(self) -> ReplayState:
        return state_of(self)

    def restore(self, state: ReplayState, segments: Iterable[Rows]) -> None:
        """Become what it was, with the rows of the segments."""
        put_back(self, state, segments)
