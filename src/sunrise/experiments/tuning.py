"""A tuning's file: what is searched, on which seeds it is chosen, and on which others it is reported (docs/tune.md)."""

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.config.algorithms import Algorithm
from sunrise.config.marked import FileError, Marked, read_yaml
from sunrise.errors import SunriseError, near
from sunrise.experiments.grid import MOST, Grid, label_of
from sunrise.experiments.grid_runs import configured_length
from sunrise.experiments.paper import SEARCH, Arm
from sunrise.experiments.runs import Run, configured, run_folder

OWN = ("search", "select_seeds", "report_seeds", "score")
TAKEN = ("algo", "env_id", "settings")
SELECT_FROM = 1000
"""Seeds of selection that are given as their number begin after this one; those of the report begin at 1."""
SCORES = ("last", "area")
PAPER = {"ALE/": "atari", "dmc/": "dmc"}


class Range(NamedTuple):
    """Numbers between two others."""

    low: float
    high: float
    log: bool
    whole: bool
    """Whether only whole numbers are meant: both ends are."""


class Candidate(NamedTuple):
    """Settings that may win."""

    name: str
    settings: Mapping[str, Any]


class Tuning:
    """What a file asks for, for one of its environments after the other."""

    def __init__(self, path: Path) -> None:
        self.path, whole = path, read_yaml(path)
        if not isinstance(whole.value, dict):
            raise FileError(path, whole.line, "it must have keys, such as `algo`, `env_id` and `search`.")
        given: dict[str, Marked] = whole.value
        for key, entry in given.items():
            if key not in (*OWN, *TAKEN):
                known = (*OWN, *TAKEN)
                hint = near(key, known, count=1) or f" There are {', '.join(known)}."
                raise FileError(path, entry.line, f"there is no key {key!r}.{hint}")
        self.grid = Grid(path, Marked({name: given[name] for name in TAKEN if name in given}, whole.line))
        if len(self.grid.algos) > 1:
            raise FileError(path, given["algo"].line, "one algorithm is tuned at a time.")
        ((self.algo, self.algorithm),) = self.grid.algos.items()
        self.envs = [env.value for env in self.grid.envs]
        self.select_seeds = self.seeds(given, "select_seeds", SELECT_FROM)
        self.report_seeds = self.seeds(given, "report_seeds", 0)
        shared = sorted(set(self.select_seeds) & set(self.report_seeds))
        if shared:
            raise FileError(
                path,
                given.get("report_seeds", whole).line,
                f"the seed {shared[0]} is one of selection and of the report: settings chosen on a seed look better "
                "on it than they are.",
            )
        self.score = str(given["score"].value) if "score" in given else "last"
        if self.score not in SCORES:
            raise FileError(path, given["score"].line, f"score must be one of {', '.join(SCORES)}.")
        self.given = given.get("search", Marked("paper", whole.line))
        for env in self.envs:
            self.check(env)

    def seeds(self, given: Mapping[str, Marked], name: str, after: int) -> list[int]:
        """`3` is the three seeds after a number; a list is taken as it is."""
        entry = given.get(name, Marked(1, 0))
        seeds = self.grid.read_seeds(entry)
        return [after + seed for seed in seeds] if type(entry.value) is int else seeds

    # -- what is searched ----------------------------------------------------------------------------------------------

    def space(self, env: str) -> dict[str, tuple[Marked, list[Any] | Range]]:
        """What each setting may be, with where that stands."""
        if self.given.value == "paper":
            kind = next((kind for prefix, kind in PAPER.items() if env.startswith(prefix)), "gym")
            return {name: (self.given, list(values)) for name, values in SEARCH[kind].items()}
        if not isinstance(self.given.value, dict) or not self.given.value:
            raise FileError(self.path, self.given.line, "search must be settings with lists or ranges, or `paper`.")
        return {name: (entry, self.values(self.algorithm, name, entry)) for name, entry in self.given.value.items()}

    def values(self, algo: Algorithm, name: str, entry: Marked) -> list[Any] | Range:
        """A list of values, or a range."""
        if isinstance(entry.value, dict):
            bounds = {key: bound.value for key, bound in entry.value.items()}
            self.grid.axis(algo, name, Marked(bounds.get("low"), entry.line))  # refuses a name that is no setting
            low, high, log = bounds.pop("low", None), bounds.pop("high", None), bounds.pop("log", False)
            numbers = all(type(bound) in (int, float) for bound in (low, high))
            if bounds or not numbers or type(log) is not bool or not low < high or (log and low <= 0):
                raise FileError(self.path, entry.line, f"a range of {name} is {{low: 0.1, high: 10, log: true}}.")
            return Range(low, high, log, type(low) is int and type(high) is int)
        values = [value.value for _, _, value in self.grid.axis(algo, name, entry)]
        if len({repr(value) for value in values}) < len(values):
            raise FileError(self.path, entry.line, f"a value of {name} is there twice.")
        return values

    def check(self, env: str) -> None:
        """Refuse a value that makes no sense, at its line."""
        space = self.space(env)
        first = {name: values.low if isinstance(values, Range) else values[0] for name, (_, values) in space.items()}
        for name, (entry, values) in space.items():
            for value in (values.low, values.high) if isinstance(values, Range) else values:
                run = self.run(env, Candidate("", {**first, name: value}), 0, Path())
                try:
                    total = configured(run).run
                except SunriseError as error:
                    raise FileError(self.path, entry.line, str(error)) from None
        if not total.eval_freq:
            raise FileError(self.path, self.given.line, "eval_freq is 0: there would be nothing to choose by.")

    def grid_of(self, env: str) -> Iterator[Candidate]:
        """Every combination of the values."""
        axes = []
        for name, (entry, values) in self.space(env).items():
            if isinstance(values, Range):
                raise FileError(self.path, entry.line, f"{name} is a range: a grid needs a list, or give a --sampler.")
            axes.append([(name, value) for value in values])
        if math.prod(map(len, axes)) > MOST:
            raise FileError(self.path, self.given.line, f"the grid has more than {MOST:,} candidates.")
        for picked in itertools.product(*axes):
            yield Candidate(" ".join(f"{name}={label_of(value)}" for name, value in picked), dict(picked))

    # -- runs ----------------------------------------------------------------------------------------------------------

    def settings(self, env: str, candidate: Candidate) -> dict[str, Any]:
        """All that is said of a candidate's runs, besides the seed and the folder."""
        given = {name: Marked(value, self.given.line) for name, value in candidate.settings.items()}
        base = {name: Marked(self.grid.plain(name, entry), entry.line) for name, entry in self.grid.settings.items()}
        return self.grid.settled({**base, **given}, self.algorithm, env, self.given.line)[0]

    def run(self, env: str, candidate: Candidate, seed: int, out: Path, **labels: Any) -> Run:
        """One run of a candidate, as long as it is to be in the end."""
        folder = out / "runs" / run_folder(env, candidate.name, seed)
        settings = {**self.settings(env, candidate), "seed": seed, "run_dir": str(folder)}
        run = Run(Arm(candidate.name, self.algo), env, seed, settings, folder, labels)
        return run._replace(settings={**settings, "total_timesteps": configured_length(run)})
