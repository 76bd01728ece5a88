"""Stable-Baselines3's classes of policies by name: given as `policy`, or to load what `model.policy.save` wrote."""

from pathlib import Path

from sunrise.agents.classes import AGENTS
from sunrise.compat import archive
from sunrise.compat.policy import Policy
from sunrise.errors import SunriseError
from sunrise.store.reading import read_model


class MlpPolicy:
    """Networks for numbers."""

    @staticmethod
    def load(path: str | Path, device: str = "auto") -> Policy:
        """A policy from its file, or from that of a model, of whichever of our algorithms."""
        name = archive.found(path)
        with archive.opened(name) as file:
            algo = read_model(file, name)["algo"]
        if algo not in AGENTS:  # the name may be that of a module, and nothing that a file names is imported
            raise SunriseError(f"{name} is a model of {algo}, which is not ours: load it with its own class.")
        return AGENTS[algo].load(name, device=device).policy


class CnnPolicy:
    """Networks for pictures."""

    load = staticmethod(MlpPolicy.load)


class MultiInputPolicy:
    """Networks for a Dict of observations."""

    load = staticmethod(MlpPolicy.load)
