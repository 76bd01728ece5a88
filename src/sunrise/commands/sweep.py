"""`sunrise sweep`: arms x environments x seeds, here or on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from sunrise.commands.execution import Where, WhereFlags
from sunrise.console import say
from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Run every trial that a file asks for, and go on with what is not finished."""

    file: Annotated[Path | None, tyro.conf.Positional] = None
    """The sweep's file: algorithms, environments, seeds, settings and arms, in YAML."""
    out: Path | None = None
    """Folder of the runs, which every machine that takes part sees; default: sweeps/{the file's name}."""
    only: str = ""
    """The i-th of n parts, as i/n: for job arrays of Slurm and other schedulers."""
    dry_run: bool = False
    """Show the runs, their time and the disk they take, and stop."""
    watch: Path | None = None
    """Show a sweep that goes on elsewhere instead: the folder that it has as --out."""
    where: WhereFlags = field(default_factory=Where)


def run(arguments: Sequence[str]) -> None:
    """Run a sweep, or watch one."""
    flags = tyro.cli(Flags, args=arguments, prog="sunrise sweep")
    if flags.watch is not None:
        from sunrise.experiments.live import watch

        watch(flags.watch)
        return
    if flags.file is None:
        raise SunriseError("give the sweep's file, such as `sunrise sweep grid.yaml`, or a folder to --watch.")
    from sunrise.commands.report import finish
    from sunrise.experiments.sweep import sweep

    out = flags.out or Path("sweeps") / flags.file.stem
    execution = flags.where.execution(at_least=1)
    swept = sweep(flags.file, out, execution, flags.only, flags.dry_run, ["sunrise", "sweep", *arguments])
    if swept is None:
        return
    if flags.only:  # the other parts may be running: whoever has them all reports
        say(f"When every part is done: sunrise report {out / 'runs'} --out {out / 'report'}")
    else:
        finish(swept.folders, out / "report", flags.file.stem, arms=swept.arms)
    if swept.failures:
        raise SystemExit(1)
