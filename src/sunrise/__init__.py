"""SUNRISE: an ensemble of agents that makes off-policy deep reinforcement learning more stable and more curious."""

import importlib
from typing import TYPE_CHECKING, Any

from sunrise.errors import NonFiniteError, SunriseError
from sunrise.registration import register_when_gymnasium_is_there
from sunrise.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from sunrise.agents import CURL, RAD, SAC, TD3, Agent, DisCor, DrQ, Rainbow, Random
    from sunrise.config.algorithms import Algorithm

AGENTS = ("CURL", "RAD", "SAC", "TD3", "Agent", "DisCor", "DrQ", "Rainbow", "Random")
"""What is imported when it is first asked for: JAX, Gymnasium and MuJoCo come with it."""

register_when_gymnasium_is_there()


def settings_from(path: "str | Path", algo: "str | Algorithm | None" = None) -> dict[str, Any]:
    """The settings of a run or of a preset file as keywords: `SAC("MlpPolicy", env, **sunrise.settings_from(path))`."""
    from sunrise.config.preset_file import settings_from

    return settings_from(path, algo)


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
    "settings_from",
]
