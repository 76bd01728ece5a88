"""The numbers that runs logged, as columns."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from sunrise.errors import DamagedError

Columns = dict[str, np.ndarray]
MOST_COLUMNS = 1_000
"""Kinds of numbers that a run may log."""
LARGEST = 1e100
"""A return beyond this is no return."""
LENGTH = "timesteps"


def columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Rows of numbers as columns; NaN where a row lacks one, or has what is no number."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]
    return {clean(name): _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> np.ndarray:
    if not {type(value) for value in values} <= {int, float, NoneType}:
        values = [value if type(value) in (int, float) else None for value in values]
    return np.array(values, float)  # None becomes NaN


def evaluated(rows: Sequence[Mapping[str, Any]], repeat: int, metrics: Columns) -> Columns:
    """The columns of eval.csv, with simulator steps, and the hours that had passed where the metrics know them."""
    found = columns(rows)
    if not found:
        return {LENGTH: np.zeros(0), "mean_return": np.zeros(0), "env_steps": np.zeros(0)}
    if any((np.abs(column[np.isfinite(column)]) > LARGEST).any() for column in found.values()):
        raise DamagedError(f"an evaluation is beyond {LARGEST:g}: no sum of it can be trusted.")
    found["env_steps"] = found[LENGTH] * repeat
    elapsed = metrics.get("time/elapsed_s")
    if elapsed is not None and LENGTH in metrics and np.isfinite(elapsed).any():
        known = np.isfinite(elapsed)
        found["hours"] = np.interp(found[LENGTH], metrics[LENGTH][known], _through(elapsed[known]) / 3600)
    return found


def _through(elapsed: np.ndarray) -> np.ndarray:
    """Seconds over all sittings: the clock of a run that was resumed begins again at nought."""
    steps = np.diff(elapsed, prepend=0.0)
    return np.cumsum(np.where(steps < 0, elapsed, steps))


def clean(content: Any) -> Any:
    """The same with nothing that cannot be written as UTF-8: a stray half of a character becomes a replacement."""
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode()
    if isinstance(content, Mapping):
        return {clean(key): clean(value) for key, value in content.items()}
    return [clean(part) for part in content] if isinstance(content, list | tuple) else content


def last_timestep(found: Columns, path: Path) -> int:
    """The timestep that a log reached."""
    steps = found.get(LENGTH, np.zeros(0))
    if not np.isfinite(steps).all() or (np.diff(steps) < 0).any():
        raise DamagedError(f"{path} has a log whose timesteps are no steps forward.")
    return int(steps[-1]) if steps.size else 0


def action_repeat(row: Mapping[str, Any]) -> int:
    """Simulator steps in a timestep, by a row that has both."""
    steps, simulated = row[LENGTH], row.get("env_steps", row[LENGTH])
    return max(round(simulated / steps), 1) if steps > 0 and math.isfinite(simulated) else 1


def numbers_of(content: bytes, path: Path, texts: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A CSV file of numbers, and of texts in some columns."""
    try:
        rows = list(csv.DictReader(content.decode().splitlines(), strict=True))
        return [
            {
                key: _unquoted(value or "") if key in texts else float(value) if value else math.nan
                for key, value in row.items()
            }
            for row in rows
        ]
    except (ValueError, csv.Error, TypeError) as error:
        raise DamagedError(f"{path} is no table of numbers: {error}.") from None


def _unquoted(text: str) -> str:
    """A text as it was before it was kept from being a formula."""
    return text[1:] if re.match(r"'[=+\-@]", text) else text
