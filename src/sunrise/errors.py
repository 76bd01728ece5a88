"""Errors made for people: one sentence that says what is wrong and what to do."""

import difflib
import shlex
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any


class SunriseError(Exception):
    """Something the user can put right; the command line shows its text and no traceback."""


class DamagedError(SunriseError):
    """A file or a folder that is not what it must be."""


class NonFiniteError(SunriseError):
    """A value that is not finite reached the run."""

    def __init__(self, name: str, timesteps: int, hint: str = "") -> None:
        self.name, self.timesteps = name, timesteps
        self.faults: list[str] = []
        """Everything that is not finite, where an update found it."""
        self.sample: Any = None
        """The minibatch of that update."""
        self.saved_in: Path | None = None
        """Where both are on disk."""
        super().__init__(f"{name} is not finite (NaN or infinite) at timestep {timesteps:,}.{hint and ' ' + hint}")

    def say_where_the_state_is(self) -> None:
        """Add to the message where the agents are as they were before."""
        where = "still in the model." if self.saved_in is None else f"saved in {self.saved_in}; see `sunrise inspect`."
        self.args = (f"{self} The state before it is {where}",)


class EnvironmentFailedError(SunriseError):
    """An environment raised an exception, or lost its process, or gave what is no observation or reward."""


class MissingExtraError(SunriseError):
    """An optional part of this package is not installed; the message has the line that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        from packaging.requirements import Requirement

        parts = [Requirement(line) for line in metadata.requires("sunrise-rl") or ()]
        # By name, with their versions: that works from a checkout and from a wheel, where our own name is on no index.
        wanted = [
            f"{part.name}{'[' + ','.join(sorted(part.extras)) + ']' if part.extras else ''}{part.specifier}"
            for part in parts
            if part.marker is not None and part.marker.evaluate({"extra": extra})
        ]
        line = shlex.join([sys.executable, "-m", "pip", "install", *wanted])
        super().__init__(f"{what} needs the extra `{extra}`, which is not installed: {line}")


def near(word: str, known: Iterable[str], count: int = 5, alike: float = 0.5) -> str:
    """A sentence with the known words nearest to a wrong one, or nothing where none is as much `alike`."""
    names = list(known)
    by_case = {name.casefold(): name for name in names}
    found = [by_case[m] for m in difflib.get_close_matches(word.casefold(), by_case, n=count, cutoff=alike)]
    return f" Did you mean {', '.join(found)}?" if found else ""
