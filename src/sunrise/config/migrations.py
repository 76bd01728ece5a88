"""Settings that had other names: files of older versions are read as if they had today's.

Who renames a setting adds its old name here, and every run and model that was saved with it goes on.
"""

from collections.abc import Mapping
from typing import Any

RENAMED: dict[str, str] = {}
"""The old name of a setting, and today's."""
REMOVED: set[str] = set()
"""Settings that are no more and whose value no longer matters."""


def migrated(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they were written, under today's names."""
    return {RENAMED.get(name, name): value for name, value in settings.items() if name not in REMOVED}
