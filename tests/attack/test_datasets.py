"""A stranger's dataset is refused by a sentence: nothing in it runs, is waited for, or takes memory by its claims."""

import os
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from PIL import Image

from sunrise.errors import DamagedError, SunriseError
from sunrise.offline.dataset import open_dataset, place_of
from tests.runs.test_offline import counted, datasets, file_of, filled  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def link_of_a_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


@pytest.mark.parametrize("plant", [fifo, link, link_of_a_folder])
def test_only_a_file_of_its_own_is_opened(plant: Callable[[Path], None]) -> None:
    name = counted(f"toy/{plant.__name__}-v0")
    plant(file_of(name))
    with pytest.raises(DamagedError, match=r"is a (FIFO|link)"):
        open_dataset(name)


def claimed(group: h5py.Group) -> None:
    for name, array in list(group.items()):
        del group[name]
        group.create_dataset(name, (10**12 + (name == "observations"), *array.shape[1:]), array.dtype, chunks=True)


def words(group: h5py.Group) -> None:
    del group["rewards"]
    group.create_dataset("rewards", data=["a", "b", "c", "d"])


def parts(group: h5py.Group) -> None:
    group.move("rewards", "before")
    group.create_group("rewards")["x"] = group["before"]


def missing(group: h5py.Group) -> None:
    del group["terminations"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (claimed, "needs [0-9.]+ GB of memory"),
        (words, "is not an array of numbers"),
        (parts, "is not an array of numbers"),
        (missing, "toy/missing-v0 cannot be read"),
    ],
)
def test_arrays_are_what_they_claim_to_be(damage: Callable[[h5py.Group], None], said: str) -> None:
    name = counted(f"toy/{damage.__name__}-v0")
    with h5py.File(file_of(name), "a") as file:
        damage(file["episode_1"])
    with pytest.raises(SunriseError, match=said):
        filled(name, buffer_size=20)


def test_what_is_not_needed_is_not_read() -> None:
    name = counted("toy/infos-v0")
    with h5py.File(file_of(name), "a") as file:
        file["episode_0"].create_group("infos")["again"] = file["episode_0"]  # a circle
        file["episode_1"].create_dataset("infos/claimed", (10**14,), "f8", chunks=True)
    assert len(filled(name)) == 12


def test_an_episode_without_a_step_has_no_transitions() -> None:
    name = counted("toy/gap-v0")
    with h5py.File(file_of(name), "a") as file:
        for key, array in list(file["episode_1"].items()):
            values = array[: int(key == "observations")]
            del file["episode_1"][key]
            file["episode_1"].create_dataset(key, data=values)
    assert len(filled(name)) == 8


def test_no_decoder_of_pictures_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "open", None)  # some of its decoders start programs
    shape = (32, 32, 3)
    for name, plain in (("toy/jpeg-v0", False), ("toy/plain-v0", True)):
        buffer = EpisodeBuffer(
            observations=np.zeros((3, *shape), np.uint8),
            actions=np.zeros((2, 1), np.float32),
            rewards=[0.0, 0.0],
            terminations=[False, True],
            truncations=[False, False],
        )
        spaces = {"observation_space": gym.spaces.Box(0, 255, shape, np.uint8), "action_space": gym.spaces.Box(-1, 1)}
        minari.create_dataset_from_buffers(name, [buffer], jpeg_encoding=not plain, **spaces)
    with pytest.raises(SunriseError, match="has its pictures as JPEG"):
        open_dataset("toy/jpeg-v0")
    (episode,) = open_dataset("toy/plain-v0").episodes()
    assert episode.observations.shape == (3, *shape)


def test_an_id_is_short() -> None:
    with pytest.raises(SunriseError, match="is no id of a dataset"):
        place_of("a" * 100_000)
