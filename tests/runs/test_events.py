"""What a run tells: every event in its order, to every sink, and no sink that fails can change or end it."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from sunrise import SAC
from sunrise.run.events import Ended, Event, EventStream, Failed, MetricsRow, Started, Stepped
from tests.support import runs, tiny

SMALL: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 90, "seed": 3}
OFTEN: dict[str, Any] = {"log_freq": 2, "eval_freq": 4, "eval_episodes": 1, "save_freq": 3}


class Memory:
    """A sink that remembers."""

    name, essential = "the memory", False

    def __init__(self, *_: Any) -> None:
        self.events: list[Event] = []
        self.closed = 0
        MEMORIES.append(self)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed += 1


class Broken(Memory):
    """A sink that fails at everything, in whatever way."""

    name = "the broken tracker"

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, Stepped):
            sys.exit(3)
        raise OSError("no network")

    def close(self) -> None:
        raise RuntimeError("still no network")


MEMORIES: list[Memory] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    MEMORIES.clear()


def learn(sink: type[Memory], monkeypatch: pytest.MonkeyPatch, run: Path | str, steps: int = 6, **changes: Any) -> SAC:
    """A short training with another sink in the console's place."""
    monkeypatch.setattr("sunrise.agents.training.ConsoleSink", sink)
    settings = SMALL | OFTEN | {"learning_starts": 100} | changes
    return SAC("MlpPolicy", "Pendulum-v1", run_dir=str(run), **settings).learn(steps, log_interval=None)


def test_the_events_of_a_short_run_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(Memory, monkeypatch, tmp_path)
    told = [(type(event).__name__, event.timesteps) for event in MEMORIES[0].events]
    assert told == [
        ("Started", 0),
        ("Stepped", 1),
        ("MetricsRow", 2),
        ("Stepped", 2),
        ("CheckpointDue", 3),
        ("Stepped", 3),
        ("MetricsRow", 4),
        ("Evaluated", 4),
        ("Stepped", 4),
        ("Stepped", 5),
        ("MetricsRow", 6),
        ("CheckpointDue", 6),
        ("Stepped", 6),
        ("CheckpointDue", 6),  # the end, whether or not it was due
        ("Evaluated", 6),
        ("Ended", 6),
    ]
    start, end = MEMORIES[0].events[0], MEMORIES[0].events[-1]
    assert isinstance(start, Started)
    assert (start.until, start.config.run.seed) == (6, 3)
    assert isinstance(end, Ended)
    assert end.status == "finished"
    assert MEMORIES[0].closed == 1


def test_a_sink_that_fails_is_named_once_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"learning_starts": 20, "log_freq": 10, "eval_freq": 20, "save_freq": 15}
    with_memory = learn(Memory, monkeypatch, tmp_path / "whole", 40, **changes)
    with caplog.at_level(logging.WARNING, "sunrise"):
        with_broken = learn(Broken, monkeypatch, tmp_path / "broken", 40, **changes)
    assert [r.getMessage() for r in caplog.records] == [
        "the broken tracker failed: OSError: no network. The run goes on without it; this is said once."
    ]
    assert [type(e) for e in MEMORIES[1].events] == [type(e) for e in MEMORIES[0].events]
    assert tiny.same_bits(with_memory.ensemble, with_broken.ensemble)
    runs.assert_same(tmp_path / "whole", tmp_path / "broken")


def test_a_row_cannot_be_changed_by_whoever_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Meddler(Memory):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, MetricsRow):
                event.row["timesteps"] = 0  # type: ignore[index]

    learn(Meddler, monkeypatch, "")
    rows = [event.timesteps for event in MEMORIES[0].events if isinstance(event, MetricsRow)]
    assert rows == [2, 4, 6]


def test_a_failure_and_a_stop_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(now: dict[str, Any], _: Any) -> None:
        if now["self"].num_timesteps == 3:
            raise KeyError("the power went")

    monkeypatch.setattr("sunrise.agents.training.ConsoleSink", Memory)
    model = SAC("MlpPolicy", "Pendulum-v1", **SMALL, learning_starts=100, eval_freq=0)
    with pytest.raises(KeyError):
        model.learn(6, fail, log_interval=None)
    last = MEMORIES[-1].events[-1]
    assert isinstance(last, Failed)
    assert (last.timesteps, str(last.error)) == (3, "'the power went'")
    with pytest.raises(SystemExit):
        model.learn(6, lambda *_: sys.exit(0), log_interval=None)
    last = MEMORIES[-1].events[-1]
    assert isinstance(last, Ended)
    assert (last.timesteps, last.status) == (1, "stopped")


def test_an_essential_sink_is_heard() -> None:
    class Essential(Broken):
        essential = True

    later = Memory()
    stream = EventStream([Essential(), later])
    with pytest.raises(SystemExit):
        stream.send(Stepped(1, 1, []))
    assert not later.events
    with pytest.raises(RuntimeError, match="still no network"):
        stream.close()
    assert later.closed == 1  # the others are closed all the same
