"""Where compiled programs run, the cache that keeps them, and the memory they take."""

import ctypes
import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax

from sunrise.errors import SunriseError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""


def reuse_memory() -> None:
    """Let glibc reuse what a compiled call frees.

    XLA takes its temporaries as one block a call. Above 32 MiB glibc would map fresh pages for it each time and unmap
    them after: thousands of page faults in each update of Rainbow (77 ms with them, 56 without, on a loaded machine).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # not glibc
    mallopt(M_MMAP_THRESHOLD, 2**30)
    mallopt(M_TRIM_THRESHOLD, 2**30)


def use_cache() -> None:
    """Keep compiled programs between processes, unless the user has said where or the folder cannot be made."""
    reuse_memory()
    config: Any = jax.config
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if config.jax_compilation_cache_dir is not None:
        return
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "sunrise" / f"jax-{_processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    config.update("jax_compilation_cache_dir", str(folder))


def find_device(name: str) -> jax.Device:
    """`auto` is JAX's first device; otherwise the first of a platform, or one of them, such as `gpu:1`."""
    platform_name, _, number = name.partition(":")
    try:
        return jax.devices(None if name == "auto" else platform_name)[int(number or 0)]
    except (RuntimeError, ValueError, IndexError):
        known = {device.platform for device in jax.devices()}
        raise SunriseError(
            f"device is {name!r}, but must be auto or one of {', '.join(known)}, or with a number such as "
            f"{jax.devices()[0].platform}:0."
        ) from None


def _processor() -> str:
    """A name for this kind of processor: a shared home must not hand one machine's code to another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kind = next(line for line in lines if line.startswith("flags"))
    except (OSError, StopIteration):
        kind = platform.processor() or platform.machine()
    return hashlib.sha256(kind.encode()).hexdigest()[:12]
