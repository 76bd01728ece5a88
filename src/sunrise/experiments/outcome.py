"""What an experiment was, in words: its report has them beside the numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sunrise.config.groups import from_pixels
from sunrise.experiments.paper import Experiment, Scale
from sunrise.experiments.runs import Run, configured

WHOSE = {"ours": "our default", "authors": "the authors'"}
QUICK = "Quick scale: fewer tasks, smaller networks, few steps. It shows the mechanism, not the result."


class Outcome(NamedTuple):
    """What there is to report of an experiment's runs."""

    title: str
    about: str
    """How it was run."""
    cautions: tuple[str, ...]
    arms: tuple[str, ...]
    """In the paper's order."""
    folders: tuple[Path, ...]
    """Of the runs that were begun."""
    failure: str = ""
    """What failed, in a sentence."""


def outcome_of(
    experiment: Experiment, scale: Scale, runs: Sequence[Run], scale_name: str, preset: str, failure: str = ""
) -> Outcome:
    """What there is to report of these runs of an experiment."""
    return Outcome(
        f"{experiment.name}: {experiment.title}",
        about(experiment, scale, runs, preset),
        (QUICK,) if scale_name == "quick" else (),
        tuple(arm.name for arm in experiment.arms),
        tuple(run.folder for run in runs if run.begun),
        failure,
    )


def about(experiment: Experiment, scale: Scale, runs: Sequence[Run], preset: str) -> str:
    """How an experiment was run, in one paragraph."""
    first = configured(runs[0])
    evaluation = f"{first.run.eval_episodes} evaluation episodes"
    if first.run.eval_steps:
        evaluation = f"the complete episodes of {first.run.eval_steps:,} evaluation steps"
    seeds = f"{scale.seeds} seed{'s' * (scale.seeds > 1)}"
    text = f"Ours: {seeds}, {evaluation} of the noiseless ensemble, {WHOSE[preset]} settings. "
    if from_pixels(first):
        size, crop = first.env.render_size, first.learner.crop_size
        members = max(configured(run).ensemble.ensemble_size for run in runs)
        text += (
            f"Pictures of {size} x {size} drawn by {first.env.renderer}, crops of {crop} x {crop}, batches of "
            f"{first.training.batch_size}, SUNRISE with {members} members. "
        )
    if experiment.published_as:
        text += f"Paper: {experiment.published_as}. "
    return (text + experiment.note).strip()
