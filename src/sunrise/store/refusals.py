"""What to say when a disk or a folder refuses to be written to."""

import errno
import shutil
from pathlib import Path

from sunrise.errors import SunriseError

FULL = (errno.ENOSPC, errno.EDQUOT)


def is_disk_full(error: BaseException) -> bool:
    """Whether a write failed for want of room."""
    return getattr(error, "errno", None) in FULL


def refusal(error: OSError, path: Path, last: str, needed: int = 0) -> SunriseError:
    """One sentence about the folder at `path`; `last` tells of its checkpoints, `needed` bytes were to be written."""
    if is_disk_full(error):
        wanted = f"a checkpoint needs {needed / 1e6:,.1f} MB, and " if needed else ""
        free = shutil.disk_usage(path if path.exists() else path.parent).free
        return SunriseError(
            f"the disk of {path} is full: {wanted}{free / 1e6:,.1f} MB are free; {last}. "
            f"Make room, then `sunrise resume {path}`."
        )
    if isinstance(error, FileNotFoundError) and not path.exists():
        return SunriseError(f"the folder {path} is gone: it was removed or renamed while the run went on.")
    where = f" ({error.filename})" if isinstance(error.filename, str) else ""
    return SunriseError(f"the run's folder {path} cannot be used: {error.strerror or error}{where}; {last}.")
