"""The user-facing classes, one an algorithm, and the agents of a run's folder.

They are imported when they are first asked for: what only reads files needs no JAX.
"""

import importlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunrise.config.tasks import RendererChoice
from sunrise.errors import SunriseError

if TYPE_CHECKING:
    from sunrise.agents.agent import Agent
    from sunrise.agents.classes import AGENTS, CURL, DQN, RAD, SAC, TD3, DisCor, DrQ, Rainbow, Random
    from sunrise.config.algorithms import Algorithm
    from sunrise.store.saved import Checkpoint

log = logging.getLogger("sunrise")
CLASSES = ("AGENTS", "CURL", "DQN", "RAD", "SAC", "TD3", "Agent", "DisCor", "DrQ", "Rainbow", "Random")


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return getattr(importlib.import_module("sunrise.agents.classes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_run(
    path: Path,
    renderer: RendererChoice | None = None,
    trust_env: bool = False,
    algorithm: "Algorithm | None" = None,
) -> "Agent":
    """The agents of a run's last good checkpoint, with its environment; another renderer draws them other pictures.

    `algorithm` is the run's, where it is not one of ours.
    """
    from sunrise.config.own import require_named
    from sunrise.store.reading import read_run

    config = read_run(path)
    require_named(path, config, algorithm)  # before what takes long is imported
    from sunrise.agents import loading
    from sunrise.agents.environments import trusted
    from sunrise.agents.own import agent
    from sunrise.envs.renderers import resolve
    from sunrise.envs.wrappers import trusted_wrappers
    from sunrise.store.checkpoint import Checkpoints
    from sunrise.store.manifest import AGENTS as AGENTS_FILE
    from sunrise.store.run_folder import RunFolder

    cls = agent(algorithm or config["algo"])
    settings, drawn = config["settings"], {"renderer": resolve(renderer)} if renderer else {}
    wrappers = trusted_wrappers(settings.get("wrapper", ()), trust_env)

    def load(found: "Checkpoint") -> "Agent":
        with found.open_agents() as file:
            return loading.load(cls, file, found.path / AGENTS_FILE, None, {"wrapper": wrappers, **drawn})

    model = Checkpoints(RunFolder(path).checkpoints).read_newest(load)
    if model is None:
        raise SunriseError(f"{path} has no checkpoint yet.")
    if renderer and settings.get("pixels") and (now := model.config.env.renderer) != settings["renderer"]:
        log.warning("These agents were trained on pictures by %s and see pictures by %s.", settings["renderer"], now)
    model.set_env(trusted(settings["env_id"], trust_env))
    return model


def resume_run(
    path: Path,
    trust_env: bool = False,
    config: Mapping[str, Any] | None = None,
    algorithm: "Algorithm | None" = None,
    others: Mapping[str, Any] | None = None,
) -> "Agent":
    """A run as it was at its last good checkpoint, ready to go on; see `Agent.resume`. `config` is its, if known.

    `algorithm` is the run's, where it is not one of ours; `others` are settings that may change, where they are given.
    """
    from sunrise.config.own import require_named
    from sunrise.store.reading import read_run

    config = read_run(path) if config is None else config
    require_named(path, config, algorithm)
    from sunrise.agents import loading
    from sunrise.agents.own import agent

    return loading.resume(agent(algorithm or config["algo"]), path, config, trust_env=trust_env, others=others)


__all__ = [
    "AGENTS",
    "CURL",
    "DQN",
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
