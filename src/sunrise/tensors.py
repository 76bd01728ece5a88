"""Trees of arrays as safetensors files: names and numbers, nothing that can run. Written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sunrise.errors import SunriseError


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the file, force it to the disk, then rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file's content, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_metadata(about: Mapping[str, Any] | None) -> dict[str, str] | None:
    """What a safetensors file says about itself, as its header takes it."""
    return None if about is None else {"about": json.dumps(about)}


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path, such as `members.actor.layers.0.weight`."""
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}


def save_tree(path: Path, tree: Any, about: Mapping[str, Any]) -> None:
    """Write a tree and what is to be known about it."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(tree).items()}
    write_atomically(path, save(arrays, metadata=as_metadata(about)))


def read_about(path: Path) -> dict[str, Any]:
    """What a file says about itself."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["about"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise SunriseError(f"{path} is not a file of ours, or it is damaged: {error}") from None
    if not isinstance(about, dict):
        raise SunriseError(f"{path} is not a file of ours.")
    return about


def load_tree(path: Path, like: Any) -> Any:
    """Read a tree of the same shape as `like`; every name, shape and type must agree."""
    wanted = named_leaves(like)
    try:
        with safe_open(path, framework="numpy") as file:
            missing = set(wanted).symmetric_difference(file.keys())
            if missing:
                raise SunriseError(f"{path} does not fit: {sorted(missing)[0]!r} is on one side only.")
            arrays = {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError) as error:
        raise SunriseError(f"{path} is not a file of ours, or it is damaged: {error}") from None
    for name, leaf in wanted.items():
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            raise SunriseError(f"{path} does not fit: {name} is {arrays[name].shape}, {leaf.shape} was expected.")
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.array(arrays[name]) for name in wanted])


def with_suffix(path: str | Path) -> Path:
    """`hopper` is `hopper.safetensors`."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name + ".safetensors")
