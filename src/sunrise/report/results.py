"""Runs as rows: every run below some folders, read without what computed them.

A folder may come from a stranger, and its run may go on while it is read: everything goes through
`sunrise.files.folder` and `sunrise.store.logs`, links are not followed, a row without an end is left out, and what
cannot be read is named and left out.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sunrise.errors import DamagedError, SunriseError
from sunrise.files import documents
from sunrise.files.folder import Folder, open_file
from sunrise.report.columns import LENGTH, Columns, action_repeat, clean, columns, evaluated, last_timestep, numbers_of
from sunrise.store.logs import EVAL_FIELDS
from sunrise.store.run_folder import CONFIG, STATUS, RunFolder

__all__ = ["LENGTH", "Columns", "Found", "Run", "clean", "find_runs", "read_run", "read_table", "run_folders"]
Status = Literal["running", "stopped", "finished", "failed"]
DEEPEST, MOST_RUNS = 8, 10_000
"""Folders below the one that was named, and runs in a report."""
METRICS_TABLE = "metrics.csv"
"""What was kept of a run's metrics where a row an event was too much to keep."""
TABLE = "results.csv"
TABLE_COLUMNS = ("env", "arm", "seed", "env_steps", *EVAL_FIELDS)
"""What a report keeps of its runs' evaluations."""


class Run(NamedTuple):
    """One run: who it was, how it went, and what it logged."""

    name: str
    """Its path below the folder that was named."""
    folder: Path
    algo: str
    env: str
    seed: int
    arm: str
    """What it is compared as; of a run that does not say so itself, empty until `arms` names it."""
    settings: dict[str, Any]
    versions: dict[str, Any]
    machine: dict[str, Any]
    command: tuple[str, ...]
    status: Status
    reason: str
    """Why it failed or stopped, where that is known."""
    timesteps: int
    total_timesteps: int
    action_repeat: int
    evaluations: Columns
    """The columns of eval.csv, with `env_steps`, and with `hours` where the metrics have the time."""
    metrics: Columns
    """The columns of metrics.jsonl; NaN where a row lacks one."""
    videos: tuple[Path, ...] = ()
    tuned_on: tuple[int, ...] = ()
    """Seeds that its settings were chosen by."""
    notes: tuple[str, ...] = ()
    """What is wrong with it and yet can be read."""

    @property
    def finished(self) -> bool:
        return self.status == "finished"


class Found(NamedTuple):
    """The runs that could be read, and a sentence for each that could not."""

    runs: tuple[Run, ...]
    problems: tuple[str, ...]


def find_runs(places: Iterable[Path]) -> Found:
    """Every run in and below some folders, and of the tables of evaluations (`results.csv`) that are named.

    A folder without a run that a report was written to has its runs in that report's table.
    """
    places = list(dict.fromkeys(places))
    runs: dict[Path, Run] = {}
    problems: list[str] = []
    for place in places:
        if not place.exists():
            raise SunriseError(f"there is nothing at {place}.")
        if place.is_file():
            for run in read_table(place):
                runs[place / run.name] = run
            continue
        folders = list(run_folders(Folder(place)))
        if not folders:
            runs |= {place / TABLE / run.name: run for run in kept_table(place)}
            problems.append(clean(f"There is no run in or below {place}: its {TABLE}, of a report, is read instead."))
        for path, parts in folders:
            if len(runs) >= MOST_RUNS:
                raise SunriseError(f"there are more than {MOST_RUNS:,} runs below {place}: name fewer folders.")
            if path.resolve() in runs:
                continue
            shown = parts if len(places) == 1 and parts else (place.resolve().name, *parts)
            try:
                runs[path.resolve()] = read_run(path, "/".join(shown))
            except (SunriseError, OSError) as error:
                problems.append(f"{clean(str(path))} cannot be read and is left out: {clean(str(error))}")
    return Found(tuple(runs.values()), tuple(problems))


def run_folders(folder: Folder, parts: tuple[str, ...] = ()) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The folders that have a config.json, with the names that lead there; links lead nowhere."""
    if folder.status(CONFIG) is not None:
        yield folder.path, parts
    elif len(parts) < DEEPEST:
        for name in folder.folders():
            if not name.startswith("."):
                yield from run_folders(folder.sub(name), (*parts, name))


def read_run(path: Path, name: str = "") -> Run:
    """One run's folder; DamagedError where it is not what a run wrote."""
    folder = RunFolder(path)
    config, notes = read_config(folder.files)
    settings = config["settings"]
    status = clean(folder.read_status())
    rows: Sequence[Mapping[str, Any]] = folder.read_metrics()
    if not rows and folder.files.status(METRICS_TABLE) is not None:
        rows = numbers_of(folder.files.read(METRICS_TABLE, documents.LARGE), path / METRICS_TABLE)
    metrics = columns(rows)
    repeat = max(_whole(config.get("action_repeat"), 1), 1)
    evaluations = evaluated(folder.read_eval(), repeat, metrics)
    reached = max(last_timestep(evaluations, path), last_timestep(metrics, path))
    total = _whole(settings.get("total_timesteps"), 0)
    state, reason = _state(status, folder.files.status(STATUS) is not None, reached >= total)
    command = config.get("command")
    return Run(
        name=clean(name or path.name),
        folder=path,
        algo=config["algo"],
        env=str(settings.get("env_id", "")),
        seed=_whole(settings.get("seed"), 0),
        arm=_arm(config, settings, path.name),
        settings=settings,
        versions=_mapping(config.get("versions")),
        machine=_mapping(config.get("machine")),
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        status=state,
        reason=reason,
        timesteps=_whole(status.get(LENGTH), reached),
        total_timesteps=total,
        action_repeat=repeat,
        evaluations=evaluations,
        metrics=metrics,
        videos=_videos(folder.files),
        tuned_on=tuple(seed for seed in _list(config.get("tuned_on", settings.get("tuned_on"))) if type(seed) is int),
        notes=notes,
    )


