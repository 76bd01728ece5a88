"""`sunrise demo`: the main job in a few minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass
class Flags:
    """Train five agents on Pendulum until it is solved, print a table and draw the result."""

    out: Path = Path("demo")
    """Folder for the run and the picture."""
    seed: int = 1
    """Seed of the run."""


def run(arguments: Sequence[str]) -> None:
    """Train, evaluate, draw."""
    from sunrise.experiments.demo import run_demo

    flags = tyro.cli(Flags, args=arguments, prog="sunrise demo")
    run_demo(flags.out, flags.seed)
