"""A replay buffer in a file of its own: safetensors with a checksum, whatever it is called."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sunrise.errors import DamagedError
from sunrise.files.documents import SEALED
from sunrise.files.folder import Folder
from sunrise.rings import ReplayState, Rows
from sunrise.store.tensors import open_model, read_about, read_arrays, require_seal, write_arrays
from sunrise.types import Replay

FORMAT = "sunrise-replay-1"
COUNTER = "counter/"


class ReplayView(NamedTuple):
    """What `model.replay_buffer` shows."""

    replay: Replay | None
    buffer_size: int

    def size(self) -> int:
        """Transitions in it."""
        return 0 if self.replay is None else len(self.replay)

    @property
    def full(self) -> bool:
        """Whether the oldest are being overwritten."""
        return self.size() >= self.buffer_size


def named(path: str | Path) -> Path:
    """A name without a suffix gets one."""
    path = Path(path)
    return path if path.suffix else path.with_name(path.name + ".safetensors")


def rows_of(replay: Replay) -> Rows:
    """Copies of all rows that are there."""
    rings = replay.rings()
    spans = {name: (ring.oldest, ring.written) for name, ring in rings.items()}
    arrays = {f"{name}/{key}": rows for name, ring in rings.items() for key, rows in ring.since(ring.oldest).items()}
    return Rows("the replay buffer", spans, arrays)


def save(replay: Replay, path: Path) -> None:
    """Write all of it, whole or not at all."""
    rows, folder = rows_of(replay), Folder(path.parent)
    arrays = {**rows.arrays, **{COUNTER + name: np.asarray(value) for name, value in replay.counters().items()}}
    about = {"format": FORMAT, "spans": rows.spans, SEALED: True}
    folder.make()
    folder.write_by(path.name, lambda file: write_arrays(file, arrays, about, seal=True))


def load(replay: Replay, path: Path) -> None:
    """Fill a buffer of the same shape with what was saved; one that does not fit is refused, and nothing is changed."""
    room = [*replay.counters().values(), *(x for ring in replay.rings().values() for x in ring.arrays.values())]
    with open_model(path) as file:
        arrays = read_arrays(file, path, sum(array.nbytes for array in room))
        require_seal(file, path)
        about = read_about(file, path)
    if about.get("format") != FORMAT:
        raise DamagedError(f"{path} is not a replay buffer of ours.")
    counters: dict[str, np.ndarray] = {}
    for name, own in replay.counters().items():
        saved = arrays.pop(COUNTER + name, None)
        if saved is None or saved.shape != own.shape or saved.dtype != own.dtype:
            raise DamagedError(f"{path} does not fit: it is of another kind or size of replay buffer.")
        counters[name] = saved
    spans = about.get("spans")
    if not isinstance(spans, dict) or spans.keys() != replay.rings().keys():
        raise DamagedError(f"{path} does not fit: it is of another kind or size of replay buffer.")
    expected = {f"{name}/{key}": value for name, ring in replay.rings().items() for key, value in ring.arrays.items()}
    for name, value in expected.items():
        start, stop = whole(spans[name.rpartition("/")[0]], path)
        found = arrays.get(name)
        if found is None or found.shape != (stop - start, *value.shape[1:]) or found.dtype != value.dtype:
            raise DamagedError(f"{path} does not fit: {name} is of another shape here.")
    rows = Rows(str(path), {name: whole(span, path) for name, span in spans.items()}, arrays)
    before = count(replay, counters)
    held = {name: (ring.oldest, ring.written) for name, ring in replay.rings().items()}
    count(replay, before)
    if held != rows.spans or not all(np.isfinite(n).all() and (n >= -1).all() for n in counters.values()):
        raise DamagedError(f"{path} does not have the rows that it counts.")
    transfer(replay, counters, rows)


def count(replay: Replay, counters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Give a buffer other counters; what they were."""
    before = {name: own.copy() for name, own in replay.counters().items()}
    for name, own in replay.counters().items():
        own[...] = counters[name]
    return before


def whole(span: Any, path: Path) -> tuple[int, int]:
    """From which row to which."""
    if not isinstance(span, list) or len(span) != 2 or not all(type(n) is int and 0 <= n < 2**60 for n in span):
        raise DamagedError(f"{path} does not say which rows it has.")
    if span[0] > span[1]:
        raise DamagedError(f"{path} does not say which rows it has.")
    return span[0], span[1]


def transfer(replay: Replay, counters: Any, rows: Rows) -> None:
    """Fill a buffer; its generator stays its own."""
    replay.restore(ReplayState({}, counters, replay.rng.bit_generator.state), [rows])


def moved(old: Replay, new: Replay) -> Replay:
    """`new` with all that `old` holds."""
    transfer(new, old.counters(), rows_of(old))
    return new
