"""How much memory there is, and a clear error before a buffer that would not fit."""

import logging
import os
from pathlib import Path

from sunrise.errors import SunriseError

GIGABYTE = 1e9
log = logging.getLogger("sunrise")


def available() -> int:
    """Bytes this process may still take: the machine's, or its control group's where that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        return min(free, limit - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        return free


def require(needed: int, what: str, remedy: str, say: bool = True) -> None:
    """State how much is about to be taken, and refuse what cannot fit."""
    free = available()
    if say:
        log.info("%s: %.2f GB when full", what, needed / GIGABYTE)
    if needed > free:
        raise SunriseError(
            f"{what} needs {needed / GIGABYTE:.2f} GB of memory, but {free / GIGABYTE:.2f} GB is available: {remedy}."
        )
