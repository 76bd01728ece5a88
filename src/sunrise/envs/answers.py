"""What is wrong with what an environment gave: it failed, or its answer is not what its spaces promise."""

import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from jaxtyping import Bool

GYMNASIUM = {
    2: "in Gymnasium `reset` returns (observation, info)",
    5: "in Gymnasium `step` returns (observation, reward, terminated, truncated, info), where old Gym had four",
}
"""What an answer of so many values must be."""


class Failure(NamedTuple):
    """What an environment did instead of answering."""

    what: str
    """Such as `raised RuntimeError`."""
    why: str
    trace: str = ""
    is_bad_value: bool = False
    """Whether it answered with something that is no observation or no reward: made anew, it would again."""

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        return cls(f"raised {type(error).__name__}", str(error), "".join(traceback.format_exception(error)))


def bad(what: str, why: str) -> Failure:
    """An answer that no environment may give."""
    return Failure(f"gave a bad {what}", why, is_bad_value=True)


def of_length(answer: Any, length: int) -> Any:
    """An answer of as many values as Gymnasium asks for, or what is wrong with it."""
    if isinstance(answer, Failure) or (isinstance(answer, tuple) and len(answer) == length):
        return answer
    given = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
    return bad("answer", f"{given} instead of a tuple of {length}: {GYMNASIUM[length]}")


def bad_reward(reward: Any) -> Failure | None:
    """What is wrong with a reward that is no number."""
    kind = np.asarray(reward)
    if kind.size == 1 and kind.dtype.kind in "biuf":
        return None
    return bad("reward", f"{reward!r} is not a number")


def place(kept: Any, e: int, obs: Any, space: gym.Space[Any]) -> Failure | None:
    """Write an observation to its row, or say what is wrong with its shape or its type."""
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(obs, Mapping) or obs.keys() != space.spaces.keys():
            given = sorted(obs) if isinstance(obs, Mapping) else type(obs).__name__
            return bad("observation", f"it has {given}, its space {sorted(space.spaces)}")
        failures = (place(kept[name], e, obs[name], part) for name, part in space.spaces.items())
        return next((failure for failure in failures if failure is not None), None)
    row = np.asarray(obs)
    if row.shape != space.shape:
        return bad("observation", f"its shape is {row.shape}, its space says {space.shape}")
    if not np.can_cast(row.dtype, kept.dtype, "same_kind"):
        return bad("observation", f"its type is {row.dtype}, its space says {kept.dtype}")
    kept[e] = row
    return None


def not_finite(obs: Any) -> Bool[np.ndarray, "E"]:
    """The rows of an observation, or of rewards, in which something is not finite."""
    leaves = list(obs.values()) if isinstance(obs, Mapping) else [obs]
    found = np.zeros(len(leaves[0]), bool)
    for finite in map(np.isfinite, leaves):
        if not finite.all():
            found |= ~finite.reshape(len(found), -1).all(1)
    return found


def outside(obs: Any, space: gym.Space[Any]) -> Bool[np.ndarray, "E"]:
    """The rows of an observation that are not in a space of one row; what has no bounds is not looked at."""
    if isinstance(space, gym.spaces.Dict):
        parts = [outside(obs[name], part) for name, part in space.spaces.items()]
        return np.asarray(np.any(parts, axis=0))
    rows = np.asarray(obs)
    found = np.zeros(len(rows), bool)
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        count = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
        return np.asarray(((rows < space.start) | (rows >= space.start + count)).reshape(len(rows), -1).any(1))
    if isinstance(space, gym.spaces.MultiBinary):
        return np.asarray(((rows != 0) & (rows != 1)).reshape(len(rows), -1).any(1))
    if isinstance(space, gym.spaces.Box) and rows.dtype != np.uint8:
        for bounded, beyond, limit in (
            (space.bounded_below, np.less, space.low),
            (space.bounded_above, np.greater, space.high),
        ):
            if bounded.any() and (wrong := beyond(rows, limit)).any():
                found |= wrong.reshape(len(rows), -1).any(1)
    return found
