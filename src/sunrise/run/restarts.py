"""How often environments may fail."""

from typing import NamedTuple

WINDOW = 100_000
"""A failure counts against the limit for this many timesteps, so that a long run survives one now and then."""


class RestartsState(NamedTuple):
    """Failures so far, and the timesteps of those that count against the limit."""

    total: int
    recent: list[int]


class Restarts:
    """Counts failures, in all and of late."""

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.recent: list[int] = []
        """The timesteps of the failures that count against the limit."""

    def note(self, timesteps: int) -> bool:
        """One more failure; whether the limit allows it."""
        self.total += 1
        self.recent = [t for t in self.recent if timesteps - WINDOW < t <= timesteps] + [timesteps]
        return len(self.recent) <= self.limit

    def state(self) -> RestartsState:
        return RestartsState(self.total, self.recent)

    def restore(self, state: RestartsState) -> None:
        self.total, self.recent = state.total, list(state.recent)

    def __str__(self) -> str:
        return f"restart {len(self.recent)} of {self.limit} in {WINDOW:,} timesteps"
