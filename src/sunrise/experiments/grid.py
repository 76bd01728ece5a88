"""A sweep's file: algorithms x environments x settings x seeds, as it is written and what its arms set.

A list under `settings` or in an arm is an axis: one arm for each of its values, named `ARM name=value`. A setting
that is a list itself, such as `net_arch`, takes a flat list as its value and a list of lists as an axis.
"""

import itertools
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.check import declared_in
from sunrise.config.length import Length
from sunrise.config.marked import FileError, Marked
from sunrise.config.preset_file import PresetFile, read_preset_file, settings_of
from sunrise.config.resolve import defaults_for, preset_settings
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError, near
from sunrise.experiments.paper import Arm
from sunrise.experiments.runs import algorithm_of, repeat_of

KEYS = ("name", "algo", "env_id", "seeds", "settings", "arms")
ELSEWHERE = {"seed": "`seeds`", "env_id": "`env_id` of the grid", "run_dir": "--out", "algo": "`algo` of the grid"}
"""Settings that a sweep's file says in another place."""
BESIDES = ("preset", "config", "total_env_steps")
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

    def settled(
        self, given: Mapping[str, Marked], algo: Algorithm, env: str, line: int
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Settings by name, those of a preset and of a file first, and a length in simulator steps as timesteps.

        And what the file says about how its settings were chosen.
        """
        settings = {name: entry.value for name, entry in given.items()}
        preset, env_steps = settings.pop("preset", None), settings.pop("total_env_steps", None)
        file, labels = settings.pop("config", None), dict[str, Any]()
        at = next((given[name] for name in BESIDES if name in given), Marked(None, line))
        try:
            if file is not None:
                read = self.preset_file(str(file), env)
                settings, labels = {**kept_of(settings_of(read, algo)), **settings}, dict(read.labels)
            settings = {**preset_settings(algo, preset, env), **settings}
            if env_steps is not None:
                repeat = repeat_of(defaults_for(algo, env), env)
                total = Length(settings.get("total_timesteps"), env_steps).in_timesteps(repeat)
                settings["total_timesteps"] = total
        except (SunriseError, OSError, TypeError) as error:
            raise self.wrong(at, f"{error}") from None
        return {**settings, "env_id": env}, labels

    def preset_file(self, name: str, env: str) -> PresetFile:
        """A file with settings; `{env_id}` in its name is the environment, where each has a file of its own."""
        found = read_preset_file(self.path.parent / name.replace("{env_id}", as_file_name(env)))
        if found.env_id not in ("", env) and not found.is_run:
            raise SunriseError(f"{found.path} is for {found.env_id}, not for {env}.")
        return found


def kept_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file that are not said by the grid itself."""
    return {name: value for name, value in settings.items() if name not in ELSEWHERE}


def as_file_name(env: str) -> str:
    """An environment's id as a file's or a folder's name has it."""
    return env.replace("/", "-").replace(":", "-")


def takes_list(kind: Any) -> bool:
    """Whether a setting's own value is a list."""
    return typing.get_origin(kind) is tuple or any(typing.get_origin(part) is tuple for part in typing.get_args(kind))


def label_of(value: Any) -> str:
    """A value as a name shows it."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
