"""SUNRISE: an ensemble of agents that makes off-policy deep reinforcement learning more stable and more curious."""

__version__ = "0.1.0"

from sunrise.agents import CURL, RAD, SAC, TD3, Agent, DisCor, DrQ, Rainbow, Random
from sunrise.envs.dmc import register_dmc_envs
from sunrise.envs.paper import register_paper_envs
from sunrise.errors import NonFiniteError, SunriseError

register_paper_envs()
register_dmc_envs()

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
