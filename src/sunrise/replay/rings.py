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
        """Rows that there is room for."""
        return len(next(iter(self.arrays.values())))

    @property
    def oldest(self) -> int:
        """The first row that is still there."""
        return max(0, self.written - self.size)

    def since(self, start: int) -> dict[str, np.ndarray]:
        """Number of a row -> copies of the rows from there on, by name."""
        slots = np.arange(start, self.written) % self.size
        return {name: array.take(slots, axis=0) for name, array in self.arrays.items()}

    def put(self, start: int, rows: Mapping[str, np.ndarray]) -> None:
        """Number of the first row, rows by name: write them back where they were, without those overwritten since."""
        for name, array in self.arrays.items():
            number = start + np.arange(len(rows[name]))
            present = number >= self.oldest
            array[number[present] % self.size] = rows[name][present]
