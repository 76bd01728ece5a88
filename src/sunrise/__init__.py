"""SUNRISE: an ensemble of agents that makes off-policy deep reinforcement learning more stable and more curious."""

import importlib
from typing import TYPE_CHECKING, Any

from sunrise.errors import NonFiniteError, SunriseError
from sunrise.registration import register_when_gymnasium_is_there
from sunrise.version import __version__

if TYPE_CHECKING:
    from sunrise.agents import CURL, DQN, RAD, SAC, TD3, Agent, DisCor, DrQ, Rainbow, Random
    from sunrise.agents.own import agent
    from sunrise.compat.callbacks import Callback
    from sunrise.config.algorithms import Algorithm
    from sunrise.config.groups import Config
    from sunrise.config.preset_file import settings_from
    from sunrise.run.fitting import for_states

AGENTS = ("CURL", "DQN", "RAD", "SAC", "TD3", "Agent", "DisCor", "DrQ", "Rainbow", "Random")
WHERE = {
    **dict.fromkeys(AGENTS, "sunrise.agents"),
    "Callback": "sunrise.compat.callbacks",
    "agent": "sunrise.agents.own",
    "Algorithm": "sunrise.config.algorithms",
    "Config": "sunrise.config.groups",
    "for_states": "sunrise.run.fitting",
    "settings_from": "sunrise.config.preset_file",
}
"""What is imported when it is first asked for, and from where: JAX, Gymnasium and MuJoCo come with the agents."""

register_when_gymnasium_is_there()


def __getattr__(name: str) -> Any:
    if name in WHERE:
        return getattr(importlib.import_module(WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *WHERE})


__all__ = [
    "CURL",
    "DQN",
    "RAD",
    "SAC",
    "TD3",
    "Agent",
    "Algorithm",
    "Callback",
    "Config",
    "DisCor",
    "DrQ",
    "NonFiniteError",
    "Rainbow",
    "Random",
    "SunriseError",
    "__version__",
    "agent",
    "for_states",
    "settings_from",
]
