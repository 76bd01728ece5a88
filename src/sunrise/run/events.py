"""What happens in a run, as records, and the stream that brings them to whoever listens.

In a run: `Started`; at each step whatever is due of `MetricsRow`, `Evaluated` and `CheckpointDue`, then `Stepped`; at
last `Ended` or `Failed`. A sink is told and answers nothing, so none can influence a result. One that raises is named
once and the run goes on, unless it is essential: the run's folder, without which there is no run to speak of, and the
user's callback, which is part of their program and may stop the run.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from sunrise.config.groups import Config
from sunrise.ensemble import Ensemble
from sunrise.run.evaluate import Evaluation
from sunrise.run.state import RunState
from sunrise.types import Episode, Seen

log = logging.getLogger("sunrise")


class Started(NamedTuple):
    """A training begins, or goes on, at `timesteps` and is to end at `until`."""

    config: Config[Any]
    timesteps: int
    until: int
    action_repeat: int
    """Simulator steps in one timestep."""


class Stepped(NamedTuple):
    """All environments made a step, and everything that was due at it has been done."""

    timesteps: int
    env_steps: int
    episodes: list[Episode]
    """Those that ended with this step."""
    seen: Seen | None = None
    """The step itself."""


class MetricsRow(NamedTuple):
    """What was measured since the last row; what depends on the clock begins with `time/`."""

    row: Mapping[str, Any]

    @property
    def timesteps(self) -> int:
        """As every event has them."""
        return int(self.row["timesteps"])


class Evaluated(NamedTuple):
    """An evaluation is over."""

    timesteps: int
    env_steps: int
    result: Evaluation

    def summary(self) -> dict[str, float]:
        """Its numbers by the names they have in files."""
        returns = self.result.returns or [math.nan]
        return {
            "mean_return": self.result.mean,
            "std_return": self.result.std,
            "min_return": min(returns),
            "max_return": max(returns),
            "episodes": len(self.result.returns),
        }


class CheckpointDue(NamedTuple):
    """The run is to be kept as it is now; `state` is not called where nobody keeps it."""

    timesteps: int
    state: Callable[[], RunState]


class Ended(NamedTuple):
    """The training came to its end, or was stopped before it."""

    timesteps: int
    status: Literal["finished", "stopped"]
    state: Callable[[], RunState]


class Failed(NamedTuple):
    """The training ended with an error; `ensemble` is what the agents were then."""

    timesteps: int
    error: Exception
    ensemble: Ensemble


Event: TypeAlias = Started | Stepped | MetricsRow | Evaluated | CheckpointDue | Ended | Failed


class StopRunError(Exception):
    """An essential sink asks to end the training early: what there is counts as finished."""


class CallbackExit(SystemExit):
    """The user's callback ended the program: the run is stopped. In an environment, it is a failure."""


class Sink(Protocol):
    """Whoever is told what happens in a run."""

    @property
    def name(self) -> str:
        """What to call it in a message."""

    @property
    def essential(self) -> bool:
        """Whether the run ends with an error that it raises."""

    def __call__(self, event: Event) -> None:
        """Be told; whatever does not matter to it is passed over."""

    def close(self) -> None:
        """The training is over, in whatever way."""


class EventStream:
    """Brings each event to every sink, in their order."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self.sinks = sinks
        self._named: set[int] = set()
        """Which sinks have been named as failing."""

    def send(self, event: Event) -> None:
        for sink in self.sinks:
            try:
                sink(event)
            except (Exception, SystemExit) as error:
                if sink.essential:
                    raise
                self._name(sink, error)

    def close(self) -> None:
        """Close every sink, also where one fails at it."""
        failed: BaseException | None = None
        for sink in self.sinks:
            try:
                sink.close()
            except (Exception, SystemExit) as error:
                if sink.essential:
                    failed = error
                else:
                    self._name(sink, error)
        if failed is not None:
            raise failed

    def _name(self, sink: Sink, error: BaseException) -> None:
        if id(sink) not in self._named:
            self._named.add(id(sink))
            log.warning(
                "%s failed: %s: %s. The run goes on without it; this is said once.",
                *(sink.name, type(error).__name__, error),
            )
