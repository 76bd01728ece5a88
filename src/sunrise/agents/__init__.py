"""The user-facing classes, one an algorithm, and the agents of a run's folder.

They are imported when they are first asked for: what only reads files needs no JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sunrise.agents.agent import Agent
    from sunrise.agents.classes import AGENTS, CURL, RAD, SAC, TD3, DisCor, DrQ, Rainbow, Random
    from sunrise.agents.loading import load_run, resume_run

CLASSES = ("AGENTS", "CURL", "RAD", "SAC", "TD3", "Agent", "DisCor", "DrQ", "Rainbow", "Random")
LOADING = ("load_run", "resume_run")


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return getattr(importlib.import_module("sunrise.agents.classes"), name)
    if name in LOADING:
        return getattr(importlib.import_module("sunrise.agents.loading"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AGENTS",
    "CURL",
    "RAD",
    "SAC",
    "TD3",
    "Agent",
    "DisCor",
    "DrQ",
    "Rainbow",
    "Random",
    "load_run",
    "resume_run",
]
