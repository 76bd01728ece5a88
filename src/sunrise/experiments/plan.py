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
from sunrise.experiments.outcome import is_atari, write_outcome
from sunrise.experiments.paper import Experiment, Scale
from sunrise.experiments.runs import Run, choose, configured, expand
from sunrise.run_folder import RunFolder

WHOSE = {"ours": "our default", "authors": "the authors'"}


def results(runs: Sequence[Run], unfinished: bool = False) -> list[dict[str, Any]]:
    """One row an evaluation of every finished run, or also of those that are not."""
    from sunrise.agents.files import read_run

    return [
        {"env": run.env, "arm": run.arm.name, "seed": run.seed, "env_steps": row["timesteps"] * repeat, **row}
        for run in runs
        if run.done or unfinished
        for repeat in [read_run(run.folder).get("action_repeat", 1)]
        for row in RunFolder(run.folder).read_eval()
    ]


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
) -> None:
    """Show the list and the estimate, run, and write the outcome."""
    experiment, scale = choose(name, scale_name, seeds, envs)
    if "renderer" in changes and not any(from_pixels(algorithm(arm.algo).defaults) for arm in experiment.arms):
        raise SunriseError(f"{name} is not from pixels: it takes no --renderer.")
    runs = expand(experiment, scale, out, preset, changes, length)
    print_plan(f"{name}: {experiment.title}", runs)
    if dry_run:
        return
    failed = execute(runs, execution)
    rows = results(runs)
    if rows:
        write_outcome(experiment, scale, rows, out, protocol(experiment, scale, runs, rows, scale_name, preset))
    if failed:
        names = "; ".join(f"{failure.run.folder.name}: {failure.why}" for failure in failed)
        raise SunriseError(f"{len(failed)} of {len(runs)} runs failed: {names}")


def protocol(
    experiment: Experiment, scale: Scale, runs: Sequence[Run], rows: Sequence[dict[str, Any]], name: str, preset: str
) -> str:
    """What was run, in one paragraph."""
    run = configured(runs[0]).run
    steps = f"{int(max(row['timesteps'] for row in rows)):,} timesteps"
    if scale.simulator_steps:
        most: dict[int, int] = {}
        for row in rows:
            repeat = round(row["env_steps"] / row["timesteps"])
            most[repeat] = max(most.get(repeat, 0), int(row["timesteps"]))
        counts = (f"{count:,} timesteps where an action lasts {repeat}" for repeat, count in sorted(most.items()))
        steps = f"{int(max(row['env_steps'] for row in rows)):,} simulator steps ({', '.join(counts)})"
    plural = "s" * (scale.seeds > 1)
    evaluation = f"{run.eval_episodes} evaluation episodes"
    if run.eval_steps:
        evaluation = f"the complete episodes of {run.eval_steps:,} evaluation steps"
    text = (
        f"{experiment.title}. Ours: {steps}, {scale.seeds} seed{plural}, {evaluation} of the noiseless "
        f"ensemble, {WHOSE[preset]} settings; "
        "± is the standard deviation over seeds. "
    )
    if name == "quick":
        text += "Quick scale: fewer tasks, smaller networks, few steps. It shows the mechanism, not the result. "
    first = configured(runs[0])
    if from_pixels(first):
        size, crop = first.env.render_size, first.learner.crop_size
        members = max(configured(run).ensemble.ensemble_size for run in runs)
        text += (
            f"Pictures of {size} x {size} drawn by {first.env.renderer}, crops of {crop} x {crop}, batches of "
            f"{first.training.batch_size}, SUNRISE with {members} members. "
        )
    if experiment.published:
        text += f"Paper: {experiment.published_as}. "
    if is_atari(scale):
        text += "Human-normalised: 0 is the paper's random agent, 1 its human, from the last evaluation. "
    return text + experiment.note
