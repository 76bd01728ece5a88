"""Arrays as short texts. `scripts/numbers.js` unpacks them; two hundred runs of five hundred points stay small."""

import base64

import numpy as np

NOTHING = 65535
"""Of sixteen bits, the value that means that there is no number."""


def packed(values: np.ndarray) -> str:
    """Numbers to seven digits, or exactly where that takes no more: a progression, or doubles for large steps."""
    values = np.asarray(values, np.float64)
    if values.size > 2 and np.isfinite(values).all():
        step = values[1] - values[0]
        if (values == values[0] + step * np.arange(values.size)).all():
            return f"r{float(values[0])!r} {float(step)!r} {values.size}"
    whole = np.isfinite(values).all() and (values == np.round(values)).all()
    if (whole and np.abs(values).max(initial=0) > 2**24) or np.abs(values[np.isfinite(values)]).max(initial=0) > 1e38:
        return "d" + _text(values, "<f8")
    return "f" + _text(values, "<f4")


def roughly(values: np.ndarray) -> str:
    """Numbers to a 65,534th of their range, for what is only drawn."""
    values = np.asarray(values, np.float64)
    known = np.isfinite(values)
    if not known.any():
        return "q0 1 " + _text(np.full(values.shape, NOTHING), "<u2")
    low, high = float(values[known].min()), float(values[known].max())
    steps = np.full(values.shape, NOTHING)
    with np.errstate(over="ignore"):
        size = (high - low) / (NOTHING - 1)
    if not np.isfinite(size):
        return packed(values)
    steps[known] = np.round((values[known] - low) / size) if size else 0
    return f"q{low!r} {high!r} " + _text(steps, "<u2")


def thinned(columns: dict[str, np.ndarray], most: int) -> dict[str, np.ndarray]:
    """At most so many rows: means of neighbours, where there are more."""
    rows = len(next(iter(columns.values()), ()))
    if rows <= most:
        return columns
    edges = np.linspace(0, rows, most + 1).astype(int)
    found = {}
    for name, values in columns.items():
        known = np.isfinite(values)
        sums = np.add.reduceat(np.where(known, values, 0.0), edges[:-1])
        counts = np.add.reduceat(known, edges[:-1], dtype=float)
        found[name] = np.divide(sums, counts, out=np.full(most, np.nan), where=counts > 0)
    return found


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()
