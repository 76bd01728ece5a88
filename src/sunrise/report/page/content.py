"""What the page shows, as JSON: the words of the report, its scores, and each run with its numbers packed."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sunrise.report.arms import PLACE, plain, setting
from sunrise.report.columns import LENGTH, Columns
from sunrise.report.page.packing import packed, roughly, thinned
from sunrise.report.results import Run

Link = Callable[[Run, Path], str]
"""Where the page finds a video of a run; empty where it does not."""
MOST_POINTS = 500
"""Logging points of a run whose ensemble is drawn; of more, means."""
QUANTILES = ("mean", "p05", "p50", "p95")
RECENT = 10
"""Logging points by which the time left is told."""


def content_of(
    runs: Sequence[Run],
    arms: Sequence[str],
    words: Mapping[str, Any],
    scores: Mapping[str, Any],
    link: Link = lambda run, path: "",
) -> dict[str, Any]:
    """Everything: `words` are title, sentence, warnings and made; `scores` are tables, intervals and profiles."""
    common = common_settings(runs)
    return {
        **words,
        "arms": list(arms),
        "tasks": list(dict.fromkeys(run.env for run in runs)),
        "scores": dict(scores),
        "settings": {"common": common, "differing": differing_settings(runs, arms, common)},
        "grounds": grounds(runs),
        "runs": [run_content(run, common, link) for run in runs],
    }


def run_content(run: Run, common: Mapping[str, str], link: Link) -> dict[str, Any]:
    """One run, with the settings that not all runs share."""
    evaluations = {name: packed(run.evaluations[name]) for name in (LENGTH, "mean_return")}
    if "hours" in run.evaluations:
        evaluations["hours"] = packed(run.evaluations["hours"])
    reached = max(run.timesteps, _last(run.metrics), _last(run.evaluations))
    own = {name: plain(setting(run, name)) for name in run.settings if name not in common}
    return {
        "id": run.name,
        "task": run.env,
        "arm": run.arm,
        "seed": run.seed,
        "status": run.status,
        "reason": run.reason,
        "timesteps": reached,
        "total_timesteps": run.total_timesteps,
        "action_repeat": run.action_repeat,
        "hours": float(hours[-1]) if (hours := _known(run.evaluations, "hours")).size else None,
        "left": seconds_left(run.metrics, run.total_timesteps - reached) if run.status == "running" else None,
        "command": shell(run.command),
        "resume": shell(("sunrise", "resume", str(run.folder))) if run.algo else "",
        "own": own,
        "videos": [{"name": path.name, "source": found} for path in run.videos if (found := link(run, path))],
        "eval": evaluations,
        "ensemble": ensemble(run.metrics),
    }


def ensemble(metrics: Columns) -> dict[str, Any] | None:
    """What an ensemble logs of itself: how far it disagrees, its weights, and who acted; None where it logs nothing."""
    chosen = sorted((name for name in metrics if name.startswith("chosen/")), key=_member)
    spreads = [name for name in ("disagreement", "weight") if f"train/{name}_mean" in metrics]
    names = [f"train/{name}_{part}" for name in spreads for part in QUANTILES if f"train/{name}_{part}" in metrics]
    if LENGTH not in metrics or not names:
        return None
    known = np.isfinite(np.stack([metrics[name] for name in names])).any(0)
    columns = thinned({name: metrics[name][known] for name in (LENGTH, *names, *chosen)}, MOST_POINTS)
    spread = {
        name: {part: roughly(columns[full]) for part in QUANTILES if (full := f"train/{name}_{part}") in columns}
        for name in spreads
    }
    return {LENGTH: packed(columns[LENGTH]), **spread, "chosen": [roughly(columns[name]) for name in chosen]}


def _member(name: str) -> tuple[int, str]:
    number = name.partition("/")[2]
    return (int(number) if number.isdecimal() else 0, name)


def seconds_left(metrics: Columns, timesteps: int) -> float | None:
    """How long so many timesteps take at the speed of the last logging points."""
    if "time/elapsed_s" not in metrics or LENGTH not in metrics:
        return None
    elapsed, steps = metrics["time/elapsed_s"][-RECENT:], metrics[LENGTH][-RECENT:]
    began = np.flatnonzero(np.diff(elapsed) < 0)  # a run that was resumed counts from nought again
    first = began[-1] + 1 if began.size else 0
    done, taken = steps[-1] - steps[first], elapsed[-1] - elapsed[first]
    return float(max(timesteps, 0) * taken / done) if done > 0 and np.isfinite(taken) else None


def _known(columns: Columns, name: str) -> np.ndarray:
    values = columns.get(name, np.zeros(0))
    return values[np.isfinite(values)]


def _last(columns: Columns) -> int:
    steps = _known(columns, LENGTH)
    return int(steps[-1]) if steps.size else 0


def shell(command: Sequence[str]) -> str:
    """A command as one types it."""
    if not command:
        return ""
    first = "sunrise" if Path(command[0]).name in ("__main__.py", "sunrise") else command[0]
    return shlex.join((first, *command[1:]))


# -- what runs share and do not ----------------------------------------------------------------------------------------


def common_settings(runs: Sequence[Run]) -> dict[str, str]:
    """The settings that every run has, with the same value."""
    names = dict.fromkeys(name for run in runs for name in run.settings if name not in PLACE)
    values = {name: {setting(run, name) if name in run.settings else None for run in runs} for name in names}
    return {name: plain(found) for name, own in values.items() if len(own) == 1 and (found := next(iter(own)))}


def differing_settings(runs: Sequence[Run], arms: Sequence[str], common: Mapping[str, str]) -> list[dict[str, Any]]:
    """The others, with the values that each arm has."""
    names = dict.fromkeys(["algo", *(name for run in runs for name in run.settings)])
    rows = []
    for name in names:
        if name in PLACE or name in common:
            continue
        values = {
            arm: list(dict.fromkeys(plain(setting(run, name)) for run in runs if run.arm == arm and run.algo))
            for arm in arms
        }
        if len({value for own in values.values() for value in own}) > 1:
            rows.append({"name": name, "values": values})
    return rows


def grounds(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What runs were made with and on: once for all that share it."""
    found: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        if run.versions or run.machine:
            key = tuple((name, str(value)) for name, value in {**run.versions, **run.machine}.items())
            found.setdefault(key, []).append(run)
    return [
        {
            "versions": {name: str(value) for name, value in own[0].versions.items()},
            "machine": {name: str(value) for name, value in own[0].machine.items()},
            "runs": [run.name for run in own],
        }
        for own in found.values()
    ]
