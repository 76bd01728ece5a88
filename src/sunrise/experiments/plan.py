"""An experiment's runs with an estimate of their time; then all of them, keeping what is done, and the outcome."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sunrise.config.algorithms import algorithm
from sunrise.config.groups import from_pixels
from sunrise.config.length import Length
from sunrise.errors import SunriseError
from sunrise.experiments.executor import HERE, Execution, execute
from sunrise.experiments.listing import print_plan
from sunrise.experiments.outcome import Outcome, outcome_of
from sunrise.experiments.runs import choose, expand


def reproduce_experiment(
    name: str,
    scale_name: str,
    seeds: int | None,
    envs: Sequence[str],
    preset: str,
    length: Length,
    changes: Mapping[str, Any],
    out: Path,
    dry_run: bool,
    execution: Execution = HERE,
) -> Outcome | None:
    """Show the list and the estimate, run, and say what there is to report; nothing where nothing was to be run."""
    experiment, scale = choose(name, scale_name, seeds, envs)
    if "renderer" in changes and not any(from_pixels(algorithm(arm.algo).defaults) for arm in experiment.arms):
        raise SunriseError(f"{name} is not from pixels: it takes no --renderer.")
    runs = expand(experiment, scale, out, preset, changes, length)
    print_plan(f"{name}: {experiment.title}", runs)
    if dry_run:
        return None
    failed = execute(runs, execution)
    names = "; ".join(f"{failure.run.folder.name}: {failure.why}" for failure in failed)
    failure = f"{len(failed)} of {len(runs)} runs failed: {names}" if failed else ""
    return outcome_of(experiment, scale, runs, scale_name, preset, failure)