def read_config(folder: Folder) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What config.json says, and what is to be said of it; a record of somebody else's run may have less than ours."""
    try:
        content, seal = documents.unsealed(documents.decode_mapping(folder.read(CONFIG, documents.SMALL)))
    except ValueError as error:
        raise DamagedError(f"its {CONFIG} is no document: {error}.") from None
    config: dict[str, Any] = clean(content)
    if not isinstance(config.get("algo"), str) or not isinstance(config.get("settings"), dict):
        raise DamagedError(f"its {CONFIG} names no algorithm and settings.")
    return config, (f"{CONFIG} is not as the run wrote it",) if seal == "broken" else ()


def kept_table(place: Path) -> list[Run]:
    """The runs of the table that a report left in a folder without runs; another's table must be named itself."""
    nothing, folder = f"there is no run in or below {place}", Folder(place)
    if folder.status(TABLE) is None:
        raise SunriseError(f"{nothing}.")
    content = folder.read(TABLE, documents.LARGE)
    if content.partition(b"\n")[0] != ",".join(TABLE_COLUMNS).encode():
        raise SunriseError(f"{nothing}, and its {TABLE} is no report's: to have it read, name that file.")
    return runs_of(content, place / TABLE)


def read_table(path: Path) -> list[Run]:
    """The runs of a table of evaluations: a report's own `results.csv`, where the runs' folders are no longer kept."""
    with open_file(path, documents.LARGE) as file:
        return runs_of(file.read(documents.LARGE), path)


def runs_of(table: bytes, path: Path) -> list[Run]:
    """The runs of the table of evaluations that is at a path."""
    rows = numbers_of(table, path, texts=("env", "arm"))
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if not {"env", "seed", LENGTH, "mean_return"} <= row.keys() or not math.isfinite(row["seed"]):
            raise SunriseError(f"{path} is no table of evaluations: it needs env, arm, seed, timesteps, mean_return.")
        groups.setdefault((row["env"], row.get("arm", ""), int(row["seed"])), []).append(row)
    runs = []
    for (env, arm, seed), own in groups.items():
        numbers = [{key: value for key, value in row.items() if not isinstance(value, str)} for row in own]
        repeat = action_repeat(own[0])
        evaluations = evaluated(numbers, repeat, {})
        last = last_timestep(evaluations, path)
        settings = {"env_id": env, "seed": seed, "total_timesteps": last}
        name, nothing = clean(f"{path.name}: {env}, {arm}, {seed}"), dict[str, Any]()
        facts = (name, path, "", env, seed, arm, settings, nothing, nothing, (), "finished", "", last, last)
        runs.append(Run(*facts, repeat, evaluations, {}))  # type: ignore[arg-type]
    return runs


def _state(status: Mapping[str, Any], written: bool, reached_the_end: bool) -> tuple[Status, str]:
    """How a run is, and why; a kept record of a run has no status of its own, only its length."""
    found = status.get("status")
    if found in ("running", "stopped", "finished", "failed"):
        reason = str(status.get("error") or ("killed" if status.get("killed") else ""))
        return found, reason
    if written:
        return "stopped", "its status.json is damaged"
    return ("finished", "") if reached_the_end else ("stopped", "it has no status.json")


def _arm(config: Mapping[str, Any], settings: Mapping[str, Any], folder: str) -> str:
    """The name that the run was given in a comparison: by its sweep, or by its folder `{env}__{arm}__{seed}`."""
    if isinstance(config.get("arm"), str):
        return str(config["arm"])
    parts = folder.split("__")
    env = str(settings.get("env_id", "")).replace("/", "-")
    of_a_sweep = len(parts) >= 3 and parts[0] == env and parts[-1] == str(settings.get("seed"))
    return clean(" ".join(parts[1:-1]).replace("_", " ")) if of_a_sweep else ""


def _videos(folder: Folder) -> tuple[Path, ...]:
    try:
        names = folder.sub("videos").names()
    except (OSError, DamagedError):
        return ()
    return tuple(folder.path / "videos" / name for name in names if name.endswith(".mp4"))


def _whole(value: Any, otherwise: int) -> int:
    return value if type(value) is int else otherwise


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
