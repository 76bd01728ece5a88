"""Minari datasets on this machine. One may come from a stranger: reading it makes nothing and runs nothing of theirs.

Minari itself makes the environment that a dataset names where the dataset does not say its spaces, and HDF5 can lead to
other files. Both are refused before Minari sees the dataset, and what `recover_environment` would make is never asked
for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sunrise.errors import DamagedError, MissingExtraError, SunriseError
from sunrise.files.documents import LARGE, decode_mapping
from sunrise.files.folder import Folder

FILE = "main_data.hdf5"


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
    stored: Any
    """Minari's own object."""

    def episodes(self, first: int = 0) -> Iterator[Episode]:
        """The episodes from one on, read one at a time."""
        for found in self.stored.iterate_episodes(range(first, len(self.lengths))):
            yield Episode(*(getattr(found, name) for name in Episode._fields))


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
        parse_dataset_id(name)
    except (ValueError, TypeError):
        raise SunriseError(f"{name!r} is no id of a dataset: it must be like hopper/sunrise-v0.") from None
    return Path(get_dataset_path(name))


def open_dataset(name: str) -> Dataset:
    """A dataset of this machine by its id."""
    folder = place_of(name)
    if not (folder / "data").is_dir():
        raise SunriseError(
            f"there is no dataset {name} in {folder.parent}: `minari list local` shows what there is, "
            f"`minari download {name}` fetches one."
        )
    try:
        said = decode_mapping(Folder(folder / "data").read("metadata.json", LARGE), constants=True)
    except (OSError, ValueError) as error:
        raise DamagedError(f"the dataset {name} cannot be read: {error}.") from None
    if not all(isinstance(said.get(space), str) for space in ("observation_space", "action_space")):
        raise SunriseError(
            f"the dataset {name} does not say its spaces: to find out, Minari would make the environment that it "
            "names, which runs code. Make the dataset anew with its spaces."
        )
    if said.get("data_format") != "hdf5":
        raise SunriseError(f"the dataset {name} is stored as {said.get('data_format')!r}, but only hdf5 is read.")
    lengths = own_lengths(folder / "data" / FILE, name)

    from minari import MinariDataset

    try:
        stored = MinariDataset(folder / "data")
    except Exception as error:
        raise DamagedError(f"the dataset {name} cannot be read: {error}.") from None
    return Dataset(name, stored.observation_space, stored.action_space, lengths, stored)


def own_lengths(path: Path, name: str) -> list[int]:
    """The steps of each episode of a file, which must lead nowhere else."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            groups, seen = [file], set()
            while groups:
                group = groups.pop()
                for key in group:
                    if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                        raise DamagedError(f"the dataset {name} leads to another file, at {group.name}/{key}.")
                    entry = group[key]
                    if isinstance(entry, h5py.Dataset) and (entry.external or entry.is_virtual):
                        raise DamagedError(f"the dataset {name} leads to another file, at {entry.name}.")
                    address = h5py.h5o.get_info(entry.id).addr
                    if isinstance(entry, h5py.Group) and address not in seen:
                        seen.add(address)
                        groups.append(entry)
            return [len(file[f"episode_{i}"]["rewards"]) for i in range(len(file))]
    except (OSError, KeyError, TypeError, RuntimeError) as error:
        raise DamagedError(f"the dataset {name} cannot be read: {error}.") from None
