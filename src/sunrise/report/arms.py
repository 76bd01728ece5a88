"""What is compared: runs of one arm differ in their seed alone, and an arm is named by what sets it apart."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from sunrise.report.results import Run

PLACE = ("run_dir", "env_id", "seed")
"""What tells runs apart and is no setting of the agents."""
HOUSEHOLD = ("save_freq", "keep", "keep_replay", "log_freq", "max_env_restarts", "env_timeout", "shard_members")
"""What a result does not depend on."""
LENGTHS = ("total_timesteps",)
"""What a command may change while a run goes on: a difference is cautioned against, and makes no arm."""
FIRST = ("algo", "ensemble_size", "weighting", "exploration")
"""What an arm is named by where several settings would do."""
MOST_IN_A_NAME = 3
Value = str
"""A setting's value as JSON, so that lists can be compared and shown."""


def arms(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The same runs, each with the name of its arm.

    A run's own name for its arm stays. What has none, or shares it with a run of the same environment and seed that
    has other settings, is named by the settings that differ.
    """
    differing = differences(runs)
    apart = telling(runs, list(differing))
    named = []
    for run in runs:
        text = ", ".join(f"{name}={plain(setting(run, name))}" for name in apart if name != "algo")
        own = f"{run.algo}, {text}" if "algo" in apart and text else text or run.algo
        named.append(run._replace(arm=run.arm or own))
    clashing = {run.arm for run in twins(named)}
    by_settings = [
        run._replace(arm=f"{run.arm}, {own}") if run.arm in clashing and (own := described(run, apart)) else run
        for run in named
    ]
    still = {id(run) for run in twins(by_settings)}
    return tuple(
        run._replace(arm=f"{run.arm}, {place}") if id(run) in still and (place := run.name.rpartition("/")[0]) else run
        for run in by_settings
    )


def described(run: Run, names: Sequence[str]) -> str:
    """A run by some of its settings, where its arm's name has none of them."""
    parts = (f"{name}={plain(setting(run, name))}" for name in names)
    return ", ".join(part for part in parts if part not in run.arm)


def twins(runs: Sequence[Run]) -> list[Run]:
    """The runs that another one of the same arm, environment and seed is among."""
    counts = Counter((run.env, run.arm, run.seed) for run in runs)
    return [run for run in runs if counts[run.env, run.arm, run.seed] > 1]


def setting(run: Run, name: str) -> Value:
    """A setting of a run as JSON; the algorithm is one."""
    return json.dumps(run.algo if name == "algo" else run.settings.get(name), sort_keys=True, ensure_ascii=False)


def has(run: Run, name: str) -> bool:
    """Whether a run says what a setting of it was, and it did something: λ is for UCB alone."""
    without = name == "ucb_lambda" and run.settings.get("exploration", "ucb") != "ucb"
    return name == "algo" or (name in run.settings and not without)


def plain(value: Value) -> str:
    """A setting's value as a person writes it."""
    found = json.loads(value)
    return found if isinstance(found, str) else value


def differences(runs: Sequence[Run], ignored: Sequence[str] = LENGTHS) -> dict[str, tuple[Value, ...]]:
    """The settings that differ between runs of one environment, with their values in the order they occur.

    What differs from one environment to another alone, such as its action repeat, sets no arms apart; and what a run of
    an older version, or of another's code, does not have is not known to differ.
    """
    names = dict.fromkeys(["algo", *(name for run in runs for name in run.settings)])
    found: dict[str, tuple[Value, ...]] = {}
    by_env: dict[str, list[Run]] = {}
    for run in runs:
        if run.algo:  # a table of evaluations knows no settings
            by_env.setdefault(run.env, []).append(run)
    for name in names:
        if name in (*PLACE, *HOUSEHOLD, *ignored):
            continue
        known = {env: [setting(run, name) for run in group if has(run, name)] for env, group in by_env.items()}
        if any(len(set(values)) > 1 for values in known.values()):
            found[name] = tuple(dict.fromkeys(value for values in known.values() for value in values))
    if {"ensemble_size", "weighting"} <= found.keys() and all(_by_itself(run) for run in runs if run.algo):
        del found["weighting"]
    if {"weighting", "weight_temperature"} <= found.keys() and _follows(runs, "weight_temperature", "weighting"):
        del found["weight_temperature"]
    return found


def telling(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """The fewest settings that tell apart all that the given ones tell apart."""
    ordered = sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    kinds = {(run.env, *(setting(run, name) for name in ordered)) for run in runs}
    for count in range(min(MOST_IN_A_NAME, len(ordered)) + 1):
        for chosen in combinations(range(len(ordered)), count):
            if len({(kind[0], *(kind[1 + place] for place in chosen)) for kind in kinds}) == len(kinds):
                return [ordered[place] for place in chosen]
    return ordered


def _follows(runs: Sequence[Run], name: str, other: str) -> bool:
    """Whether a setting has one value for each value of another: then it is a part of that difference."""
    pairs = {(setting(run, other), setting(run, name)) for run in runs if run.algo}
    return len(pairs) == len({first for first, _ in pairs})


def _by_itself(run: Run) -> bool:
    """Whether the weighting is what it is of itself: none for one agent, confidence for several."""
    size: Any = run.settings.get("ensemble_size")
    return run.settings.get("weighting") == ("none" if size == 1 else "confidence")
