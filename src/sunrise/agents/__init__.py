"""The user-facing classes, one an algorithm."""

import logging
from pathlib import Path
from typing import Any

from sunrise.agents.agent import Agent
from sunrise.agents.classes import AGENTS, CURL, RAD, SAC, TD3, DisCor, DrQ, Rainbow, Random
from sunrise.agents.environments import trusted
from sunrise.checkpoint import Checkpoints
from sunrise.config.tasks import RendererChoice
from sunrise.envs.renderers import resolve
from sunrise.errors import SunriseError
from sunrise.record import RunFolder

log = logging.getLogger("sunrise")


def load_run(path: Path, renderer: RendererChoice | None = None, trust_env: bool = False) -> Agent:
    """The agents of a run's last good checkpoint, with its environment; another renderer draws them other pictures."""
    folder = RunFolder(path)
    config = folder.config()
    found = Checkpoints(folder.checkpoints).newest()
    if found is None:
        raise SunriseError(f"{path} has no checkpoint yet.")
    settings = config["settings"]
    model = _agent(config).load(found.agents, **({"renderer": resolve(renderer)} if renderer else {}))
    if renderer and settings.get("pixels") and (now := model.config.env.renderer) != settings["renderer"]:
        log.warning("These agents were trained on pictures by %s and see pictures by %s.", settings["renderer"], now)
    model.set_env(trusted(settings["env_id"], trust_env))
    return model


def resume_run(
    path: Path, trust_env: bool = False, max_env_restarts: int | None = None, env_timeout: float | None = None
) -> Agent:
    """A run as it was at its last good checkpoint, ready to go on; see `Agent.resume`."""
    agent = _agent(RunFolder(path).config())
    return agent.resume(path, trust_env=trust_env, max_env_restarts=max_env_restarts, env_timeout=env_timeout)


def _agent(config: dict[str, Any]) -> type[Agent]:
    if config["algo"] not in AGENTS:
        raise SunriseError(f"this run is of an algorithm that is not known here: {config['algo']!r}.")
    return AGENTS[config["algo"]]


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
