"""Rings of rows: what a replay buffer appends, so that a checkpoint need only write what is new."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Ring(NamedTuple):
    """Arrays whose row `t % size` holds the t-th row ever written; the oldest is overwritten first."""

    arrays: Mapping[str, np.ndarray]
    """Views of the buffer's own arrays, one row each."""
    written: int
    """Rows written so far."""

    @property
    def size(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def oldest(self) -> int:
        """The first row that is still there."""
        return max(0, self.written - self.size)

    def since(self, start: int) -> dict[str, np.ndarray]:
        """Copies of the rows from `start` on."""
        slots = np.arange(start, self.written) % self.size
        return {name: array.take(slots, axis=0) for name, array in self.arrays.items()}

    def put(self, start: int, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows back where they were; what has been overwritten since is left out."""
        for name, array in self.arrays.items():
            number = start + np.arange(len(rows[name]))
            kept = number >= self.oldest
            array[number[kept] % self.size] = rows[name][kept]
