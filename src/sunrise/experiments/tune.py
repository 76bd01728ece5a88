"""Tuning: candidates on the seeds of selection, the best as a preset file, and that on the seeds of the report."""

import csv
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.config.preset_file import write_preset_file
from sunrise.console import say
from sunrise.errors import SunriseError
from sunrise.experiments.executor import Execution, Failure, execute, saying_how_to_go_on
from sunrise.experiments.grid import ELSEWHERE, as_file_name
from sunrise.experiments.listing import print_plan
from sunrise.experiments.rungs import Result, climb
from sunrise.experiments.runs import Run
from sunrise.experiments.study import Proposals, Sampler, held
from sunrise.experiments.tuning import Candidate, Range, Tuning
from sunrise.files.folder import Folder

COLUMNS = ("env", "candidate", "state", "timesteps", "mean", "scores", "settings")


@dataclass(frozen=True)
class Method:
    """How candidates are found and given up."""

    sampler: Sampler = "grid"
    """Every combination, or one of Optuna's samplers (extra `tune`): tpe or random."""
    trials: int = 20
    """Candidates that a sampler proposes, for each environment."""
    parallel: int = 1
    """Candidates that a sampler proposes at a time, without knowing how the others of them do."""
    rungs: int = 1
    """Lengths of training at which candidates are compared, each three times the one before: a third goes on to the
    next (successive halving). 1: all are trained to the end."""
    sampler_seed: int = 0
    """Seed of the sampler."""

    def check(self) -> None:
        """Refuse what makes no sense."""
        for name in ("trials", "parallel", "rungs"):
            if getattr(self, name) < 1:
                raise SunriseError(f"{name} is {getattr(self, name)}, but must be at least 1.")


class Tuned(NamedTuple):
    """What a tuning came to."""

    reported: list[Path]
    """Folders of the winners' runs on the seeds of the report."""
    failed: bool


def tune(
    file: Path, out: Path, execution: Execution, method: Method, report: bool, dry_run: bool, command: Sequence[str]
) -> Tuned:
    """Choose settings for every environment of a file, write them, and make the runs that are reported."""
    method.check()
    tuning, out = Tuning(file), out.absolute()
    print_plan(f"{file.name}: {out}", planned(tuning, out, method, report))
    if dry_run:
        return Tuned([], False)
    failures: list[Failure] = []
    rows: list[dict[str, Any]] = []
    reported: list[Path] = []
    with saying_how_to_go_on(command), held(out):
        for env in tuning.envs:
            results, failed = search(tuning, env, out, execution, method)
            failures += failed
            rows += [row_of(env, result) for result in results]
            write_rows(out, rows)
            winner = best(results, env)
            preset = write_winner(tuning, env, out, method, winner, results)
            say(f"{env}: {winner.candidate.name}, {winner.mean:.1f} on the seeds of selection: {preset}")
            if report:
                runs = reporting(tuning, env, out, winner)
                failures += execute(runs, execution)
                reported += [run.folder for run in runs if run.begun]
    if failures:
        say(f"{len(failures)} runs failed:")
        for failure in failures:
            say(f"  {failure.run.folder.name}: {failure.why}")
        say(f"What there is to know about each is in its folder. Go on with them: {shlex.join(command)}")
    return Tuned(reported, bool(failures))


def planned(tuning: Tuning, out: Path, method: Method, report: bool) -> list[Run]:
    """The runs there may be: all at full length, and a sampler's with the first values of everything."""
    runs: list[Run] = []
    for env in tuning.envs:
        candidates = list(tuning.grid_of(env)) if method.sampler == "grid" else []
        if method.sampler != "grid":
            space = tuning.space(env)
            first = {n: values.low if isinstance(values, Range) else values[0] for n, (_, values) in space.items()}
            candidates = [Candidate(f"{method.sampler} {number}", first) for number in range(method.trials)]
        where = out / ("select" if method.sampler == "grid" else "plan")
        runs += [tuning.run(env, one, seed, where) for one in candidates for seed in tuning.select_seeds]
        if report:
            own = candidates[0]._replace(name="tuned")
            runs += [tuning.run(env, own, seed, out / "plan") for seed in tuning.report_seeds]
    return runs


def search(
    tuning: Tuning, env: str, out: Path, execution: Execution, method: Method
) -> tuple[list[Result], list[Failure]]:
    """Train candidates for one environment; what each came to."""
    select = out / "select"
    if method.sampler == "grid":
        return climb(tuning, env, list(tuning.grid_of(env)), select, execution, method.rungs)
    proposals = Proposals(out, tuning, env, method.sampler, method.sampler_seed)
    failures: list[Failure] = []
    without: set[int] = set()
    while batch := proposals.batch(method.trials, method.parallel, without):
        before = [result.means for result in proposals.results()]
        candidates = [candidate for _, candidate in batch]
        results, failed = climb(tuning, env, candidates, select, execution, method.rungs, before)
        failures += failed
        for (trial, _), result in zip(batch, results, strict=True):
            proposals.tell(trial, result)
            without |= {trial.number} if result.failed else set()
    return proposals.results(), failures


def best(results: Sequence[Result], env: str) -> Result:
    """The candidate with the highest mean over the seeds of selection, of those that came to the end."""
    complete = [result for result in results if result.complete and not result.failed]
    if not complete:
        raise SunriseError(f"no candidate for {env} came to its end: there is nothing to choose from.")
    return max(complete, key=lambda result: result.mean)


def write_winner(
    tuning: Tuning, env: str, out: Path, method: Method, winner: Result, results: Sequence[Result]
) -> Path:
    """The preset file of an environment's winner."""
    path = out / "best" / f"{as_file_name(env)}.yaml"
    settings = {name: value for name, value in tuning.settings(env, winner.candidate).items() if name not in ELSEWHERE}
    chosen_by = chosen(tuning, winner) | {"candidates": len(results), "sampler": method.sampler}
    write_preset_file(path, tuning.algo, env, settings, tuning.select_seeds, chosen_by)
    return path


def chosen(tuning: Tuning, winner: Result) -> dict[str, Any]:
    """By which scores a candidate won, one for each of the seeds `tuned_on`; and the seeds that were kept apart."""
    means = {"score": tuning.score, "mean": winner.mean, "scores": list(winner.scores)}
    return means | {"candidate": winner.candidate.name, "report_seeds": tuning.report_seeds}


def reporting(tuning: Tuning, env: str, out: Path, winner: Result) -> list[Run]:
    """The winner's runs on the seeds of the report."""
    labels = {"tuned_on": tuning.select_seeds, "chosen_by": chosen(tuning, winner)}
    own = winner.candidate._replace(name="tuned")
    return [tuning.run(env, own, seed, out / "report", **labels) for seed in tuning.report_seeds]


def row_of(env: str, result: Result) -> dict[str, Any]:
    """A candidate as a row of candidates.csv."""
    state = "failed" if result.failed else "finished" if result.complete else "given up"
    reached = max(result.means, default=0)
    mean = result.means.get(reached, "")
    scores, settings = json.dumps(result.scores), json.dumps(dict(result.candidate.settings))
    return dict(zip(COLUMNS, (env, result.candidate.name, state, reached, mean, scores, settings), strict=True))


def write_rows(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Every candidate with its scores, as data."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    Folder(out).write("candidates.csv", text.getvalue().encode())
