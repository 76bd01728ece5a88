"""What belongs to a checkpoint, with the size and the checksum of every file: nothing else is believed."""

import hashlib
import json
import re
from typing import Any, BinaryIO, NamedTuple

from sunrise.errors import DamagedError
from sunrise.files.documents import decode_mapping
from sunrise.files.folder import Folder

FORMAT = "sunrise-checkpoint-1"
AGENTS, STATE, FACTS, MANIFEST = "agents.safetensors", "state.safetensors", "state.json", "manifest.json"
CHUNK = 2**18
SEGMENT = re.compile(r"segment-(\d{6,12})\.safetensors")


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

    @property
    def number(self) -> int:
        """Where it is in the order of all that were ever written."""
        found = SEGMENT.fullmatch(self.file)
        assert found is not None
        return int(found[1])


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
            outer = decode_mapping(content)
            if hashlib.sha256(outer["body"].encode()).hexdigest() != outer["sha256"]:
                raise DamagedError("its manifest is damaged")
            body = decode_mapping(outer["body"])
            if body["format"] != FORMAT:
                raise DamagedError(f"its format is {body['format']!r}, not {FORMAT!r}")
            files = {name: read_sum(entry) for name, entry in body["files"].items()}
            segments = [
                Segment(file, read_sum(entry), {ring: Span(*map(count, span)) for ring, span in spans.items()})
                for file, entry, spans in body["segments"]
            ]
            timesteps = count(body["timesteps"])
            names = [*files, *(segment.file for segment in segments)]
            strange = [n for n in names if n not in (AGENTS, STATE, FACTS) and not SEGMENT.fullmatch(n)]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedError("its manifest is damaged") from None
        if strange:
            raise DamagedError(f"its manifest names {strange[0]!r}, which is no file of a checkpoint")
        if files.keys() != {AGENTS, STATE, FACTS} or len(set(names)) != len(names):
            raise DamagedError("its manifest does not name the files of a checkpoint")
        return Manifest(timesteps, files, segments)


def read_sum(entry: Any) -> Sum:
    """A size and a checksum, of the right kinds."""
    size, digest = entry
    return Sum(count(size), str(digest))


def count(number: Any) -> int:
    """A whole number that is not negative."""
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{number!r} is no count")
    return number


def sum_of(file: BinaryIO) -> Sum:
    """Size and checksum of an open file."""
    file.seek(0)
    total = hashlib.sha256()
    while chunk := file.read(CHUNK):
        total.update(chunk)
    return Sum(file.tell(), total.hexdigest())


def check(folder: Folder, name: str, wanted: Sum, largest: int) -> None:
    """Refuse a file that is not what it must be; its size is looked at before anything is read."""
    with folder.open(name, largest) as file:
        size = file.seek(0, 2)
        if size != wanted.size:
            raise DamagedError(f"{name} has {size:,} bytes instead of {wanted.size:,}")
        if sum_of(file) != wanted:
            raise DamagedError(f"{name} does not have its checksum")
