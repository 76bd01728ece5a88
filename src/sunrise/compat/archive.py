"""A saved model as one file: safetensors, or a zip of JSON and safetensors. Nothing in either is executed.

A zip of ours has two members by fixed names, which are stored as they are: nothing is unpacked to a path, and nothing
grows when it is read.
"""

import io
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sunrise.errors import DamagedError, SunriseError
from sunrise.files.documents import LARGE, SEALED, decode_mapping
from sunrise.files.folder import Folder
from sunrise.store.tensors import open_model, read_about, save_tree, write_arrays
from sunrise.trees import named_leaves

ABOUT, TENSORS = "model.json", "model.safetensors"
SUFFIXES = (".safetensors", ".zip")
END = struct.Struct("<4s4H2LH")
"""The end of a zip: signature, disks, members (twice), size and place of their list, length of a comment."""
LARGE_END, LOCATOR = struct.Struct("<4sQ2H2L4Q"), b"PK\6\7"
"""What stands before that in a zip of gigabytes (zip64), with 20 bytes after it that begin like this."""
MEMBERS, LIST = 32, 2**14
"""The most that is looked at of a zip's list: members and bytes."""


def named(path: str | Path, suffix: str) -> Path:
    """Where a model is saved: `hopper` is `hopper.safetensors`, or what `suffix` says."""
    path = Path(path)
    return path if path.suffix in SUFFIXES else path.with_name(path.name + suffix)


def found(path: str | Path) -> Path:
    """Where a model is: by its whole name, without its suffix, or by the name that Stable-Baselines3 would give it."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix in SUFFIXES else path
    first = path if path.suffix in SUFFIXES else path.with_name(path.name + SUFFIXES[0])
    others = [stem.with_name(stem.name + suffix) for suffix in SUFFIXES]
    return next((file for file in (first, *others) if file.exists()), first)


def save(path: Path, tree: Any, about: Mapping[str, Any]) -> None:
    """Write a model whole or not at all."""
    folder = Folder(path.parent)
    if path.suffix != ".zip":
        save_tree(folder, path.name, tree, about)
        return
    text = {**about, SEALED: True}

    def fill(file: BinaryIO) -> None:
        with tempfile.TemporaryFile() as part:
            write_arrays(part, {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()}, text, seal=True)
            part.seek(0)
            whole = io.BufferedRandom(file)  # type: ignore[arg-type]  # writes all of it, or raises
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(ABOUT), json.dumps(text))
                with archive.open(zipfile.ZipInfo(TENSORS), "w", force_zip64=True) as member:
                    shutil.copyfileobj(part, member, 2**20)
            whole.detach()

    folder.make()
    folder.write_by(path.name, fill)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The safetensors file of a saved model, from whichever form."""
    with open_model(path) as file:
        if path.suffix != ".zip":
            yield file
            return
        with tempfile.TemporaryFile() as part:
            try:
                about = unpack(file, path, part)
            except (zipfile.BadZipFile, struct.error, ValueError, RuntimeError, OSError, EOFError) as error:
                raise DamagedError(f"{path} is not a file of ours, or it is damaged: {error}") from None
            if about != read_about(part, path):
                raise DamagedError(f"{path} is damaged: its two parts are not of one model.")
            yield part


def unpack(file: BinaryIO, path: Path, part: Any) -> dict[str, Any]:
    """Copy the tensors of an open zip to `part`; returns what the JSON beside them says."""
    size = file.seek(0, 2)
    file.seek(max(size - END.size - 20 - LARGE_END.size, 0))
    tail = file.read()
    signature, *_, members, listed, _, comment = END.unpack(tail[-END.size :])
    if tail[-END.size - 20 :].startswith(LOCATOR):
        listed = max(listed, LARGE_END.unpack(tail[: LARGE_END.size])[8])
    if signature != b"PK\5\6" or comment or members > MEMBERS or listed > LIST:
        raise ValueError("it does not end as ours do")
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if {"data", "pytorch_version"} & infos.keys():
            raise SunriseError(
                f"{path} is a model of Stable-Baselines3: its files are pickles, which are not read here. "
                "Train a model with sunrise, or load this one with stable_baselines3."
            )
        if sorted(infos) != [ABOUT, TENSORS] or len(archive.infolist()) != 2:
            raise ValueError("it has other members than ours do")
        for info in infos.values():
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
                raise ValueError("its members are not stored as they are")
            if info.file_size > (size if info.filename == TENSORS else min(size, LARGE)):
                raise ValueError("a member is larger than the file")
        with archive.open(infos[TENSORS]) as member:
            shutil.copyfileobj(member, part, 2**20)
        part.flush()
        return decode_mapping(archive.read(infos[ABOUT]))
