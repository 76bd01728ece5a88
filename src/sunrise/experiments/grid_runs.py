"""The runs that a sweep's file asks for: every arm of its grids in every environment with every seed, in folders."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from sunrise.config.marked import FileError, Marked, read_yaml
from sunrise.config.resolve import defaults_for
from sunrise.errors import SunriseError
from sunrise.experiments.grid import MOST, Choice, Grid
from sunrise.experiments.paper import Arm
from sunrise.experiments.runs import Run, algorithm_of, configured, run_folder
from sunrise.store.run_folder import RunFolder


def read_grids(path: Path, out: Path) -> list[Run]:
    """Every run that a file asks for; two that would share a folder are refused."""
    whole = read_yaml(path)
    blocks: Sequence[Marked] = whole.value if isinstance(whole.value, list) else [whole]
    grids = [Grid(path, block) for block in blocks]
    if not grids:
        raise SunriseError(f"{path} has no grid.")
    several = len({algo for grid in grids for algo in grid.algos}) > 1
    found: dict[str, int] = {}
    runs = []
    for run, line in itertools.chain.from_iterable(runs_of(grid, out, several) for grid in grids):
        if len(run.folder.name.encode()) > 200 or not run.folder.name.isprintable():
            raise FileError(path, line, f"{run.folder.name[:80]!r} is no name for a folder: give shorter arms names.")
        if run.folder.name in found:
            first = found[run.folder.name]
            raise FileError(path, line, f"the run {run.folder.name} is also asked for by line {first}: name its arm.")
        found[run.folder.name] = line
        runs.append(run)
    return runs


def runs_of(grid: Grid, out: Path, several: bool) -> list[tuple[Run, int]]:
    """Every run with the line of its arm: all arms of a seed before the next seed. Settings are checked once."""
    arms: list[tuple[Run, int]] = []
    for env, (named, algo) in itertools.product(grid.envs, grid.algos.items()):
        for choice, line in grid.choices(algo):
            called = choice.name if not several or not grid.arms else f"{algo.name} {choice.name}"
            settings, labels = grid.settled(choice.settings, algo, env.value, line)
            run = Run(Arm(called, named), env.value, 0, settings, out, labels)
            check(grid, run, choice, line)
            arms.append((run, line))
            if len(arms) * len(grid.seeds) > MOST:
                raise grid.wrong(line, f"the grid has more than {MOST:,} runs.")
    return [(placed(run, seed, out, several), line) for seed in grid.seeds for run, line in arms]


def check(grid: Grid, run: Run, choice: Choice, line: int) -> None:
    """Refuse settings that make no sense, at the line of the one that the error names."""
    try:
        configured(run)
    except SunriseError as error:
        named = [name for name in choice.settings if re.search(rf"\b{re.escape(name)}\b", str(error))]
        raise grid.wrong(choice.settings[named[0]].line if named else line, str(error)) from None


def placed(run: Run, seed: int, out: Path, several: bool) -> Run:
    """The run of a seed, in its folder."""
    folder = out / "runs" / run_folder(run.env, run.arm.name, seed)
    before = out / "runs" / run_folder(run.env, run.arm.name.removeprefix(f"{algorithm_of(run.arm).name} "), seed)
    if several and before != folder and is_of(before, algorithm_of(run.arm).name):
        folder = before  # begun when the file had one algorithm
    own = {"total_timesteps": configured_length(run), "seed": seed, "run_dir": str(folder)}
    return run._replace(seed=seed, settings={**run.settings, **own}, folder=folder)


def configured_length(run: Run) -> int:
    """Timesteps of a run, where its settings do not say."""
    return int(run.settings.get("total_timesteps", defaults_for(algorithm_of(run.arm), run.env).run.total_timesteps))


def is_of(folder: Path, algo: str) -> bool:
    """Whether a folder holds a run of an algorithm."""
    try:
        return bool(RunFolder(folder).config()[0]["algo"] == algo)
    except SunriseError:
        return False


def part_of(runs: Sequence[Run], only: str) -> list[Run]:
    """The i-th of n parts, given as `i/n`, for a scheduler that starts the parts."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", only)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise SunriseError(f"--only is {only!r}, but must be i/n with i from 1 to n, such as 1/4.")
    return list(runs[int(found[1]) - 1 :: int(found[2])])
