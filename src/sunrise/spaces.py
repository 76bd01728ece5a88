"""Observation and action spaces as JSON, so that a saved model knows what it takes."""

from typing import Any

import gymnasium as gym
import numpy as np

from sunrise.errors import SunriseError


def describe(space: gym.Space[Any]) -> dict[str, Any]:
    """A Box, a Discrete or a Dict of Boxes in plain words."""
    if isinstance(space, gym.spaces.Dict):
        return {"kind": "dict", "spaces": {name: describe(part) for name, part in space.spaces.items()}}
    if isinstance(space, gym.spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
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


def restore(text: dict[str, Any]) -> gym.Space[Any]:
    """The space that `describe` described."""
    try:
        if text["kind"] == "dict":
            return gym.spaces.Dict({name: restore(part) for name, part in text["spaces"].items()})
        if text["kind"] == "discrete":
            return gym.spaces.Discrete(text["n"], start=text["start"])
        dtype = np.dtype(text["dtype"])
        if dtype.kind not in "fiub":
            raise ValueError(f"a Box of {dtype}")
        low, high = (
            np.broadcast_to(np.array([float(v) for v in text[side]]), (int(np.prod(text["shape"])),))
            .reshape(text["shape"])
            .astype(dtype)
            for side in ("low", "high")
        )
        return gym.spaces.Box(low, high, dtype=dtype.type)
    except (KeyError, TypeError, ValueError) as error:
        raise SunriseError(f"this is no description of a space: {error}") from None
