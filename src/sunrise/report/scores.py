"""Scores of different tasks on one scale."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from sunrise.errors import SunriseError

Choice = Literal["auto", "none", "human", "task"]
DMC_MOST = 1000.0
"""A thousand steps with a reward of at most one: the suite's own scale."""


class Scale(NamedTuple):
    """Where 0 and 1 are on every task."""

    label: str
    bounds: Mapping[str, tuple[float, float]]
    """Each environment's scores that become 0 and 1; none where scores stay as they are."""

    @property
    def is_one(self) -> bool:
        """Whether scores are changed at all."""
        return bool(self.bounds)

    def of(self, scores: Sequence[float], env: str) -> np.ndarray:
        """Scores on this scale."""
        values = np.asarray(scores, float)
        if not self.bounds:
            return values
        low, high = self.bounds[env]
        return (values - low) / (high - low)


RAW = Scale("the environment's own returns", {})


def choose_scale(choice: Choice, scores: Mapping[tuple[str, str], Sequence[float]]) -> Scale:
    """A scale for the scores of environments and arms.

    By itself: none for one environment, the human's for games, the suite's for DeepMind Control, and else that between
    the lowest and the highest run of each task.
    """
    envs = list(dict.fromkeys(env for env, _ in scores))
    if choice == "none":
        return RAW
    if choice == "human" or (choice == "auto" and envs and all(human(env) for env in envs)):
        lacking = [env for env in envs if human(env) is None]
        if lacking:
            raise SunriseError(f"there is no human score for {', '.join(lacking)}: --normalise task, or none.")
        bounds = {env: found for env in envs if (found := human(env)) is not None}
        return Scale("human-normalised: 0 is the paper's random agent, 1 its human", bounds)
    if choice == "auto" and len(envs) < 2:
        return RAW
    if all(env.startswith("dmc/") for env in envs):
        return Scale("task-normalised: 0 is no reward, 1 the suite's 1,000", dict.fromkeys(envs, (0.0, DMC_MOST)))
    bounds = {}
    for env in envs:
        own = [score for (where, _), found in scores.items() if where == env for score in found]
        if own:
            bounds[env] = (min(own), max(own) if max(own) > min(own) else min(own) + 1.0)
    return Scale("task-normalised: 0 is the lowest and 1 the highest score of any run here on the task", bounds)


def human(env: str) -> tuple[float, float] | None:
    """The random agent's and the human's score of the paper's Atari table; None where there is neither."""
    return _humans().get(env)


@cache
def _humans() -> dict[str, tuple[float, float]]:
    from sunrise.experiments.paper import ATARI_TABLE, published

    found: dict[str, dict[str, float]] = {}
    for row in published(ATARI_TABLE):
        found.setdefault(row["game"], {})[row["method"]] = float(row["score"])
    return {f"ALE/{game}-v5": (own["Random"], own["Human"]) for game, own in found.items()}
