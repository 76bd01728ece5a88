"""An experiment's runs with an estimate of their time; then one after another, keeping what is done."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table

from sunrise.config.algorithms import algorithm
from sunrise.config.groups import from_pixels
from sunrise.config.length import Length
from sunrise.console import console, counted, say
from sunrise.errors import SunriseError
from sunrise.experiments.estimate import BASIS, as_time, estimate
from sunrise.experiments.outcome import Outcome, outcome_of
from sunrise.experiments.runs import Run, choose, configured, expand, repeat_of

if TYPE_CHECKING:
    from sunrise.agents import Agent

MANY = 7
"""More environments than this are shown as their number."""


def execute(runs: Sequence[Run]) -> list[str]:
    """Run what is not finished, one after another; what failed is reported and does not stop the others."""
    failed = []
    for number, run in enumerate(runs, 1):
        label = f"[{number}/{len(runs)}] {run.arm.name} on {run.env}, seed {run.seed}"
        if run.done:
            say(f"{label}: finished before, kept")
            continue
        say(f"{label}: {run.folder}")
        try:
            model = agent_of(run)
            left = run.settings["total_timesteps"] - model.num_timesteps
            model.learn(left, log_interval=None, reset_num_timesteps=False, progress_bar=console.is_terminal)
        except SunriseError as error:
            say(f"{label}: FAILED: {error}")
            failed.append(label)
        except KeyboardInterrupt:
            say("\nStopped. The same command goes on with what is not finished.")
            raise
    return failed


def agent_of(run: Run) -> "Agent":
    """The agent of a run: where it was stopped, or new."""
    from sunrise.agents import AGENTS, resume_run

    if run.begun:
        return resume_run(run.folder)
    settings = {k: v for k, v in run.settings.items() if k not in ("env_id", "total_timesteps")}
    return AGENTS[run.arm.algo](algorithm(run.arm.algo).policies[0], run.env, **settings)


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
) -> Outcome | None:
    """Show the list and the estimate, run, and say what there is to report; nothing where nothing was to be run."""
    experiment, scale = choose(name, scale_name, seeds, envs)
    if "renderer" in changes and not any(from_pixels(algorithm(arm.algo).defaults) for arm in experiment.arms):
        raise SunriseError(f"{name} is not from pixels: it takes no --renderer.")
    runs = expand(experiment, scale, out, preset, changes, length)
    seconds = estimate(runs)
    table = run_table(f"{name}: {experiment.title}", runs, seconds)
    screen = Console(highlight=False)
    needed = Console(width=1000).measure(table).maximum
    Console(highlight=False, width=max(screen.width, needed)).print(table)  # no name is broken in the middle
    left = sum(time > 0 for time in seconds)
    screen.print(f"{len(runs)} runs, {left} of them to do: about {as_time(sum(seconds))} ({BASIS}).", soft_wrap=True)
    if dry_run:
        return None
    failed = execute(runs)
    failure = f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed)}." if failed else ""
    return outcome_of(experiment, scale, runs, scale_name, preset, failure)


def run_table(title: str, runs: Sequence[Run], seconds: Sequence[float]) -> Table:
    """The runs by arm and environment, a line for all seeds of each; many environments are one line."""
    columns = "arm", "environment", "seeds", "timesteps", "members", "a run", "done"
    table = Table(*(Column(column, no_wrap=True) for column in columns), title=title, box=None)
    envs = list(dict.fromkeys(run.env for run in runs))
    together = f"{len(envs)} environments" if len(envs) > MANY else ""
    groups: dict[tuple[str, str], list[tuple[Run, float]]] = {}
    for run, time in zip(runs, seconds, strict=True):
        groups.setdefault((together or run.env, run.arm.name), []).append((run, time))
    for (env, arm), group in groups.items():
        seeds = len({run.seed for run, _ in group})
        config = configured(group[0][0])
        members, steps = config.ensemble.ensemble_size, config.run.total_timesteps
        times = [time for _, time in group if time]
        cost = f"{max(times) / 60:.1f} min" if times else "-"
        length = counted(steps, steps * repeat_of(config, group[0][0].env)).replace(" timesteps", "")
        done = len(group) - len(times)
        table.add_row(arm, env, str(seeds), length, str(members), cost, str(done or ""))
    return table
