"""What is to be run, before it is: the runs by arm and environment, how long they may take and how much room."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from sunrise.console import counted
from sunrise.experiments.estimate import BASIS, as_bytes, as_time, estimate, run_bytes
from sunrise.experiments.runs import Run, configured, repeat_of

MANY = 7
"""More environments than this are shown as their number."""


def print_plan(title: str, runs: Sequence[Run]) -> None:
    """The list, and the sums below it."""
    seconds = estimate(runs)
    table = run_table(title, runs, seconds)
    screen = Console(highlight=False)
    needed = Console(width=1000).measure(table).maximum
    Console(highlight=False, width=max(screen.width, needed)).print(table)  # no name is broken in the middle
    left = sum(time > 0 for time in seconds)
    screen.print(f"{len(runs)} runs, {left} of them to do: about {as_time(sum(seconds))} ({BASIS}).", soft_wrap=True)
    kinds: dict[tuple[str, str], int] = {}
    for run in runs:
        if (run.arm.name, run.env) not in kinds:
            kinds[run.arm.name, run.env] = run_bytes(configured(run), run.arm.algo)
    room = sum(kinds[run.arm.name, run.env] for run in runs)
    screen.print(f"All of them take about {as_bytes(room)} of disk.", soft_wrap=True)


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
