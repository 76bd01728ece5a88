"""What must be known before a number is believed, in sentences that stand at the top of all that a report writes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sunrise.report.arms import Value, differences, has, plain, setting, twins
from sunrise.report.protocols import Protocol
from sunrise.report.results import Run

FEW_SEEDS, FEW_EPISODES = 5, 10
MOST_NAMES = 4
"""Names in a sentence before the rest is a number."""


class Caution(NamedTuple):
    """One of them."""

    kind: str
    text: str


def cautions(
    runs: Sequence[Run], way: Protocol, counted: Sequence[Run], baseline: str, problems: Sequence[str] = ()
) -> list[Caution]:
    """All that is to be said of these runs; `counted` are those that the tables count."""
    found = [Caution("noted", problem) for problem in problems]
    for kind, look in LOOKS.items():
        found += [Caution(kind, text) for text in look(counted if kind in OF_COUNTED else runs)]
    found += [Caution("settings", text) for text in more_than_one_setting(runs, baseline)]
    found += [Caution("unequal", text) for text in unequal_seeds(runs, counted)]
    left_out = len(runs) - len(counted)
    if left_out:
        found.append(Caution("left out", f"{left_out} of {len(runs)} runs are in the curves and not in the tables."))
    lacking = [run.name for run in counted if not np.isfinite(way.score(run))]
    if lacking:
        found.append(
            Caution("no score", f"{listed(lacking)}: too few evaluations for the {way.label}, left out of it.")
        )
    if way.way == "best":
        text = "The best evaluation is chosen after it is seen: it is too high, and the more so the more there are."
        found.append(Caution("best", text))
    return found


def altered(runs: Sequence[Run]) -> Iterator[str]:
    """Runs of which something is wrong that can yet be read."""
    for note in dict.fromkeys(note for run in runs for note in run.notes):
        names = [run.name for run in runs if note in run.notes]
        yield f"{listed(names)}: {note}."


def few_seeds(runs: Sequence[Run]) -> Iterator[str]:
    """Three seeds and a lucky one are one story."""
    groups = {pair: len({run.seed for run in own}) for pair, own in by_pair(runs).items()}
    few = {pair: count for pair, count in groups.items() if count < FEW_SEEDS}
    if few:
        least, most = min(few.values()), max(few.values())
        seeds = f"{least}" if least == most else f"{least} to {most}"
        where = "every arm" if len(few) == len(groups) else listed([f"{arm} on {env}" for env, arm in few])
        yield f"Fewer than {FEW_SEEDS} seeds ({seeds}) of {where}: intervals of so few runs are too narrow to decide."


def unequal_seeds(runs: Sequence[Run], counted: Sequence[Run]) -> Iterator[str]:
    """Arms that were not run alike."""
    envs, arms = dict.fromkeys(run.env for run in runs), dict.fromkeys(run.arm for run in runs)
    pairs = by_pair(counted)
    lacking = [f"{arm} on {env}" for env in envs for arm in arms if (env, arm) not in pairs]
    if lacking:
        yield f"There is no run of {listed(lacking)}: what is over all tasks is over those that every arm has."
    for env in envs:
        counts = {arm: len(pairs[env, arm]) for arm in arms if (env, arm) in pairs}
        if len(set(counts.values())) > 1:
            shown = [f"{arm} {count}" for arm, count in counts.items()]
            yield f"Unequal numbers of runs on {env}: {listed(shown, 20)}."
    doubled = twins(counted)
    if doubled:
        yield f"The same seed twice in one arm: {listed([run.name for run in doubled])}. These are no independent runs."


def few_episodes(runs: Sequence[Run]) -> Iterator[str]:
    """Evaluations that are noise of their own."""
    episodes = [run.evaluations.get("episodes", np.zeros(0)) for run in runs]
    least = [int(own[np.isfinite(own)].min(initial=FEW_EPISODES)) for own in episodes]
    few = [count for count in least if count < FEW_EPISODES]
    if few:
        yield (
            f"Few evaluation episodes: {min(few)} at the least, fewer than {FEW_EPISODES} in {len(few)} of {len(runs)} "
            "runs. A score is a mean over episodes and carries their noise."
        )


def unfinished(runs: Sequence[Run]) -> Iterator[str]:
    """Runs that did not come to their end, or ended at different timesteps."""
    for state in ("failed", "stopped", "running"):
        own = [run for run in runs if run.status == state]
        if own:
            names = [f"{run.name} at {run.timesteps:,} of {run.total_timesteps:,}{because(run)}" for run in own]
            yield f"{len(own)} run{'s are' if len(own) > 1 else ' is'} {state}, not finished: {listed(names)}."
    ends: dict[str, set[int]] = {}
    for run in runs:
        if run.finished and run.evaluations["timesteps"].size:
            ends.setdefault(run.env, set()).add(int(run.evaluations["timesteps"][-1]))
    for env, own_ends in ends.items():
        if len(own_ends) > 1:
            shown = listed([f"{end:,}" for end in sorted(own_ends)])
            yield f"Runs on {env} end at different timesteps ({shown}): their last evaluations are not of one length."


def because(run: Run) -> str:
    """Why a run is not finished, in brackets."""
    return f" ({run.reason})" if run.reason else ""


def more_than_one_setting(runs: Sequence[Run], baseline: str) -> Iterator[str]:
    """Where an arm differs from the baseline in several settings, none of them alone explains a difference."""
    known = [run for run in runs if run.algo]
    if len(known) < len(runs):
        yield f"The settings and versions of {len(runs) - len(known)} runs are not known: they come from a table."
    for arm in dict.fromkeys(run.arm for run in known if run.arm != baseline):
        both = [run for run in known if run.arm in (arm, baseline)]
        found = {name: values for name, values in differences(both).items() if _differs_between_arms(both, name)}
        if len(found) > 1:
            yield (
                f"{arm} differs from {baseline} in more than one setting: {listed(valued(found), 12)}. "
                "No one of them alone explains a score."
            )
    for (env, arm), own in by_pair(known).items():
        within = differences(own)
        if within:
            yield f"The runs of {arm} on {env} differ in more than their seed: {listed(valued(within), 12)}."


def valued(settings: Mapping[str, Sequence[Value]]) -> list[str]:
    """Settings with the values that they have."""
    return [f"{name} ({' / '.join(map(plain, values[:MOST_NAMES]))})" for name, values in settings.items()]


def different_machines(runs: Sequence[Run]) -> Iterator[str]:
    """Versions, machines and renderers that are not the same everywhere."""
    for what, of in (("versions", _versions), ("machines", _machines)):
        yield from _said(what, [of(run) for run in runs if of(run)])
    renderers = [{"renderer": run.settings["renderer"]} for run in runs if _from_pixels(run)]
    yield from _said("renderers", renderers)


def tuned(runs: Sequence[Run]) -> Iterator[str]:
    """Settings that were chosen by the very seeds that are reported."""
    own = [run for run in runs if run.seed in run.tuned_on]
    if own:
        seeds = listed([str(seed) for seed in sorted({run.seed for run in own})], 20)
        arms = listed(list(dict.fromkeys(run.arm for run in own)))
        yield f"The settings of {arms} were chosen on seeds that are reported here ({seeds}): the scores are too high."


LOOKS: Mapping[str, Callable[[Sequence[Run]], Iterator[str]]] = {
    "few seeds": few_seeds,
    "tuned": tuned,
    "altered": altered,
    "unfinished": unfinished,
    "few episodes": few_episodes,
    "machines": different_machines,
}


OF_COUNTED = ("few seeds",)
"""What is asked of the runs that the tables count, not of all."""


def by_pair(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each environment and arm."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.env, run.arm), []).append(run)
    return found


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Names in a sentence; where there are many, the first and how many more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _differs_between_arms(runs: Sequence[Run], name: str) -> bool:
    values: dict[tuple[str, str], set[Value]] = {}
    for run in runs:
        if has(run, name):
            values.setdefault((run.env, run.arm), set()).add(setting(run, name))
    envs = {env for env, _ in values}
    return any(len({frozenset(own) for (where, _), own in values.items() if where == env}) > 1 for env in envs)


def _said(what: str, facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One sentence that names what is not the same everywhere."""
    names = dict.fromkeys(name for own in facts for name in own)
    values = {name: list(dict.fromkeys(str(own.get(name, "none")) for own in facts)) for name in names}
    shown = [f"{name} ({' / '.join(own[:MOST_NAMES])})" for name, own in values.items() if len(own) > 1]
    if shown:
        yield f"Different {what}: {listed(shown, 8)}."


def _versions(run: Run) -> Mapping[str, Any]:
    return run.versions


def _machines(run: Run) -> Mapping[str, Any]:
    return {name: run.machine[name] for name in ("cpu", "cores", "device", "mesh", "python") if name in run.machine}


def _from_pixels(run: Run) -> bool:
    return bool(run.settings.get("pixels")) and isinstance(run.settings.get("renderer"), str)
