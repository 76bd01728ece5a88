"""A sweep: the runs of a file, from the list to the last of them."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sunrise.console import say
from sunrise.experiments.executor import Execution, Failure, execute, saying_how_to_go_on
from sunrise.experiments.grid_runs import part_of, read_grids
from sunrise.experiments.listing import print_plan
from sunrise.experiments.runs import Run


class Swept(NamedTuple):
    """What came of a sweep."""

    folders: tuple[Path, ...]
    """Of the trials that were begun."""
    arms: tuple[str, ...]
    """As the file has them."""
    failures: tuple[Failure, ...]


def sweep(
    file: Path, out: Path, execution: Execution, only: str, dry_run: bool, command: Sequence[str]
) -> Swept | None:
    """Show what a file asks for, run what is not done, and say how to go on; nothing where nothing was to be run."""
    runs = read_grids(file, out.absolute())
    runs = part_of(runs, only) if only else runs
    print_plan(f"{file.name}: {out}", runs)
    if dry_run:
        return None
    with saying_how_to_go_on(command):
        failures = execute(runs, execution)
    summarise(runs, failures, out, command)
    arms = tuple(dict.fromkeys(run.arm.name for run in runs))
    return Swept(tuple(run.folder for run in runs if run.begun), arms, tuple(failures))


def summarise(runs: Sequence[Run], failures: Sequence[Failure], out: Path, command: Sequence[str]) -> None:
    """What ran, what failed and why, and the command to go on."""
    say(f"{len(runs) - len(failures)} of {len(runs)} trials are finished: {out / 'runs'}")
    if not failures:
        return
    say(f"{len(failures)} failed:")
    for failure in failures:
        say(f"  {failure.run.folder.name}: {failure.why}")
    say(f"What there is to know about each is in its folder. Go on with them: {shlex.join(command)}")
