"""`sunrise inspect`: what is in a run, a checkpoint or a model file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass
class Flags:
    """Show what is in a run, a checkpoint or a model file: sizes, the last good step, whether it verifies."""

    path: Annotated[Path, tyro.conf.Positional]
    """The run's folder, the folder of one of its checkpoints, or a model file."""
    json: bool = False
    """One line of JSON instead of a table."""


def run(arguments: Sequence[str]) -> None:
    """Look, and change nothing."""
    from sunrise.store.inspection import inspect_path, print_findings

    flags = tyro.cli(Flags, args=arguments, prog="sunrise inspect")
    findings = inspect_path(flags.path)
    if flags.json:
        print(json.dumps(findings))
    else:
        print_findings(findings)
