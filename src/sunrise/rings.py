"""Rings of rows: what a replay buffer appends, so that a checkpoint need only write what is new."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sunrise.errors import DamagedError


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


class ReplayState(NamedTuple):
    """A replay buffer: its rows, and everything else that changes."""

    rings: Mapping[str, Ring]
    """The rows, as views; none where they come apart, as segments."""
    counters: Mapping[str, np.ndarray]
    rng: Mapping[str, Any]
    """The generator's state."""


class Rows(NamedTuple):
    """A segment of rows as it was stored."""

    name: str
    """What to call it where it does not fit."""
    spans: Mapping[str, tuple[int, int]]
    """From which row to which, of each ring."""
    arrays: Mapping[str, np.ndarray]
    """`{ring}/{array}`."""


def refill(rings: Mapping[str, Ring], segments: Iterable[Rows]) -> None:
    """Write the rows of every segment back; DamagedError where one does not fit, or a row that is needed is missing."""
    upto = {name: ring.oldest for name, ring in rings.items()}
    for segment in segments:
        if segment.spans.keys() != rings.keys():
            raise DamagedError(f"{segment.name} is of another replay buffer")
        for name, ring in rings.items():
            start, stop = segment.spans[name]
            rows = {}
            for key, array in ring.arrays.items():
                own = segment.arrays.get(f"{name}/{key}")
                if own is None or own.shape != (stop - start, *array.shape[1:]) or own.dtype != array.dtype:
                    raise DamagedError(f"{segment.name} does not fit the replay buffer")
                rows[key] = own
            ring.put(start, rows)
            if start <= upto[name]:
                upto[name] = max(upto[name], stop)
    if any(upto[name] != ring.written for name, ring in rings.items()):
        raise DamagedError("segments of replay are missing")
