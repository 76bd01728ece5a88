"""`sunrise train`: every setting of an algorithm is a flag."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from sunrise.algorithms import ALGORITHMS, starting
from sunrise.cli import choose
from sunrise.console import counted, members, say
from sunrise.errors import SunriseError
from sunrise.settings import Config, Length, env_options, flatten_config


@dataclass
class LookedAtFirst:
    """What the defaults of other flags depend on, and how long the training was asked to be."""

    preset: str = "ours"
    env_id: str = ""
    total_timesteps: int | None = None
    total_env_steps: int | None = None


@dataclass
class PresetFlag:
    """Where the settings start from."""

    preset: str = "ours"
    """Whose settings to start from, which flags still change: `ours`, or those of the code of SUNRISE's `authors`; for
    sac also `redq`, `droq` or `simba`, of which an ensemble is made as of any learner (--ensemble-size 1: the plain
    one)."""


@dataclass
class EnvStepsFlag:
    """How long to train, counted otherwise."""

    total_env_steps: int | None = None
    """Simulator steps (timesteps times action repeat or frame skip) to train for, instead of --total-timesteps."""


def run(arguments: Sequence[str]) -> None:
    """Train an algorithm in a new run."""
    from sunrise.agents import AGENTS
    from sunrise.commands.learning import learn

    name = choose(
        arguments, {name: first_line(cls.__doc__) for name, cls in AGENTS.items()}, "sunrise train", "algorithm"
    )
    known = ALGORITHMS[name]
    prog, rest = f"sunrise train {name}", list(arguments[1:])
    asked = [a for a in rest if a not in ("-h", "--help")]
    first, _ = tyro.cli(LookedAtFirst, args=asked, prog=prog, return_unknown_args=True, add_help=False)
    defaults = starting(name, first.env_id, first.preset)
    learner = type(known.defaults.learner)

    def parse(preset: PresetFlag, env_steps: EnvStepsFlag, config: Config[learner]) -> Config[Any]:  # type: ignore[valid-type]
        return config

    config = tyro.cli(
        tyro.conf.configure(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)(
            _with_defaults(parse, PresetFlag(first.preset), EnvStepsFlag(), defaults)
        ),
        args=rest,
        prog=prog,
        description=first_line(AGENTS[name].__doc__),
    )
    settings = flatten_config(config)
    if not settings["env_id"]:
        raise SunriseError("--env-id is missing; `sunrise envs` lists the environments.")
    if not settings["run_dir"]:
        now = time.strftime("%Y%m%d-%H%M%S")
        run_id = f"{settings['env_id']}__{name}__{settings['seed']}__{now}".replace("/", "-").replace(":", "-")
        settings["run_dir"] = f"runs/{run_id}"
    total, env_id = settings.pop("total_timesteps"), settings.pop("env_id")
    model = AGENTS[name](known.policies[0], env_id, **settings)
    total = Length(first.total_timesteps, first.total_env_steps).in_timesteps(model.action_repeat) or total
    steps = counted(total, total * model.action_repeat)
    seen = env_options(model.config.env, env_id)
    drawn = f", pictures by {seen['renderer']}" if seen.get("pixels") else ""
    size = members(config.ensemble.ensemble_size)
    say(f"{name} with {size} on {env_id}, {steps}{drawn}: {settings['run_dir']}")
    learn(model, total, settings["run_dir"])


def _with_defaults(function: Any, *defaults: Any) -> Any:
    """`function` with defaults for its parameters, for tyro to start from."""
    function.__defaults__ = defaults
    return function


def first_line(text: str | None) -> str:
    """The first sentence of a docstring."""
    return (text or "").strip().partition("\n")[0]
