"""A sweep's file: algorithms x environments x settings x seeds, and the runs it asks for.

A list under `settings` or in an arm is an axis: one arm for each of its values, named `ARM name=value`. A setting
that is a list itself, such as `net_arch`, takes a flat list as its value and a list of lists as an axis.
"""

import itertools
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.check import declared_in
from sunrise.config.length import Length
from sunrise.config.marked import FileError, Marked, read_yaml
from sunrise.config.resolve import defaults_for, preset_settings
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError, near
from sunrise.experiments.paper import Arm
from sunrise.experiments.runs import Run, algorithm_of, configured, repeat_of, run_folder
from sunrise.store.run_folder import RunFolder

KEYS = ("name", "algo", "env_id", "seeds", "settings", "arms")
ELSEWHERE = {"seed": "`seeds`", "env_id": "`env_id` of the grid", "run_dir": "--out", "algo": "`algo` of the grid"}
"""Settings that a sweep's file says in another place."""
BESIDES = ("preset", "total_env_steps")
"""What may stand among the settings and is none."""
MOST = 100_000
"""Runs of one file: more are a slip."""


class Choice(NamedTuple):
    """One value for each axis of an arm: what it is called and what it sets."""

    name: str
    settings: dict[str, Marked]


class Grid:
    """One block of a file."""

    def __init__(self, path: Path, block: Marked) -> None:
        self.path, self.line = path, block.line
        if not isinstance(block.value, dict):
            raise self.wrong(block, "a grid must have keys, such as `algo` and `env_id`.")
        for key, entry in block.value.items():
            if key not in KEYS:
                raise self.wrong(entry, f"there is no key {key!r}.{near(key, KEYS, count=1)}{self._meant(key)}")
        self.name = str(block.value["name"].value) if "name" in block.value else ""
        self.algos = {word.value: self.looked_up(word) for word in self.words(block, "algo")}
        self.envs = self.words(block, "env_id")
        self.seeds = self.read_seeds(block.value.get("seeds", Marked(1, block.line)))
        self.settings = self.mapping(block.value.get("settings", Marked({}, block.line)), "settings")
        arms = self.mapping(block.value.get("arms", Marked({}, block.line)), "arms")
        self.arms = {name: self.mapping(arm, f"the arm {name!r}") for name, arm in arms.items()}
        self.lines = {name: arm.line for name, arm in arms.items()}

    def wrong(self, where: Marked | int, problem: str) -> FileError:
        return FileError(self.path, where if isinstance(where, int) else where.line, problem)

    def _meant(self, key: str) -> str:
        known = set().union(*(flatten_config(known.defaults) for known in ALGORITHMS.values()))
        return " It is a setting: write it under `settings`." if key in known else ""

    def words(self, block: Marked, key: str) -> list[Marked]:
        """One word or a list of them."""
        if key not in block.value:
            raise self.wrong(block, f"the grid has no `{key}`.")
        given = block.value[key]
        words = given.value if isinstance(given.value, list) else [given]
        for word in words:
            if not isinstance(word.value, str) or not word.value:
                raise self.wrong(word, f"{key} must be a name or a list of names.")
        if not words:
            raise self.wrong(given, f"{key} is an empty list.")
        return list(words)

    def looked_up(self, word: Marked) -> Algorithm:
        """An algorithm by its name; one that there is not is refused."""
        try:
            return algorithm_of(Arm("", word.value))
        except SunriseError as error:
            raise self.wrong(word, str(error)) from None

    def read_seeds(self, given: Marked) -> list[int]:
        """`5` is 1 to 5; a list is taken as it is."""
        if type(given.value) is int and 1 <= given.value <= MOST:
            return list(range(1, given.value + 1))
        seeds = [entry.value for entry in given.value] if isinstance(given.value, list) else []
        if not seeds or not all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds):
            raise self.wrong(given, "seeds must be how many (1 or more), or a list of whole numbers from 0.")
        if len(set(seeds)) < len(seeds):
            raise self.wrong(given, "a seed is there twice.")
        return seeds

    def mapping(self, given: Marked, what: str) -> dict[str, Marked]:
        if given.value is None:
            return {}
        if not isinstance(given.value, dict):
            raise self.wrong(given, f"{what} must be names with values.")
        return given.value

    # -- arms ----------------------------------------------------------------------------------------------------------

    def choices(self, algo: Algorithm) -> Iterator[tuple[Choice, int]]:
        """Every arm for an algorithm, with one value on each axis; and the line it stands on."""
        for arm, own in (self.arms or {"": {}}).items():
            axes = [self.axis(algo, name, entry) for name, entry in {**self.settings, **own}.items()]
            for picked in itertools.product(*axes):
                marks = [label for label, _, _ in picked if label]
                name = " ".join([arm or algo.name, *marks])
                yield Choice(name, {setting: value for _, setting, value in picked}), self.lines.get(arm, self.line)

    def axis(self, algo: Algorithm, name: str, entry: Marked) -> list[tuple[str, str, Marked]]:
        """What a setting is to be, in turn: a label where there is a choice, the name and the value."""
        kinds = {known: kind for known, (kind, _) in declared_in(algo.defaults)}
        if name in ELSEWHERE:
            raise self.wrong(entry, f"{name} is no setting of a sweep: it is {ELSEWHERE[name]}.")
        if name not in kinds and name not in BESIDES:
            meant = near(name, [*kinds, *BESIDES], count=1, alike=0.7)
            raise self.wrong(entry, f"{algo.name} has no setting {name!r}.{meant}")
        flat = name in kinds and takes_list(kinds[name])
        if not isinstance(entry.value, list) or (flat and not any(isinstance(e.value, list) for e in entry.value)):
            return [("", name, Marked(self.plain(name, entry), entry.line))]
        if not entry.value:
            raise self.wrong(entry, f"{name} is an empty list.")
        values = [Marked(self.plain(name, each, flat), each.line) for each in entry.value]
        return [(f"{name}={label_of(value.value)}", name, value) for value in values]

    def plain(self, name: str, entry: Marked, flat: bool = True) -> Any:
        """A value without its marks."""
        if isinstance(entry.value, list) and flat:
            if all(not isinstance(each.value, list | dict) for each in entry.value):
                return tuple(each.value for each in entry.value)
        elif not isinstance(entry.value, list | dict):
            return entry.value
        raise self.wrong(entry, f"{name} must be a value, or a list of values to go through.")

    # -- runs ----------------------------------------------------------------------------------------------------------

    def runs(self, out: Path, several: bool) -> list[tuple[Run, int]]:
        """Every run with the line of its arm: all arms of a seed before the next seed. Settings are checked once."""
        arms: list[tuple[Run, int]] = []
        for env, (named, algo) in itertools.product(self.envs, self.algos.items()):
            for choice, line in self.choices(algo):
                called = choice.name if not several or not self.arms else f"{algo.name} {choice.name}"
                settings = self.settled(choice.settings, algo, env.value, line)
                run = Run(Arm(called, named), env.value, 0, settings, out)
                self.check(run, choice, line)
                arms.append((run, line))
                if len(arms) * len(self.seeds) > MOST:
                    raise self.wrong(line, f"the grid has more than {MOST:,} runs.")
        return [(self.placed(run, seed, out, several), line) for seed in self.seeds for run, line in arms]

    def settled(self, given: Mapping[str, Marked], algo: Algorithm, env: str, line: int) -> dict[str, Any]:
        """Settings by name: those of a preset first, and a length in simulator steps as timesteps."""
        settings = {name: entry.value for name, entry in given.items()}
        preset, env_steps = settings.pop("preset", None), settings.pop("total_env_steps", None)
        at = given.get("preset", given.get("total_env_steps", Marked(None, line)))
        try:
            settings = {**preset_settings(algo, preset, env), **settings}
            if env_steps is not None:
                repeat = repeat_of(defaults_for(algo, env), env)
                total = Length(settings.get("total_timesteps"), env_steps).in_timesteps(repeat)
                settings["total_timesteps"] = total
        except (SunriseError, TypeError) as error:
            raise self.wrong(at, f"{error}") from None
        return {**settings, "env_id": env}

    def check(self, run: Run, choice: Choice, line: int) -> None:
        """Refuse settings that make no sense, at the line of the one that the error names."""
        try:
            configured(run)
        except SunriseError as error:
            named = [name for name in choice.settings if re.search(rf"\b{re.escape(name)}\b", str(error))]
            raise self.wrong(choice.settings[named[0]].line if named else line, str(error)) from None

    def placed(self, run: Run, seed: int, out: Path, several: bool) -> Run:
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


def takes_list(kind: Any) -> bool:
    """Whether a setting's own value is a list."""
    return typing.get_origin(kind) is tuple or any(typing.get_origin(part) is tuple for part in typing.get_args(kind))


def label_of(value: Any) -> str:
    """A value as a name shows it."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


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
    for run, line in itertools.chain.from_iterable(grid.runs(out, several) for grid in grids):
        if len(run.folder.name.encode()) > 200 or not run.folder.name.isprintable():
            raise FileError(path, line, f"{run.folder.name[:80]!r} is no name for a folder: give shorter arms names.")
        if run.folder.name in found:
            first = found[run.folder.name]
            raise FileError(path, line, f"the run {run.folder.name} is also asked for by line {first}: name its arm.")
        found[run.folder.name] = line
        runs.append(run)
    return runs


def part_of(runs: Sequence[Run], only: str) -> list[Run]:
    """The i-th of n parts, given as `i/n`, for a scheduler that starts the parts."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", only)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise SunriseError(f"--only is {only!r}, but must be i/n with i from 1 to n, such as 1/4.")
    return list(runs[int(found[1]) - 1 :: int(found[2])])
