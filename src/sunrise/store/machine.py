"""What the bits of a result may depend on: the versions of what computes, and the machine."""

import contextlib
import functools
import os
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from sunrise.version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")
EXTRAS = ("dm-control", "mujoco-warp", "warp-lang", "ale-py")
"""What computes where an extra is installed."""


def machine(device: str = "cpu") -> dict[str, Any]:
    """What the bits of a result may depend on; `device` is what the agents are on."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "device": device,
        "python": platform.python_version(),
    }


@functools.cache
def versions() -> Mapping[str, str]:
    """The versions of what computes."""
    found = {"sunrise-rl": __version__} | {name: metadata.version(name) for name in PACKAGES}
    for name in EXTRAS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def beginning(action_repeat: int, device: str, command: list[str]) -> dict[str, Any]:
    """What there is to know about how a run begins, besides its settings."""
    known = {"action_repeat": action_repeat, "versions": dict(versions()), "machine": machine(device)}
    return {**known, "command": command, **_labels}


_labels: dict[str, Any] = {}


@contextlib.contextmanager
def labelled(**labels: Any) -> Iterator[None]:
    """Runs that begin in here have these in config.json too, such as the arm of a sweep that they are."""
    before = dict(_labels)
    _labels.update(labels)
    try:
        yield
    finally:
        _labels.clear()
        _labels.update(before)
