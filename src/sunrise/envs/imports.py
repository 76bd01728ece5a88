"""Modules of the user's own that settings name."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from sunrise.errors import SunriseError


def import_named(module: str, whose: str) -> ModuleType:
    """Import the module of an environment or a wrapper, also from the folder that the command was given in."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SunriseError(f"the module {module!r} of {whose} cannot be imported: {error}.") from None
