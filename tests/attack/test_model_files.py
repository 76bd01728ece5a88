"""A saved model, a replay file or a settings file of a stranger: refused by a sentence, soon and in little memory."""

import io
import json
import os
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sunrise import SAC
from sunrise.compat import archive
from sunrise.config.marked import read_yaml
from sunrise.errors import DamagedError
from sunrise.files.documents import SEALED
from sunrise.files.folder import Folder
from sunrise.store.tensors import write_arrays
from tests.compat.models import sac
from tests.support import tiny

QUIET: dict[str, Any] = {"log_interval": None, "progress_bar": False}


@pytest.fixture(scope="module")
def model() -> SAC:
    """A model with eight rows in its replay buffer."""
    return sac().learn(8, **QUIET)


@pytest.fixture
def saved(model: SAC, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


# -- a zip -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 100_000])
def test_a_zip_whose_json_is_none_is_refused(text: bytes, saved: Path) -> None:
    with zipfile.ZipFile(saved) as good:
        tensors = good.read(archive.TENSORS)
    with zipfile.ZipFile(saved, "w") as bad:
        bad.writestr(archive.ABOUT, text)
        bad.writestr(archive.TENSORS, tensors)
    with pytest.raises(DamagedError, match="is not a file of ours"):
        SAC.load(saved)


def test_a_zip_whose_list_claims_the_whole_file_is_not_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2**33
    large = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, size, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    with (tmp_path / "model.zip").open("wb") as file:
        file.truncate(size)  # takes no place on the disk
        file.seek(size)
        file.write(large + locator + archive.END.pack(b"PK\5\6", 0, 0, 2, 2, 0, 0, 0))
    monkeypatch.setattr(zipfile, "ZipFile", None)  # whoever gets so far reads 8 GiB
    with pytest.raises(DamagedError, match="it does not end as ours do"):
        SAC.load(tmp_path / "model.zip")


def test_a_zip_of_gigabytes_is_read_as_any_other(model: SAC, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = saved.read_bytes()
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)  # from where on zipfile writes what only a large one needs
    model.save(saved)
    assert saved.read_bytes().count(archive.LOCATOR) > small.count(archive.LOCATOR)
    assert tiny.same_bits(SAC.load(saved).ensemble, model.ensemble)


def test_a_zip_is_whole_where_the_disk_takes_a_part_at_a_time(
    model: SAC, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(io.FileIO):
        def write(self, content: Any) -> int:
            return super().write(memoryview(content)[:1000])

    def slow(descriptor: int, mode: str, buffering: int = -1) -> Any:
        return Slow(descriptor, "w+") if mode == "w+b" and buffering == 0 else fdopen(descriptor, mode, buffering)

    fdopen, content = os.fdopen, saved.read_bytes()
    monkeypatch.setattr(os, "fdopen", slow)
    model.save(saved)
    assert saved.read_bytes() == content


# -- parameters and replay ---------------------------------------------------------------------------------------------


def test_parameters_of_a_damaged_file_are_refused(model: SAC, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="checksum"):
        model.set_parameters(path)


@pytest.mark.parametrize("use", ["set_parameters", "load_replay_buffer"])
def test_what_there_is_no_room_for_is_not_read(use: str, model: SAC, tmp_path: Path) -> None:
    size = 2**33
    header = json.dumps(
        {"__metadata__": {"about": "{}"}, "x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    )
    with (tmp_path / "x.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(8 + len(header) + size)  # takes no place on the disk
    with pytest.raises(DamagedError, match="more than there is room for"):
        getattr(model, use)(tmp_path / "x.safetensors")


@pytest.mark.parametrize("wrong", [9, -5, 2**62])
def test_a_replay_file_that_miscounts_its_rows_changes_nothing(wrong: int, model: SAC, tmp_path: Path) -> None:
    assert model.trainer is not None
    replay = model.trainer.replay
    rows = {f"transitions/{name}": array for name, array in replay.rings()["transitions"].since(0).items()}
    about = {"format": "sunrise-replay-1", "spans": {"transitions": [0, 8]}, SEALED: True}
    counted = {**rows, "counter/written": np.asarray(wrong)}
    Folder(tmp_path).write_by("rows.safetensors", lambda file: write_arrays(file, counted, about, seal=True))
    with pytest.raises(DamagedError, match="does not have the rows that it counts"):
        model.load_replay_buffer(tmp_path / "rows.safetensors")
    assert len(replay) == 8
    counted["counter/written"] = np.asarray(8)
    Folder(tmp_path).write_by("rows.safetensors", lambda file: write_arrays(file, counted, about, seal=True))
    model.load_replay_buffer(tmp_path / "rows.safetensors")  # nothing else was wrong with it


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["9" * 5000, "1" * 200_000 + "x"], ids=["a number beyond all use", "almost a number"])
def test_a_long_number_in_a_settings_file_is_a_word(text: str, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(f"learning_rate: {text}")
    begun = time.monotonic()
    assert read_yaml(tmp_path / "settings.yaml").value["learning_rate"].value == text
    assert time.monotonic() - begun < 5  # it would take an hour
