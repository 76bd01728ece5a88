"""What is measured between two rows of metrics."""

import logging
import time
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Int

from sunrise.config.groups import Config
from sunrise.ensemble import looks_at_disagreement
from sunrise.run.live import LiveEnsemble
from sunrise.run.state import MeterState
from sunrise.types import Episode

log = logging.getLogger("sunrise")
FLAT, FLAT_UPDATES = 0.01, 10_000
"""A weight whose 5 to 95 % range is below the first for so many updates tells no backup from another."""


class Meter:
    """Gathers episodes and choices, and makes a row of them and of what the updates reported."""

    def __init__(self, config: Config[Any], space: gym.Space[Any], live: LiveEnsemble) -> None:
        self.live, self.looks_at_disagreement = live, looks_at_disagreement(config.ensemble)
        self.candidates = ("chosen", config.ensemble.ensemble_size)
        """What exploration chooses between: the members, or the actions where all of a finite set are ranked."""
        if isinstance(space, gym.spaces.Discrete) and config.ensemble.exploration == "ucb":
            self.candidates = ("action", int(space.n))
        self.chosen: Int[np.ndarray, "C"] = np.zeros(self.candidates[1], np.int64)
        self.finished: list[Episode] = []
        self.flat_updates = 0
        """Updates since the weight last told backups apart; -1 once that has been said."""
        self.start_clock(0, 0)

    def start_clock(self, timesteps: int, updates: int) -> None:
        """Rates are counted from here."""
        self._start = time.perf_counter()
        self._clock = (self._start, timesteps, updates)

    def count_choices(self, candidate: Int[np.ndarray, "E"]) -> None:
        """Which candidate was chosen in each environment."""
        self.chosen += np.bincount(candidate, minlength=self.chosen.size)

    @property
    def has_something(self) -> bool:
        """Whether there is anything to make a row of."""
        return bool(self.finished) or int(self.live.tally.updates) > 0

    def row(self, counts: dict[str, int]) -> dict[str, Any]:
        """The counts, and means since the last row; what depends on the clock begins with `time/`."""
        row: dict[str, Any] = dict(counts)
        if self.finished:
            row["rollout/return_mean"] = float(np.mean([e.total for e in self.finished]))
            row["rollout/length_mean"] = float(np.mean([e.length for e in self.finished]))
        tally = jax.device_get(self.live.tally)
        if tally.updates:
            row |= {f"train/{name}": float(total / tally.updates) for name, total in tally.sums.items()}
        if self.chosen.sum():
            row |= {f"{self.candidates[0]}/{i}": float(f) for i, f in enumerate(self.chosen / self.chosen.sum())}
        now, (then, timesteps, updates) = time.perf_counter(), self._clock
        self._clock = (now, counts["timesteps"], counts["updates"])
        row["time/elapsed_s"] = now - self._start
        row["time/steps_per_s"] = (counts["timesteps"] - timesteps) / (now - then)
        row["time/updates_per_s"] = (counts["updates"] - updates) / (now - then)
        row["time/update_compilations"] = self.live.functions.update._cache_size()  # type: ignore[attr-defined]
        return row

    def clear(self) -> None:
        """Begin the next row."""
        self.live.clear_tally()
        self.chosen[:], self.finished = 0, []

    def watch_weight(self, row: dict[str, Any]) -> None:
        """Say once that the weight is dead: every backup counts the same, whatever the critics think of it."""
        if self.flat_updates < 0 or "train/weight_mean" not in row or not self.looks_at_disagreement:
            return
        flat = row["train/weight_p95"] - row["train/weight_p05"] < FLAT
        self.flat_updates = self.flat_updates + int(self.live.tally.updates) if flat else 0
        if self.flat_updates >= FLAT_UPDATES:
            log.warning(
                "The weight of backups is dead: for %s updates 90 %% of them were within %s of each other, at %.3f "
                'on average, while the critics disagree by %.3g. weighting="relative" (--weighting relative) does not '
                "depend on the scale of rewards.",
                *(f"{self.flat_updates:,}", FLAT, row["train/weight_mean"], row["train/disagreement_mean"]),
            )
            self.flat_updates = -1

    def state(self) -> MeterState:
        return MeterState(self.flat_updates, self.chosen, self.finished)

    def restore(self, state: MeterState) -> None:
        self.flat_updates, self.chosen, self.finished = state.flat_updates, state.chosen.copy(), list(state.finished)
