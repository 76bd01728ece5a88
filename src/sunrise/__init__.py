"""SUNRISE: an ensemble of agents that makes off-policy deep reinforcement learning more stable and more curious."""

__version__ = "0.1.0"

from sunrise.agents import SAC, Agent
from sunrise.errors import NonFiniteError, SunriseError

__all__ = ["SAC", "Agent", "NonFiniteError", "SunriseError", "__version__"]
