"""Where a page that is a file finds the videos of its runs."""

import base64
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sunrise.errors import DamagedError
from sunrise.files.folder import Folder
from sunrise.report.results import Run

SMALL, ALL = 2**20, 3 * 2**20
"""Bytes of a video that is put into the page, and of all of them together; the others are linked to."""


def videos_for(out: Path) -> Callable[[Run, Path], str]:
    """Small videos become part of the page; others are links from the page's folder to theirs."""
    left = ALL

    def link(run: Run, video: Path) -> str:
        nonlocal left
        try:
            content = Folder(run.folder).sub("videos").read(video.name, min(SMALL, left))
        except DamagedError:
            return quote(os.path.relpath(video.resolve(), out.resolve()).replace(os.sep, "/"))
        except OSError:
            return ""
        left -= len(content)
        return "data:video/mp4;base64," + base64.b64encode(content).decode()

    return link
