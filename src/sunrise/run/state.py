"""What each part of a run carries from step to step, as it offers it (`state`) and takes it back (`restore`).

A field has the name of the attribute it comes from. What `state` returns is no copy: the next step may write to its
arrays, or take their memory. Who keeps it copies it first (`snapshot.py`). Evaluation has no state.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from sunrise.ensemble import Ensemble, Tally
from sunrise.rings import ReplayState, Rows
from sunrise.run.evaluate import Evaluation
from sunrise.run.journal import JournalState
from sunrise.run.restarts import RestartsState
from sunrise.run.reward_scale import RewardScaleState
from sunrise.types import Episode, Observation

GeneratorState: TypeAlias = Mapping[str, Any]
"""What NumPy calls the state of a bit generator."""


class LiveState(NamedTuple):
    """The agents with their optimisers, and the sums of what their updates reported."""

    ensemble: Ensemble
    tally: Tally


class Counters(NamedTuple):
    """What the loop counts."""

    timesteps: int
    decisions: int
    updates: int
    episodes: int
    steps_since_round: int
    rows_since_round: int
    next_log: int
    next_eval: int
    next_save: int
    log_episodes: int
    last_return: float | None
    evaluated_at: int


class LoopState(NamedTuple):
    """The loop's own state."""

    counters: Counters
    last_evaluation: Evaluation | None
    mask_rng: GeneratorState
    warmup_rng: GeneratorState


class MeterState(NamedTuple):
    """What has been gathered since the last row of metrics."""

    flat_updates: int
    chosen: Int[np.ndarray, "C"]
    finished: list[Episode]


class CollectorState(NamedTuple):
    """Where each environment is in its episode, and how it came there."""

    episode: Int[np.ndarray, "E"]
    acting: Int[np.ndarray, "E"]
    total: Float[np.ndarray, "E"]
    length: Int[np.ndarray, "E"]
    resetting: Bool[np.ndarray, "E"]
    obs: Observation
    journal: list[JournalState]
    restarts: RestartsState
    rng: GeneratorState
    noise_rng: GeneratorState


class RunState(NamedTuple):
    """All of a run at one moment."""

    live: LiveState
    loop: LoopState
    meter: MeterState
    collector: CollectorState
    replay: ReplayState
    rewards: RewardScaleState | None
    """None where rewards are learned from as they come."""


class HasState(Protocol):
    """A run, as those see it who keep it and bring it back."""

    def state(self) -> RunState:
        """All of it as it is now."""

    def restore(self, state: RunState, segments: Iterable[Rows]) -> None:
        """Become what it was when `state` was taken; the rows of its replay buffer come apart."""

    def repeat_episodes(self) -> None:
        """Bring the environments back to where they were; this steps them, so it comes last."""
