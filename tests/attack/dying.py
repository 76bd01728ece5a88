"""`python -m tests.attack.dying K sunrise-arguments...`: the command line, killed at the K-th event on the run's files.

An event is what a kill or a power cut can come before: a file opened to be written, a name made, changed or removed, a
file cut or forced to the disk. Of a file that was to be forced to the disk, some of what had not been yet is lost too.
"""

import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "fcntl.flock")
KILLED = 99


class Death:
    """Counts events, and ends the process at the last of them as `kill -9` does: nothing of ours runs any more."""

    def __init__(self, at: int, folder: str) -> None:
        self.at, self.folder, self.count = at, folder, 0
        self.lock, self.rng = threading.RLock(), random.Random(at)
        self.forced: dict[str, int] = {}
        """How long each file was when it was last forced to the disk."""

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) and self.is_ours(path):
                self.meet()
        elif event in EVENTS and any(self.is_ours(a) for a in arguments[:1]):
            self.meet()

    def is_ours(self, path: Any) -> bool:
        """Inside of the run's folder; a name without a folder is relative to a handle on one."""
        if isinstance(path, int):
            return self.path_of(path).startswith(self.folder)
        path = os.fspath(path).removeprefix("./") if isinstance(path, str | os.PathLike) else ""
        return isinstance(path, str) and (path.startswith(self.folder) or (path != "" and not path.startswith("/")))

    def path_of(self, descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())

    def meet(self, tear: int | None = None) -> None:
        with self.lock:
            self.count += 1
            if self.count != self.at:  # beyond it, this is its own last deed
                return
            if tear is not None:
                path = self.path_of(tear)
                forced = self.forced.get(path, 0)
                size = os.fstat(tear).st_size
                if Path(path).is_file() and size > forced:
                    os.truncate(path, self.rng.randint(forced, size))  # by its name: the handle may only read
            os._exit(KILLED)

    def watch(self) -> None:
        force = os.fsync

        def fsync(fd: Any) -> None:
            number = fd if isinstance(fd, int) else fd.fileno()
            if self.path_of(number).startswith(self.folder):
                self.meet(number)
            force(number)
            self.forced[self.path_of(number)] = os.fstat(number).st_size

        for root, _, files in os.walk(self.folder):  # what is there was forced to the disk before
            self.forced |= {f"{root}/{name}": Path(root, name).stat().st_size for name in files}
        os.fsync = fsync
        sys.addaudithook(self.audit)


if __name__ == "__main__":
    from sunrise.cli import main

    at, folder, *arguments = sys.argv[1:]
    Death(int(at), os.path.realpath(folder)).watch()
    main(arguments)
