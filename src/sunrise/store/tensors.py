"""Trees of arrays as safetensors files: names and numbers, nothing that can run. Written whole or not at all."""

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from sunrise.errors import DamagedError
from sunrise.files.documents import SEAL, SEALED, decode_mapping
from sunrise.files.folder import Folder, open_file, write_all
from sunrise.trees import named_leaves

DTYPES = {
    np.dtype(name).newbyteorder("<"): f"{name[0].upper()}{8 * np.dtype(name).itemsize}"
    for name in (
        "float64",
        "float32",
        "float16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint64",
        "uint32",
        "uint16",
        "uint8",
    )
}
DTYPES[np.dtype(bool)] = "BOOL"
METADATA = "__metadata__"
LARGEST_HEADER = 16 * 2**20
LARGEST_MODEL = 2**34
"""Bytes of a file of agents; what is in it is bounded by what its settings ask for."""


def write_arrays(
    file: BinaryIO, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None, seal: bool = False
) -> None:
    """Write arrays to an open file, with a checksum inside where nothing else vouches for it.

    The format's own library takes paths, and writes beside them by itself.
    """
    flat = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    names = sorted(flat, key=lambda name: (-flat[name].dtype.itemsize, name))  # so that all are aligned
    header: dict[str, Any] = {} if about is None else {METADATA: {"about": json.dumps(about)}}
    place = 0
    for name in names:
        array = flat[name]
        offsets = [place, place := place + array.nbytes]
        header[name] = {"dtype": DTYPES[array.dtype], "shape": array.shape, "data_offsets": offsets}
    content = [flat[name].reshape(-1).view(np.uint8).data for name in names]
    if seal:
        header[METADATA][SEAL] = _sum(header, content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_all(file.fileno(), struct.pack("<Q", len(text)) + text)
    for part in content:
        write_all(file.fileno(), part)


def require_seal(file: BinaryIO, name: object) -> None:
    """Refuse a file whose checksum inside does not fit; one that was written without is taken as it is."""
    with tensors_of(file, name):  # its header is whole
        file.seek(0)
        (size,) = struct.unpack("<Q", file.read(8))
        header = decode_mapping(file.read(size))
        metadata = header.get(METADATA, {})
        seal = metadata.pop(SEAL, None)
        if seal is None and SEALED not in decode_mapping(metadata["about"]):
            return
        if seal != _sum(header, iter(lambda: file.read(2**18), b"")):
            raise ValueError("it does not have its checksum")


def _sum(header: Mapping[str, Any], content: Iterable[bytes | memoryview]) -> str:
    """Checksum of a file: its header as it is without one, and its data."""
    total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for part in content:
        total.update(part)
    return total.hexdigest()


def save_tree(folder: Folder, name: str, tree: Any, about: Mapping[str, Any]) -> None:
    """Write a tree and what is to be known about it."""
    arrays = {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()}
    folder.make()
    folder.write_by(name, lambda file: write_arrays(file, arrays, {**about, SEALED: True}, seal=True))


@contextmanager
def tensors_of(file: BinaryIO, name: object) -> Iterator[Any]:
    """An open safetensors file; whatever is wrong with it is one kind of error."""
    try:
        file.seek(0)
        (header,) = struct.unpack("<Q", file.read(8))
        if header > LARGEST_HEADER:
            raise ValueError(f"a header of {header:,} bytes")
        with safe_open(handle_of(file), framework="numpy", backend="pread") as tensors:
            yield tensors
    except (SafetensorError, OSError, struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedError(f"{name} is not a file of ours, or it is damaged: {error}") from None


def handle_of(file: BinaryIO) -> str:
    """A path of an open file, for those who take paths alone."""
    return f"/dev/fd/{file.fileno()}"


def read_arrays(file: BinaryIO, name: object, most: int | None = None) -> dict[str, np.ndarray]:
    """The arrays of an open safetensors file; where there is only room for `most` bytes, a larger one is refused."""
    if most is not None and file.seek(0, 2) > LARGEST_HEADER + most:
        raise DamagedError(f"{name} does not fit: it has more than there is room for.")
    with tensors_of(file, name) as tensors:
        return dict(tensors.get_tensors())


def read_about(file: BinaryIO, name: object) -> dict[str, Any]:
    """What an open file says about itself."""
    with tensors_of(file, name) as tensors:
        return decode_mapping((tensors.metadata() or {})["about"])


def load_tree(file: BinaryIO, name: object, like: Any) -> Any:
    """Read a tree of the same shape as `like`; every name, shape and type must agree, and is looked at first."""
    import jax

    wanted = named_leaves(like)
    with tensors_of(file, name) as tensors:
        missing = set(wanted).symmetric_difference(tensors.keys())
        if missing:
            raise DamagedError(f"{name} does not fit: {sorted(missing)[0]!r} is on one side only.")
        for leaf, expected in wanted.items():
            shape = tuple(tensors.get_slice(leaf).get_shape())
            if shape != expected.shape:
                raise DamagedError(f"{name} does not fit: {leaf} is {shape}, {expected.shape} was expected.")
        arrays = {leaf: tensors.get_tensor(leaf) for leaf in wanted}
    for leaf, expected in wanted.items():
        if arrays[leaf].shape != expected.shape or arrays[leaf].dtype != expected.dtype:
            raise DamagedError(f"{name} does not fit: {leaf} is {arrays[leaf].dtype}, not {expected.dtype}.")
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.array(arrays[leaf]) for leaf in wanted])


def with_suffix(path: str | Path) -> Path:
    """`hopper` is `hopper.safetensors`."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name + ".safetensors")


@contextmanager
def open_model(path: Path) -> Iterator[BinaryIO]:
    """A model file that the user named."""
    try:
        with open_file(path, LARGEST_MODEL) as file:
            yield file
    except OSError as error:
        raise DamagedError(f"{path} is not a file of ours: {error.strerror}.") from None
