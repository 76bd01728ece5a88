"""Algorithms that are not ours: imported where the user names them, and nowhere else."""

import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, overload

from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.errors import SunriseError, near


@overload
def own_algorithm(path: str) -> Algorithm: ...
@overload
def own_algorithm(path: None) -> None: ...
@overload
def own_algorithm(path: str | None) -> Algorithm | None: ...
def own_algorithm(path: str | None) -> Algorithm | None:
    """The algorithm at `module:NAME`; the module is imported, also from the current folder. None gives None."""
    if path is None:
        return None
    module, _, name = path.partition(":")
    if not module or not name.isidentifier():
        raise SunriseError(f"{path!r} is no algorithm of your own: it must be like mypkg.mymod:MY_ALGORITHM.")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise SunriseError(f"the module {module!r} of {path} cannot be imported: {error}.") from None
    if not isinstance(found, Algorithm):
        there = [key for key, value in vars(sys.modules[module]).items() if isinstance(value, Algorithm)]
        raise SunriseError(f"{path} is no sunrise.Algorithm.{near(name, there, count=1, alike=0.0)}")
    return checked(found)._replace(imported_from=path)


def require_named(path: Path, config: Mapping[str, Any], algorithm: Algorithm | None) -> None:
    """Refuse to use a run of an algorithm that is not ours, unless the user named its code; and one of another."""
    if algorithm is not None and algorithm.name != config["algo"]:
        raise SunriseError(f"{path} is a run of {config['algo']}, not of {algorithm.name}.")
    if algorithm is None and config["algo"] not in ALGORITHMS:
        where = shown(config.get("imported_from"))
        raise SunriseError(
            f"{path} is a run of {config['algo']!r}, an algorithm that is not ours: using it imports its code, which "
            f"runs. If you trust it, say so with --algorithm {where} (in Python: sunrise.agent({where!r}))."
        )


def shown(imported_from: Any) -> str:
    """What a file says of where an algorithm is from, if it looks like that."""
    right = isinstance(imported_from, str) and re.fullmatch(r"[\w.]+:\w+", imported_from)
    return str(imported_from) if right else "MODULE:NAME"


def checked(algorithm: Algorithm) -> Algorithm:
    """The same, if its name is one that files and folders can have, and none of ours."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", algorithm.name):
        raise SunriseError(f"the algorithm's name is {algorithm.name!r}, but must be of letters, digits, - and _.")
    if algorithm.name in ALGORITHMS:
        raise SunriseError(f"the algorithm's name is {algorithm.name!r}, which is one of ours: choose another.")
    return algorithm
