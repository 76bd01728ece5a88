"""One checkpoint as it is read: its agents, its arrays, its facts and the rows of its replay."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from sunrise.errors import DamagedError
from sunrise.files import documents
from sunrise.files.folder import Folder
from sunrise.store.manifest import AGENTS, FACTS, MANIFEST, STATE, Manifest, Segment
from sunrise.store.tensors import LARGEST_MODEL, load_tree, read_about, read_arrays

LARGEST = {AGENTS: LARGEST_MODEL, STATE: LARGEST_MODEL, FACTS: documents.LARGE, MANIFEST: documents.LARGE}
"""Bytes of each file of a checkpoint; what is larger is not read."""


class Checkpoint(NamedTuple):
    """A checkpoint whose files are all what its manifest says."""

    folder: Folder
    replay: Folder
    manifest: Manifest

    @property
    def path(self) -> Path:
        return self.folder.path

    @contextmanager
    def open_agents(self) -> Iterator[BinaryIO]:
        """The file of the agents."""
        with damage(), self.folder.open(AGENTS, LARGEST[AGENTS]) as file:
            yield file

    def about(self) -> dict[str, Any]:
        """What the file of the agents says about itself."""
        with self.open_agents() as file:
            return read_about(file, AGENTS)

    def load_agents(self, like: Any) -> Any:
        """The agents as a tree like another."""
        with self.open_agents() as file:
            return load_tree(file, AGENTS, like)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays beside the agents."""
        with damage(), self.folder.open(STATE, LARGEST[STATE]) as file:
            return read_arrays(file, STATE)

    def facts(self) -> dict[str, Any]:
        """Everything that is no array."""
        with damage():
            return documents.decode_mapping(self.folder.read(FACTS, LARGEST[FACTS]), constants=True)

    def segment(self, segment: Segment) -> dict[str, np.ndarray]:
        """The rows of a segment of replay, `{ring}/{array}`."""
        with damage(), self.replay.open(segment.file, segment.sum.size) as file:
            return read_arrays(file, segment.file)

    def largest_replay(self) -> int:
        """Bytes that the segments can have together, by what the settings ask for."""
        about = self.about()
        try:
            settings = about["settings"]
            numbers = 2 * documents.count_numbers(about["observation_space"]) + documents.count_numbers(
                about["action_space"]
            )
            row = 8 * numbers + int(settings["ensemble_size"]) + 64
            return 2**24 + 4 * row * int(settings["buffer_size"])
        except (KeyError, TypeError, ValueError):
            raise DamagedError(f"{AGENTS} does not say what it is of") from None


@contextmanager
def damage() -> Iterator[None]:
    """Whatever is wrong with a file of a checkpoint is damage."""
    try:
        yield
    except OSError as error:
        raise DamagedError(f"{error.filename or 'a file'} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DamagedError(f"a file cannot be read: {error}") from None
