"""`sunrise bench`: the speed of this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass
class Flags:
    """Measure speed on this machine, with the limit beside it."""

    members: tuple[int, ...] = (1, 2, 5, 10)
    """Ensemble sizes."""
    repeats: int = 60
    """Updates timed for each size; the best counts."""
    out: Path | None = None
    """Also write the numbers as JSON to this file."""


def run(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    from sunrise.experiments.speed import run_bench

    flags = tyro.cli(Flags, args=arguments, prog="sunrise bench")
    run_bench(flags.members, flags.repeats, flags.out)
