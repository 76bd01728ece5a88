"""A trial's share of a machine: cores of its own, and a limit to its memory.

The number of cores changes the last bits of a product of matrices, so a trial has as many as it was granted, always.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_held: list[socket.socket] = []
"""The claims of this process; they go with it."""


def usable() -> list[int]:
    """The cores this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def claim(count: int) -> list[int]:
    """Bind this process to so many cores, if possible to such that no other trial of this machine has claimed.

    A claim is an address that only one process can be bound to and that its end frees, however it ends. Call it before
    anything counts cores.
    """
    for name in THREADS:
        os.environ[name] = str(count)
    if not hasattr(os, "sched_setaffinity"):
        return []
    cores = usable()
    mine: list[int] = []
    for core in cores:
        if len(mine) < count and _is_free(core):
            mine.append(core)
    others = [core for core in cores if core not in mine]
    mine = sorted([*mine, *others[: count - len(mine)]])  # more were granted than there are: then they are shared
    os.sched_setaffinity(0, mine)
    return mine


def _is_free(core: int) -> bool:
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claimed.bind(f"\0sunrise-core-{core}")
    except OSError:
        claimed.close()
        return False
    _held.append(claimed)
    return True


def resident(process: int) -> int:
    """Bytes of memory of a process and of those it started; 0 for one that is gone."""
    try:
        own = Path(f"/proc/{process}")
        pages = int((own / "statm").read_text().split()[1])
        started = [int(n) for task in (own / "task").iterdir() for n in (task / "children").read_text().split()]
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident, started))


def limit_memory(limit: int, note: Callable[[int], object], every: float = 0.1) -> None:
    """Kill this process as soon as it has more than `limit` bytes, after `note(bytes)`.

    A limit of the system's would make an allocation fail anywhere, in the middle of a simulator.
    """

    def watch() -> None:
        while (now := resident(os.getpid())) <= limit:
            time.sleep(every)
        try:
            note(now)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="memory").start()
