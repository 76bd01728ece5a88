"""`sunrise tune`: settings chosen on other seeds than those that are reported."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from sunrise.commands.execution import Where, WhereFlags
from sunrise.experiments.tune import Method

MethodFlags = Annotated[Method, tyro.conf.arg(name="")]


@dataclass
class Flags:
    """Search settings, each candidate on the seeds of selection, and write the best as a preset file."""

    file: Annotated[Path, tyro.conf.Positional]
    """What is searched, in YAML: docs/tune.md."""
    out: Path | None = None
    """Folder of the runs, the journal and the presets; default: tune/{the file's name}."""
    method: MethodFlags = field(default_factory=Method)
    report: bool = False
    """Run the winners on the seeds of the report too, and end with a report of them."""
    dry_run: bool = False
    """Show the runs, their time and the disk they take, and stop."""
    where: WhereFlags = field(default_factory=Where)


def run(arguments: Sequence[str]) -> None:
    """Tune, or go on with a tuning."""
    flags = tyro.cli(Flags, args=arguments, prog="sunrise tune")
    from sunrise.commands.report import finish
    from sunrise.experiments.tune import tune

    out = flags.out or Path("tune") / flags.file.stem
    execution, command = flags.where.execution(at_least=1), ["sunrise", "tune", *arguments]
    tuned = tune(flags.file, out, execution, flags.method, flags.report, flags.dry_run, command)
    finish(tuned.reported, out / "report", f"{flags.file.stem}: tuned on other seeds")
    if tuned.failed:
        raise SystemExit(1)
