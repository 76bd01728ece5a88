"""Where a replay buffer keeps a Dict of observations: the frames of its pictures once each, the rest as it comes."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from jaxtyping import Bool, Int

from sunrise.networks.augmentation import is_stack
from sunrise.replay.storage import FrameStore, PlainStore, Store
from sunrise.rings import Ring
from sunrise.types import Observation


def moves_on(space: gym.Space[Any], stacked: int) -> bool:
    """Whether each observation is the last one moved on by a frame: then frames are worth keeping once each.

    A first axis of three, six or nine planes may be colours, of which no plane moves on: there the environment must say
    that it stacks so many frames.
    """
    if not is_stack(space):
        return False
    assert space.shape is not None
    return len(space.shape) == 4 or space.shape[0] % 3 != 0 or space.shape[0] == stacked


class MixedStore:
    """A store for each picture and one for all the rest, side by side. A picture that is no stack is a stack of one."""

    def __init__(
        self, pictures: Sequence[str], stacked: int, space: gym.Space[Any], capacity: int, envs: int = 1
    ) -> None:
        assert isinstance(space, gym.spaces.Dict)
        self.lifted = {name for name in pictures if not moves_on(space[name], stacked)}
        """Pictures to which an axis of one frame is added."""
        rest = gym.spaces.Dict({name: part for name, part in space.spaces.items() if name not in pictures})
        self.parts: dict[str, Store] = {}
        for name in pictures:
            shape = (1, *(space[name].shape or ())) if name in self.lifted else space[name].shape
            self.parts[name] = FrameStore(gym.spaces.Box(0, 255, shape, np.uint8), capacity, envs)
        self.rest = PlainStore(rest, capacity, envs) if rest.spaces else None
        self.all: dict[str, Store] = self.parts | ({"": self.rest} if self.rest else {})
        self.envs, self.rows = envs, next(iter(self.all.values())).rows
        self.nbytes = sum(store.nbytes for store in self.all.values())

    def write(
        self, env: Int[np.ndarray, "E"], slot: Int[np.ndarray, "E"], obs: Observation, next_obs: Observation
    ) -> Bool[np.ndarray, "E"]:
        """Keep the next transition of some environments, each named once: does it begin where the last one ended?"""
        follows = [
            store.write(env, slot, self._own(name, obs), self._own(name, next_obs)) for name, store in self.all.items()
        ]
        return np.asarray(np.logical_and.reduce(follows))

    def obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """The observations before these transitions, in fresh arrays."""
        rest = self.rest.obs(slot) if self.rest else {}
        return {**rest, **{name: self._back(name, store.obs(slot)) for name, store in self.parts.items()}}

    def next_obs(self, slot: Int[np.ndarray, "B"]) -> Observation:
        """The observations after these transitions, in fresh arrays."""
        rest = self.rest.next_obs(slot) if self.rest else {}
        return {**rest, **{name: self._back(name, store.next_obs(slot)) for name, store in self.parts.items()}}

    def lost(self, slot: int) -> bool:
        """Whether a frame of this transition has been overwritten."""
        return any(store.lost(slot) for store in self.parts.values())

    def beside(self) -> dict[str, np.ndarray]:
        """What is kept beside each transition, a row a slot."""
        return {f"{part}.{name}": array for part, store in self.all.items() for name, array in store.beside().items()}

    def rings(self) -> dict[str, Ring]:
        """The frames of each picture in each environment."""
        return {f"{part}.{name}": ring for part, store in self.all.items() for name, ring in store.rings().items()}

    def counters(self) -> dict[str, np.ndarray]:
        """What else changes, to be read and written in place."""
        return {f"{part}.{name}": array for part, store in self.all.items() for name, array in store.counters().items()}

    def _own(self, name: str, obs: Observation) -> Observation:
        """What one store keeps of an observation."""
        if not name:
            return {part: rows for part, rows in obs.items() if part not in self.parts}
        return obs[name][:, None] if name in self.lifted else obs[name]

    def _back(self, name: str, stacks: np.ndarray) -> np.ndarray:
        return stacks[:, 0] if name in self.lifted else stacks
