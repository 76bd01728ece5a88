"""The user-facing classes, one an algorithm."""

from pathlib import Path

from sunrise.agents.agent import Agent
from sunrise.errors import SunriseError
from sunrise.record import RunFolder


class SAC(Agent, algo="sac"):
    """Soft Actor-Critic, as an ensemble of agents."""


class TD3(Agent, algo="td3"):
    """Twin Delayed Deep Deterministic Policy Gradient, as an ensemble of agents."""


class DisCor(Agent, algo="discor"):
    """Soft Actor-Critic with DisCor's error weights, as an ensemble of agents."""


class Rainbow(Agent, algo="rainbow"):
    """Data-efficient Rainbow for Atari and other finite sets of actions, as an ensemble of agents."""


class Random(Agent, algo="random"):
    """An agent that acts uniformly at random and learns nothing: the floor of every comparison."""


AGENTS: dict[str, type[Agent]] = {cls.algo: cls for cls in (SAC, TD3, DisCor, Rainbow, Random)}


def load_run(path: Path) -> Agent:
    """The agents of a run's last checkpoint, with its environment."""
    folder = RunFolder(path)
    config = folder.config()
    files = sorted(folder.checkpoints.glob("step-*.safetensors"), key=lambda file: file.stat().st_mtime_ns)
    if not files:
        raise SunriseError(f"{path} has no checkpoint yet.")
    return AGENTS[config["algo"]].load(files[-1], env=config["settings"]["env_id"])


__all__ = ["AGENTS", "SAC", "TD3", "Agent", "DisCor", "Rainbow", "Random", "load_run"]
