"""Who may write a run's folder: one process at a time, and one that was given up for dead never again.

`.lock` is locked by its owner for life and says who that is: host, process, attempt and a token. Whoever knows that an
owner is dead or cut off from the others (`evict`) puts a new `.lock` in place of its. `.turn` is locked for a moment
whenever the owner changes and whenever it publishes something; a publisher then looks whether the token is still its
own. So a process that comes back after somebody else took over writes nothing, wherever it was interrupted.
"""

import errno
import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from sunrise.errors import DamagedError, SunriseError
from sunrise.files import documents
from sunrise.files.folder import Folder, write_all

LOCK, TURN = ".lock", ".turn"
SMALL = 4096
BUSY = (errno.EWOULDBLOCK, errno.EACCES)
LONGEST_TURN = 60.0
"""Seconds after which somebody who publishes is taken for stuck."""
A_LOOK = 0.2
"""Seconds that a reader may keep a lock while it looks whether there is one."""
_place = ""


class LostError(SunriseError):
    """Another process has taken over the folder: nothing was written, and nothing may be."""


class Owner(NamedTuple):
    """Who holds a folder, or held it last."""

    host: str
    pid: int
    started: int
    """When the process began, in the system's ticks: a number of a process is given again."""
    attempt: int
    """How many have held the folder, with this one."""
    token: str
    place: str = ""
    """Which node of a cluster it is on, by the cluster's own name for it."""

    @property
    def who(self) -> str:
        """In words."""
        return f"process {self.pid}" + ("" if self.host == socket.gethostname() else f" on {self.host}")

    @property
    def is_this_process(self) -> bool:
        return self[:3] == (socket.gethostname(), os.getpid(), started(os.getpid()))


def started(pid: int) -> int:
    """When a process began; 0 where that cannot be known."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def set_place(place: str) -> None:
    """Say on which node of a cluster this process is."""
    global _place  # noqa: PLW0603 - a process is in one place
    _place = place


def owner_of(folder: Folder) -> Owner | None:
    """What a folder's lock says; None where there is none, or none of ours."""
    try:
        said = documents.decode_mapping(folder.read(LOCK, SMALL))
        owner = Owner(**{name: said[name] for name in Owner._fields})
    except (OSError, ValueError, KeyError, DamagedError):
        return None
    kinds = str, int, int, int, str, str
    return owner if all(type(part) is kind for part, kind in zip(owner, kinds, strict=True)) else None


def is_in_use(folder: Folder) -> bool:
    """Whether a process holds a folder."""
    try:
        with folder.open(LOCK, documents.SMALL) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, DamagedError):
        return False
    return False


@contextmanager
def turn(folder: Folder) -> Iterator[None]:
    """Nobody else changes the owner or publishes meanwhile."""
    until = time.monotonic() + LONGEST_TURN
    with folder.change(TURN) as descriptor:
        while not locked(descriptor, folder.path):
            if time.monotonic() > until:
                raise SunriseError(f"{folder.path} is being written by another process that does not come to an end.")
            time.sleep(0.01)
        yield


def locked(descriptor: int, path: Path) -> bool:
    """Lock a file if nobody has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            return False
        raise SunriseError(
            f"{path} is on a disk without locks ({error.strerror}): two processes could not be kept apart there."
        ) from None
    return True


def evict(folder: Folder, owner: Owner) -> bool:
    """Take a folder from an owner that is known to be dead or cut off; False if it is no longer the owner."""
    with turn(folder):
        if owner_of(folder) != owner:
            return False
        folder.write(LOCK, json.dumps({**owner._asdict(), "token": ""}).encode())
    return True


def wait_until_free(folder: Folder, seconds: float, is_dead: Callable[[Owner], bool] | None = None) -> None:
    """Wait for a folder's owner to leave; one that is known to be dead is evicted. After so long it stays as it is."""
    until = time.monotonic() + seconds
    while is_in_use(folder) and time.monotonic() < until:
        owner = owner_of(folder)
        if owner is not None and is_dead is not None and is_dead(owner) and evict(folder, owner):
            return
        time.sleep(0.1)


class Ownership:
    """The right of this process to write a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.token = ""
        """Empty while the folder is not ours."""
        self._held = ExitStack()
        self._turn, self._deep = threading.RLock(), 0

    def take(self) -> None:
        """Keep every other process out, until `release` or the end of this one."""
        with self._turn, turn(self.folder), ExitStack() as stack:
            descriptor = stack.enter_context(self.folder.change(LOCK))
            before = owner_of(self.folder)
            until = time.monotonic() + A_LOOK
            while not (ours := locked(descriptor, self.folder.path)) and time.monotonic() < until:
                time.sleep(0.01)
            if not ours:
                who = "another process" if before is None else before.who
                raise SunriseError(f"{self.folder.path} is in use by {who}: wait for it, or stop it.")
            attempt = 1 if before is None else before.attempt + 1
            pid, token = os.getpid(), secrets.token_hex(8)
            owner = Owner(socket.gethostname(), pid, started(pid), attempt, token, _place)
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            write_all(descriptor, json.dumps(owner._asdict()).encode())
            self._held, self.token = stack.pop_all(), token

    def release(self) -> None:
        """Let others in."""
        self.token = ""
        self._held.close()

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Write something that others read, as the owner; LostError where somebody else has become it."""
        with self._turn:
            if not self.token or self._deep:
                yield
                return
            with turn(self.folder):
                self._confirm()
                self._deep += 1
                try:
                    yield
                finally:
                    self._deep -= 1

    def _confirm(self) -> None:
        now = owner_of(self.folder)
        if now is not None and now.token == self.token:
            return
        if not self.folder.path.exists():
            self.folder.read(LOCK, SMALL)  # a folder that is gone is another fault, and says so itself
        by = f"{now.who} (attempt {now.attempt})" if now is not None and now.token else "another process"
        raise LostError(f"{self.folder.path} was taken over by {by}: this process writes nothing more there.")
