"""SUNRISE: an ensemble of agents that makes off-policy deep reinforcement learning more stable and more curious."""

import importlib
from typing import TYPE_CHECKING, Any

from sunrise.errors import NonFiniteError, SunriseError
from sunrise.registration import register_when_gymnasium_is_there
from sunrise.version import __version__

if TYPE_CHECKING:
    from sunrise.agents import CURL, RAD, SAC, TD3, Agent, DisCor, DrQ, Rainbow, Random

AGENTS = ("CURL", "RAD", "SAC", "TD3", "Agent", "DisCor", "DrQ", "Rainbow", "Random")
"""What is imported when it is first asked for: JAX, Gymnasium and MuJoCo come with it."""

register_when_gymnasium_is_there()


def __getattr__(name: str) -> Any:
    if name in AGENTS:
        return getattr(importlib.import_module("sunrise.agents"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *AGENTS})


__all__ = [
    "CURL",
    "RAD",
    "SAC",
    "TD3",
    "Agent",
    "DisCor",
    "DrQ",
    "NonFiniteError",
    "Rainbow",
    "Random",
    "SunriseError",
    "__version__",
]
