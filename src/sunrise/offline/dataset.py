"""Minari datasets on this machine. One may come from a stranger: reading it makes nothing and runs nothing of theirs.

Minari itself makes the environment that a dataset names where the dataset does not say its spaces, opens its pictures
with whatever decoder they ask for, and takes the memory that it claims; HDF5 can lead to other files. So Minari's
functions only read the spaces, and the arrays are read here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sunrise.errors import DamagedError, MissingExtraError, SunriseError
from sunrise.files.documents import LARGE, decode_mapping
from sunrise.files.folder import Folder
from sunrise.replay import memory
from sunrise.store.tensors import handle_of

FILE, LARGEST, LONGEST = "main_data.hdf5", 2**50, 200
"""The file with the arrays, its most bytes, and the most characters of an id."""


class Episode(NamedTuple):
    """One episode of T steps as it was stored."""

    observations: Any
    """T + 1 of them; each leaf has them on axis 0."""
    actions: np.ndarray
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray


class Dataset(NamedTuple):
    """A dataset that may be read."""

    name: str
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    lengths: list[int]
    """Steps of each episode."""
    folder: Folder

    def episodes(self, first: int = 0) -> Iterator[Episode]:
        """The episodes from one on, read one at a time."""
        with arrays_of(self.folder, self.name) as file:
            for number in range(first, len(self.lengths)):
                episode = inside(file, f"episode_{number}")
                parts = [stored(episode, name) for name in Episode._fields]
                size = sum(array.nbytes for part in parts for array in part.values())
                memory.require(size, f"episode {number} of the dataset {self.name}", "leave it out", say=False)
                read = [{name: array[()] for name, array in part.items()} for part in parts]
                yield Episode(*(part.get("", part) for part in read))


def require_minari() -> None:
    """Refuse to go on without the extra."""
    try:
        import h5py  # noqa: F401
        import minari  # noqa: F401
    except ImportError:
        raise MissingExtraError("a dataset of Minari", "minari") from None


def place_of(name: str) -> Path:
    """The folder of a dataset, whether there is one or not; MINARI_DATASETS_PATH is heeded."""
    require_minari()
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage.datasets_root_dir import get_dataset_path

    try:
        parse_dataset_id(name if len(name) <= LONGEST else "")
    except (ValueError, TypeError):
        raise SunriseError(f"{name!r} is no id of a dataset: it must be like hopper/sunrise-v0.") from None
    return Path(get_dataset_path(name))


def open_dataset(name: str) -> Dataset:
    """A dataset of this machine by its id."""
    place = place_of(name)
    if not (place / "data").is_dir():
        raise SunriseError(
            f"there is no dataset {name} in {place.parent}: `minari list local` shows what there is, "
            f"`minari download {name}` fetches one."
        )
    folder = Folder(place).sub("data")
    try:
        said = decode_mapping(folder.read("metadata.json", LARGE), constants=True)
    except (OSError, ValueError) as error:
        raise DamagedError(f"the dataset {name} cannot be read: {error}.") from None
    if not all(isinstance(said.get(space), str) for space in ("observation_space", "action_space")):
        raise SunriseError(
            f"the dataset {name} does not say its spaces: to find out, Minari would make the environment that it "
            "names, which runs code. Make the dataset anew with its spaces."
        )
    if said.get("data_format") != "hdf5":
        raise SunriseError(f"the dataset {name} is stored as {said.get('data_format')!r}, but only hdf5 is read.")
    from minari.serialization import deserialize_space

    try:
        observed, done = (
            deserialize_space(decode_mapping(said[space], constants=True))
            for space in ("observation_space", "action_space")
        )
    except Exception as error:
        raise DamagedError(f"the dataset {name} cannot be read: its spaces are none: {error}.") from None
    if said.get("jpeg_encoding", True) and has_pictures(observed):
        raise SunriseError(
            f"the dataset {name} has its pictures as JPEG, which are not quite what the agent saw: make it anew with "
            "jpeg_encoding=False, as `sunrise collect` does."
        )
    with arrays_of(folder, name) as file:
        rewards = [stored(inside(file, f"episode_{number}"), "rewards") for number in range(len(file))]
        lengths = [len(array) for part in rewards for array in part.values()]
    return Dataset(name, observed, done, lengths, folder)


def has_pictures(space: gym.Space[Any]) -> bool:
    """Whether Minari takes observations for pictures."""
    from minari.dataset.minari_storage import is_image_space

    return any(map(is_image_space, space.spaces.values() if isinstance(space, gym.spaces.Dict) else [space]))


@contextmanager
def arrays_of(folder: Folder, name: str) -> Iterator[Any]:
    """The open HDF5 file of a dataset; whatever is wrong with it is one kind of error."""
    import h5py

    try:
        with folder.open(FILE, LARGEST) as file, h5py.File(handle_of(file), "r") as found:
            yield found
    except (DamagedError, OSError, KeyError, TypeError, RuntimeError) as error:
        raise DamagedError(f"the dataset {name} cannot be read: {error}.") from None


def inside(group: Any, key: str) -> Any:
    """What a group has by a name, in the same file."""
    import h5py

    if not isinstance(group.get(key, h5py.HardLink(), getlink=True), h5py.HardLink):
        raise DamagedError(f"the file leads to another file, at {group.name}/{key}")
    found = group[key]
    if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
        raise DamagedError(f"the file leads to another file, at {found.name}")
    return found


def stored(group: Any, key: str) -> dict[str, Any]:
    """Arrays that a group has by a name, unread; only those of an observation of several parts have names."""
    import h5py

    found = inside(group, key)
    several = isinstance(found, h5py.Group) and key == Episode._fields[0]
    arrays = {name: inside(found, name) for name in found} if several else {"": found}
    for array in arrays.values():
        if not isinstance(array, h5py.Dataset) or array.dtype.kind not in "fiub":
            raise DamagedError(f"{group.name}/{key} is not an array of numbers")
    return arrays
