"""Every environment there is to train on, with what it observes, what it does and what it needs."""

import contextlib
import io
import re
import warnings
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

EXTRAS: dict[str, str] = {"ALE": "atari", "dmc": "dmc"}


def short(space: gym.Space[Any]) -> str:
    """A space in a few characters."""
    if isinstance(space, gym.spaces.Box):
        return f"Box{space.shape}"
    if isinstance(space, gym.spaces.Dict):
        return "Dict(" + ", ".join(f"{name}: {short(part)}" for name, part in space.spaces.items()) + ")"
    return str(space)


def describe(spec: Any) -> tuple[str, str, str]:
    """Observation, action and what is missing, from making the environment once."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            env = gym.make(spec.id, disable_env_checker=True)
            spaces = short(env.observation_space), short(env.action_space), ""
            env.close()
            return spaces
    except Exception as error:  # whatever an environment's package raises, the list goes on
        return "", "", " ".join(str(error).split())[:60]


def newest(specs: Any) -> list[Any]:
    """The newest version of each environment."""
    best: dict[tuple[str | None, str], Any] = {}
    for spec in specs:
        name = (spec.namespace, spec.name)
        if name not in best or (spec.version or 0) > (best[name].version or 0):
            best[name] = spec
    return sorted(best.values(), key=lambda spec: (spec.namespace or "", spec.id))


def matches(pattern: str, env_id: str) -> bool:
    """Whether a word of the id begins like the pattern: `hopper` finds Hopper-v5 and not ChopperCommand."""
    for found in re.finditer(re.escape(pattern), env_id, re.IGNORECASE):
        at = found.start()
        if at == 0 or not env_id[at - 1].isalnum() or env_id[at].isupper() or env_id[at].isdigit():
            return True
    return not pattern


def print_catalogue(pattern: str) -> None:
    """Print the list as a table."""
    table = Table("id", "observation", "action", "extra", "note", box=None)
    for spec in newest(gym.registry.values()):
        if spec.namespace == "GymV21Environment" or not matches(pattern, spec.id):
            continue
        observation, action, missing = describe(spec)
        table.add_row(spec.id, observation, action, EXTRAS.get(spec.namespace or "", ""), missing)
    Console().print(table)
