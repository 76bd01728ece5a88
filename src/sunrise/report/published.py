"""The paper's own numbers, beside runs of the method and the task that they are of."""

from typing import NamedTuple

from sunrise.experiments.paper import ATARI_TABLE, DMC_TASKS, GYM, published, task_of
from sunrise.report.results import Run

ALONE = {"sac": "SAC", "td3": "TD3", "rainbow": "Rainbow", "rad": "RAD", "curl": "CURL", "drq": "DrQ"}
"""The paper's name of one agent of an algorithm."""
TOGETHER = ("sac", "rainbow", "rad")
"""Algorithms whose ensemble the paper calls SUNRISE."""
SUNRISE = "SUNRISE"


class Published(NamedTuple):
    """A number of the paper."""

    label: str
    """What it is of: the heading of its column."""
    mean: float
    spread: float
    """The standard deviation over runs; NaN where the paper has none."""
    runs: int
    env_steps: int
    """Simulator steps that it was read at; 0 where it is the end."""


def published_for(run: Run) -> tuple[Published, ...]:
    """What the paper says of a run's method on its task; nothing where it says nothing."""
    if run.env in GYM:
        file, length, runs = "table1_gym_200k.csv", "200k timesteps", 10
    elif run.env in DMC_TASKS:
        file, length, runs = "table2_dmc.csv", "", 5
    elif run.env.startswith("ALE/"):
        file, length, runs = ATARI_TABLE, "100k timesteps", 3
    else:
        return ()
    rows = published(file)
    method, task = method_of(run, {row["method"] for row in rows}), task_of(run.env)
    found = []
    for row in rows:
        if (row["method"], row.get("env", row.get("game"))) == (method, task):
            steps = int(row.get("env_steps", 0))
            spread = float(row["std"]) if "std" in row else float("nan")
            label = f"paper: {length or f'{steps // 1000}k simulator steps'}, {runs} runs"
            mean = float(row["mean"] if "mean" in row else row["score"])
            found.append(Published(label, mean, spread, runs, steps))
    return tuple(sorted(found, key=lambda entry: entry.env_steps))


def method_of(run: Run, known: set[str]) -> str:
    """The paper's name for what a run trained; nothing where it is another method."""
    if not run.algo:  # a table of evaluations knows its arms by name alone
        return run.arm if run.arm in known else ""
    own = run.settings
    changed = (
        own.get("reward_noise") not in (None, 0, 0.0),
        own.get("augmentation", "") not in ("", "none" if run.algo == "rainbow" else "crop"),
        own.get("gradient_steps") not in (None, -1, own.get("train_freq")),
        own.get("pixels") is False and run.env in DMC_TASKS,
    )
    if any(changed):
        return ""
    if own.get("ensemble_size") == 1:
        return ALONE.get(run.algo, "")
    as_published = own.get("weighting") in ("auto", "confidence") and own.get("exploration") == "ucb"
    return SUNRISE if run.algo in TOGETHER and as_published else ""
