"""Observation and action spaces: as JSON, so that a saved model knows what it takes, and against what it is given."""

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from sunrise.errors import DamagedError, SunriseError
from sunrise.files.documents import count_numbers
from sunrise.replay.uniform import as_stored
from sunrise.types import Observation

LARGEST = 2**22
"""Numbers in an observation of a file; one that says more is not believed, unless the file itself is as large."""


def describe(space: gym.Space[Any]) -> dict[str, Any]:
    """A Box, a finite space or a Dict of such in plain words."""
    if isinstance(space, gym.spaces.Dict):
        return {"kind": "dict", "spaces": {name: describe(part) for name, part in space.spaces.items()}}
    if isinstance(space, gym.spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        shape, nvec, start = list(space.shape), space.nvec.ravel().tolist(), space.start.ravel().tolist()
        return {"kind": "multidiscrete", "shape": shape, "nvec": nvec, "start": start}
    if isinstance(space, gym.spaces.MultiBinary):
        return {"kind": "multibinary", "shape": list(space.shape)}
    assert isinstance(space, gym.spaces.Box)
    bounds = [
        [str(v) for v in np.unique(b)] if b.min() == b.max() else [str(v) for v in b.flat]
        for b in (space.low, space.high)
    ]
    return {
        "kind": "box",
        "shape": list(space.shape),
        "dtype": str(space.dtype),
        "low": bounds[0],
        "high": bounds[1],
    }


def restore(text: dict[str, Any], largest: int = LARGEST) -> gym.Space[Any]:
    """The space that `describe` described; one of more than `largest` numbers is refused before it takes memory."""
    try:
        if count_numbers(text) > largest:
            raise ValueError(f"it has {count_numbers(text):,} numbers")
        return _restore(text)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RecursionError) as error:
        raise DamagedError(f"this is no description of a space: {error}") from None


def _restore(text: dict[str, Any]) -> gym.Space[Any]:
    if text["kind"] == "dict":
        return gym.spaces.Dict({name: _restore(part) for name, part in text["spaces"].items()})
    if text["kind"] == "discrete":
        return gym.spaces.Discrete(text["n"], start=text["start"])
    if text["kind"] == "multidiscrete":
        nvec, start = (np.asarray(text[name], np.int64).reshape(text["shape"]) for name in ("nvec", "start"))
        return gym.spaces.MultiDiscrete(nvec, start=start)
    if text["kind"] == "multibinary":
        return gym.spaces.MultiBinary(text["shape"][0] if len(text["shape"]) == 1 else text["shape"])
    dtype, shape = np.dtype(str(text["dtype"])), tuple(text["shape"])
    if dtype.kind not in "fiub":
        raise ValueError(f"a Box of {dtype}")
    with np.errstate(invalid="ignore", over="raise"):
        bounds = [np.array([float(v) for v in text[side]]).astype(dtype) for side in ("low", "high")]
    low, high = (np.broadcast_to(bound, math.prod(shape)).reshape(shape) for bound in bounds)
    return gym.spaces.Box(low, high, dtype=dtype.type)


def batched(observation: Observation, space: gym.Space[Any]) -> tuple[Observation, bool]:
    """An observation with a batch axis, and whether it had none; one that does not fit the space is refused."""
    parts = space.spaces if isinstance(space, gym.spaces.Dict) else {"": space}
    given = observation if isinstance(space, gym.spaces.Dict) else {"": observation}
    if not isinstance(given, Mapping) or given.keys() != parts.keys():
        raise SunriseError(f"an observation must have the parts {', '.join(parts)}.")
    obs = as_stored({name: np.asarray(given[name]) for name in parts})  # a list of numbers is as good as an array
    shapes = [(obs[name].shape, part.shape) for name, part in parts.items()]
    single = all(shape == wanted for shape, wanted in shapes)
    rows = {shape[:1] for shape, _ in shapes}
    if not single and not (len(rows) == 1 and all(shape and shape[1:] == wanted for shape, wanted in shapes)):
        found = ", ".join(str(shape) for shape, _ in shapes)
        raise SunriseError(f"an observation has shape {found}, but one or a batch of {space} was expected.")
    if single:
        obs = {name: leaf[None] for name, leaf in obs.items()}
    return (obs if isinstance(space, gym.spaces.Dict) else obs[""]), single


def check_same(ours: gym.Space[Any], theirs: gym.Space[Any], what: str) -> None:
    """Another environment must observe and do the same: shapes, kinds and names; for actions the bounds too."""
    same = ours == theirs if what == "actions" else _without_bounds(ours) == _without_bounds(theirs)
    if not same:
        raise SunriseError(f"the environment's {what} are {theirs}, but this model's are {ours}.")


def _without_bounds(space: gym.Space[Any]) -> Any:
    """Shapes and kinds of a space without its bounds."""
    if isinstance(space, gym.spaces.Dict):
        return {name: _without_bounds(part) for name, part in space.spaces.items()}
    finite = () if isinstance(space, gym.spaces.Box) else (str(space),)
    return type(space), space.shape, space.dtype, *finite
