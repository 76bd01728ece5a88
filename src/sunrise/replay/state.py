"""How every kind of replay buffer is saved: it offers rings, counters and a generator, and takes them back."""

from collections.abc import Iterable

from sunrise.rings import ReplayState, Rows, refill
from sunrise.types import Replay


def state_of(replay: Replay) -> ReplayState:
    """All that changes, as views."""
    return ReplayState(replay.rings(), replay.counters(), replay.rng.bit_generator.state)


def put_back(replay: Replay, state: ReplayState, segments: Iterable[Rows]) -> None:
    """Give a buffer its counters and its generator again, and then the rows of the segments."""
    for name, counter in replay.counters().items():
        counter[...] = state.counters[name]
    replay.rng.bit_generator.state = state.rng
    refill(replay.rings(), segments)
