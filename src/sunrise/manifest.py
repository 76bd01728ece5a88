"""What belongs to a checkpoint, with the size and the checksum of every file: nothing else is believed."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.errors import SunriseError

FORMAT = "sunrise-checkpoint-1"
NAME = re.compile(r"[0-9a-z][0-9a-z.-]*")
"""A file's name in a manifest: never a path."""


class DamagedError(SunriseError):
    """A checkpoint that is not what its manifest says."""


class Span(NamedTuple):
    """Rows of a ring, counted from the first ever written."""

    start: int
    stop: int


class Sum(NamedTuple):
    """What a file must be."""

    size: int
    sha256: str


class Segment(NamedTuple):
    """A file of replay, and the rows of each ring it holds."""

    file: str
    sum: Sum
    spans: dict[str, Span]


class Manifest(NamedTuple):
    """What belongs to a checkpoint."""

    timesteps: int
    files: dict[str, Sum]
    segments: list[Segment]

    def encode(self) -> bytes:
        body = json.dumps({"format": FORMAT, **self._asdict()}, sort_keys=True)
        return json.dumps({"sha256": hashlib.sha256(body.encode()).hexdigest(), "body": body}).encode()

    @staticmethod
    def decode(content: bytes) -> "Manifest":
        """A manifest from its bytes; one that is not exactly what was written is refused."""
        try:
            outer = json.loads(content)
            if hashlib.sha256(outer["body"].encode()).hexdigest() != outer["sha256"]:
                raise DamagedError("its manifest is damaged")
            body = json.loads(outer["body"])
            if body["format"] != FORMAT:
                raise DamagedError(f"its format is {body['format']!r}, not {FORMAT!r}")
            files = {name: Sum(*map_sum(entry)) for name, entry in body["files"].items()}
            segments = [
                Segment(file, Sum(*map_sum(entry)), {ring: Span(*map(int, span)) for ring, span in spans.items()})
                for file, entry, spans in body["segments"]
            ]
            timesteps = int(body["timesteps"])
        except DamagedError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedError("its manifest is damaged") from None
        for name in (*files, *(segment.file for segment in segments)):
            if not NAME.fullmatch(name):
                raise DamagedError(f"its manifest names {name!r}, which is no file of a checkpoint")
        return Manifest(timesteps, files, segments)


def map_sum(entry: Any) -> tuple[int, str]:
    """A size and a checksum, of the right kinds."""
    size, digest = entry
    return int(size), str(digest)


def sum_of(path: Path) -> Sum:
    """Size and checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Sum(os.fstat(file.fileno()).st_size, digest)


def check(path: Path, wanted: Sum) -> None:
    """Refuse a file that is not what it must be; its size is looked at before anything is read."""
    try:
        if path.is_symlink() or not path.is_file():
            raise DamagedError(f"{path.name} is missing")
        if path.stat().st_size != wanted.size:
            raise DamagedError(f"{path.name} has {path.stat().st_size:,} bytes instead of {wanted.size:,}")
        if sum_of(path) != wanted:
            raise DamagedError(f"{path.name} does not have its checksum")
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}") from None
