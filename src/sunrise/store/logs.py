"""metrics.jsonl and eval.csv: a row an event, appended as it happens, with a running sum that checkpoints vouch for."""

import csv
import hashlib
import io
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sunrise.errors import DamagedError
from sunrise.files.documents import DIGITS, decode_mapping, finite
from sunrise.files.folder import Folder

METRICS, EVALUATIONS = "metrics.jsonl", "eval.csv"
NAMES = (METRICS, EVALUATIONS)
EVAL_FIELDS = ("timesteps", "mean_return", "std_return", "min_return", "max_return", "episodes")
LARGEST = 2**32
CHUNK = 2**20
log = logging.getLogger("sunrise")


class Vouched(NamedTuple):
    """How long a log was, and the checksum of that; empty where only the length is known."""

    size: int
    sha256: str = ""


class Logs:
    """The logs of one run."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._sums: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}

    def append(self, name: str, row: str) -> None:
        """Add a row."""
        self._know(name)
        content = row.encode()
        self.folder.append(name, content)
        self._sums[name].update(content)
        self._sizes[name] += len(content)

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        self.append(METRICS, json.dumps(finite(row)) + "\n")

    def append_evaluation(self, row: Sequence[float]) -> None:
        self._know(EVALUATIONS)
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if not self._sizes[EVALUATIONS]:
            writer.writerow(EVAL_FIELDS)
        writer.writerow(row)
        self.append(EVALUATIONS, text.getvalue())

    def state(self) -> dict[str, Vouched]:
        """How the logs are now."""
        for name in NAMES:
            self._know(name)
        return {name: Vouched(self._sizes[name], self._sums[name].hexdigest()) for name in NAMES}

    def sync(self) -> None:
        """Force the logs to the disk."""
        for name in NAMES:
            with suppress(FileNotFoundError), self.folder.open(name, LARGEST) as file:
                os.fsync(file.fileno())

    def restore(self, vouched: Mapping[str, Any]) -> None:
        """Forget what was logged after a checkpoint: it will be logged again."""
        entries = read_vouched(vouched)
        for name in NAMES:
            wanted, path = entries.get(name, Vouched(0)), self.folder.path / name
            found = self.folder.status(name)
            if found is not None and wanted.size == 0:
                self.folder.remove(name)
            elif found is not None and found.st_size >= wanted.size:
                self.folder.truncate(name, wanted.size)
            elif wanted.size:
                log.warning("%s is shorter than it was at the checkpoint: rows are missing from it.", path)
                wanted = Vouched(0)
            self._sums.pop(name, None)
            self._know(name)
            if wanted.sha256 and self._sums[name].hexdigest() != wanted.sha256:
                log.warning("%s is not what it was at the checkpoint: its rows were changed.", path)

    def _know(self, name: str) -> None:
        """Sum up what is there, once; from then on it is known."""
        if name not in self._sums:
            content = _summed(self.folder, name, LARGEST)
            self._sums[name], self._sizes[name] = content

    def read(self, name: str, vouched: Mapping[str, Any]) -> list[str]:
        """The whole lines of a log; one that is not what is vouched for is refused."""
        wanted = read_vouched(vouched).get(name)
        try:
            content = self.folder.read(name, LARGEST)
        except FileNotFoundError:
            content = b""
        if wanted is not None and (
            len(content) != wanted.size or (wanted.sha256 and hashlib.sha256(content).hexdigest() != wanted.sha256)
        ):
            raise DamagedError(f"{self.folder.path / name} is not what the run wrote: its rows were changed.")
        try:
            return content.decode().split("\n")[:-1]  # what has no end is being written
        except ValueError:
            raise DamagedError(f"{self.folder.path / name} is damaged.") from None

    def read_metrics(self, vouched: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        rows = []
        for number, line in enumerate(self.read(METRICS, vouched), 1):
            try:
                rows.append(decode_mapping(line))
            except ValueError as error:
                raise DamagedError(f"{self.folder.path / METRICS} is damaged in line {number}: {error}.") from None
        return rows

    def read_eval(self, vouched: Mapping[str, Any]) -> list[dict[str, float]]:
        """The rows of eval.csv as numbers."""
        lines = self.read(EVALUATIONS, vouched)
        if lines and lines[0] != ",".join(EVAL_FIELDS):
            raise DamagedError(f"{self.folder.path / EVALUATIONS} is damaged in line 1.")
        rows = []
        for number, line in enumerate(lines[1:], 2):
            try:
                rows.append(dict(zip(EVAL_FIELDS, map(_number, line.split(",")), strict=True)))
            except ValueError:
                raise DamagedError(f"{self.folder.path / EVALUATIONS} is damaged in line {number}.") from None
        return rows


def read_vouched(facts: Mapping[str, Any]) -> dict[str, Vouched]:
    """What a checkpoint or a status says of the logs; older ones have the length alone."""
    found = {}
    for name, entry in facts.items():
        parts = tuple(entry) if isinstance(entry, list | tuple) else (entry,)
        kinds = tuple(type(part) for part in parts)
        if name not in NAMES or kinds not in ((int,), (int, str)) or not 0 <= parts[0] <= LARGEST:
            raise DamagedError(f"what is said of {name} is no size and checksum")
        found[name] = Vouched(*parts)
    return found


def _summed(folder: Folder, name: str, largest: int) -> tuple[Any, int]:
    """The running sum of a file and its size; of none, that of nothing."""
    total, size = hashlib.sha256(), 0
    with suppress(FileNotFoundError), folder.open(name, largest) as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
            size += len(chunk)
    return total, size


def _number(text: str) -> float:
    if len(text) > DIGITS:
        raise ValueError("a number is too long")
    return int(text) if text.isdecimal() else float(text)
