"""A folder that leads nowhere else. Whatever a run reads or writes goes through here.

A folder may come from a stranger: a link in it would make us read, overwrite or delete a file of the user's, a FIFO
would make us wait for ever, a device would fill the memory. So everything is opened by a handle of its folder, links
are not followed below the folder that the user named, only regular files are opened, and every read has a limit.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sunrise.errors import DamagedError, SunriseError

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PART = re.compile(r"\..+\.part")
"""A file that is being written; where nobody writes, one that a kill left behind."""


class Folder:
    """A folder by its path, or by its name inside another; there it must be a real one."""

    def __init__(self, path: Path, inside: "Folder | None" = None) -> None:
        self.path, self.inside = path, inside
        self._held: int | None = None
        self._place = path

    def sub(self, name: str) -> "Folder":
        """A folder inside this one."""
        return Folder(self.path / checked(name), self)

    @contextmanager
    def handle(self) -> Iterator[int]:
        """A descriptor of the folder."""
        if self._held is not None:
            yield self._held
            return
        if self.inside is None:
            descriptor = os.open(self.path, INSIDE)
        else:
            with self.inside.handle() as outer:
                require_kind(os.stat(self.path.name, dir_fd=outer, follow_symlinks=False), stat.S_IFDIR, self.path)
                descriptor = os.open(self.path.name, INSIDE | os.O_NOFOLLOW, dir_fd=outer)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def hold(self) -> None:
        """Keep the handle until `release`, so that it is this folder whatever happens to its name."""
        if self._held is None:
            with self.handle() as descriptor:
                self._held, self._place = os.dup(descriptor), self.path.absolute()

    def release(self) -> None:
        """Let go of the handle."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def require_in_place(self) -> None:
        """Refuse to go on in a folder that is held and no longer where it was."""
        if self._held is None:
            return
        try:
            there = os.path.samestat(os.fstat(self._held), self._place.stat())
        except FileNotFoundError:
            there = False
        if not there:
            raise SunriseError(f"the folder {self.path} was moved, replaced or removed while it was written to.")

    def make(self, new: bool = False) -> None:
        """Make the folder where it is missing; what else has its name is refused."""
        if self.inside is None:
            self.path.mkdir(parents=True, exist_ok=not new)
        else:
            with self.inside.handle() as outer, suppress(*(() if new else (FileExistsError,))):
                os.mkdir(self.path.name, dir_fd=outer)
        with self.handle():
            pass

    # -- looking -------------------------------------------------------------------------------------------------------

    def names(self, kind: int = stat.S_IFREG) -> list[str]:
        """The names of the regular files in it, or of what else is asked for; none where there is no folder."""
        found = []
        with suppress(FileNotFoundError), self.handle() as own, os.scandir(own) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) == kind:
                        found.append(entry.name)
        return sorted(found)

    def folders(self) -> list[str]:
        """The names of the real folders in it."""
        return self.names(stat.S_IFDIR)

    def status(self, name: str) -> os.stat_result | None:
        """What there is by a name, itself and not what it may point to; None where there is nothing."""
        with suppress(FileNotFoundError), self.handle() as own:
            return os.stat(checked(name), dir_fd=own, follow_symlinks=False)
        return None

    def nbytes(self, depth: int = 3) -> int:
        """The size of all files in it, and in the folders in it as deep as ours are."""
        sizes = (self.status(name) for name in self.names())
        inside = (self.sub(name).nbytes(depth - 1) for name in self.folders() if depth)
        return sum(size.st_size for size in sizes if size is not None) + sum(inside)

    # -- reading -------------------------------------------------------------------------------------------------------

    @contextmanager
    def open(self, name: str, largest: int) -> Iterator[BinaryIO]:
        """A regular file of at most `largest` bytes."""
        with self.handle() as own:
            require_kind(os.stat(checked(name), dir_fd=own, follow_symlinks=False), stat.S_IFREG, self.path / name)
            descriptor = os.open(name, READ | os.O_NOFOLLOW, dir_fd=own)
        with os.fdopen(descriptor, "rb") as file:
            require_size(file, largest, self.path / name)
            yield file

    def read(self, name: str, largest: int) -> bytes:
        """The content of a regular file of at most `largest` bytes."""
        with self.open(name, largest) as file:
            return file.read(largest)

    # -- writing -------------------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """A new file to write and read, unbuffered; nobody else has a handle of it."""
        with self.handle() as own:
            descriptor = os.open(checked(name), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=own)
        with os.fdopen(descriptor, "w+b", buffering=0) as file:
            yield file

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole: a reader sees the old one or the new one."""
        self.write_by(name, lambda file: write_all(file.fileno(), content))

    def write_by(self, name: str, fill: Callable[[BinaryIO], object]) -> None:
        """Let `fill` write beside the file, force it to the disk, then rename."""
        part = f".{checked(name)}.part"
        self.remove(part)
        try:
            with self.create(part) as file:
                fill(file)
                os.fsync(file.fileno())
            self.rename(part, name)
        except BaseException:
            with suppress(OSError):
                self.remove(part)
            raise
        self.sync()

    @contextmanager
    def change(self, name: str) -> Iterator[int]:
        """A descriptor to change a file in place; one that has a second name elsewhere is refused."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with self.handle() as own:
            try:
                before = os.stat(checked(name), dir_fd=own, follow_symlinks=False)
            except FileNotFoundError:
                flags |= os.O_EXCL
            else:
                require_kind(before, stat.S_IFREG, self.path / name)
            descriptor = os.open(name, flags, 0o666, dir_fd=own)
        try:
            now = os.fstat(descriptor)
            require_kind(now, stat.S_IFREG, self.path / name)
            if now.st_nlink > 1:
                raise DamagedError(f"{self.path / name} has a second name (a hard link): it is not written to")
            yield descriptor
        finally:
            os.close(descriptor)

    def append(self, name: str, content: bytes) -> None:
        """Add to a file's end, all or nothing."""
        with self.change(name) as descriptor:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                write_all(descriptor, content)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise

    def truncate(self, name: str, size: int) -> None:
        """Cut a file."""
        with self.change(name) as descriptor:
            os.ftruncate(descriptor, size)

    def rename(self, name: str, new: str) -> None:
        """Give a file or a folder another name in this folder."""
        with self.handle() as own:
            os.rename(checked(name), checked(new), src_dir_fd=own, dst_dir_fd=own)

    def remove(self, name: str) -> None:
        """Remove a file, or a link and not what it points to."""
        with self.handle() as own, suppress(FileNotFoundError):
            os.unlink(checked(name), dir_fd=own)

    def remove_folder(self, name: str, ours: Callable[[str], object]) -> bool:
        """Remove a folder with the files that are `ours`; whether it is gone: with anything else in it, it stays."""
        try:
            inner = self.sub(name)
            for file in inner.names():
                if ours(file):
                    inner.remove(file)
            with self.handle() as own:
                os.rmdir(name, dir_fd=own)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def sync(self) -> None:
        """Force the names in it to the disk."""
        with self.handle() as own:
            os.fsync(own)


def checked(name: str) -> str:
    """A name inside a folder: never a path."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise DamagedError(f"{name!r} is no name of a file")
    return name


def require_kind(found: os.stat_result, wanted: int, path: Path) -> None:
    """Refuse what is not of this kind."""
    kind = stat.S_IFMT(found.st_mode)
    if kind != wanted:
        of_ours = "a folder" if wanted == stat.S_IFDIR else "a file"
        raise DamagedError(f"{path} is {KINDS.get(kind, 'something else')}, not {of_ours} of its own")


def require_size(file: BinaryIO, largest: int, path: Path) -> None:
    """Refuse what is not a regular file, or is larger than such a file can be."""
    found = os.fstat(file.fileno())
    require_kind(found, stat.S_IFREG, path)
    if found.st_size > largest:
        raise DamagedError(f"{path} has {found.st_size:,} bytes: too many for what it is")


@contextmanager
def open_file(path: Path, largest: int) -> Iterator[BinaryIO]:
    """A file that the user named, which may be a link of theirs; anything but a regular file is refused."""
    require_kind(path.stat(), stat.S_IFREG, path)
    with os.fdopen(os.open(path, READ), "rb") as file:
        require_size(file, largest, path)
        yield file


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write all of it, or raise."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
