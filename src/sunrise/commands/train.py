"""`sunrise train`: every setting of an algorithm is a flag."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import tyro

from sunrise.cli import choose
from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.groups import Config, env_options
from sunrise.config.length import Length
from sunrise.config.resolve import defaults_for
from sunrise.config.settings import flatten_config
from sunrise.console import counted, members, say
from sunrise.errors import SunriseError


@dataclass
class LookedAtFirst:
    """What the defaults of other flags depend on, and how long the training was asked to be."""

    preset: str = "ours"
    env_id: str = ""
    total_timesteps: int | None = None
    total_env_steps: int | None = None


EnvSteps = Annotated[
    int | None,
    tyro.conf.arg(
        help="Simulator steps (timesteps times action repeat or frame skip) to train for, instead of --total-timesteps."
    ),
]


class Asked(NamedTuple):
    """What the flags say."""

    settings: dict[str, Any]
    length: Length


def run(arguments: Sequence[str]) -> None:
    """Train an algorithm in a new run."""
    sentences = {name: algorithm.text for name, algorithm in ALGORITHMS.items()}
    algorithm = ALGORITHMS[choose(arguments, sentences, "sunrise train", "algorithm")]
    settings, length = parse(algorithm, arguments[1:])
    if not settings["env_id"]:
        raise SunriseError("--env-id is missing; `sunrise envs` lists the environments.")
    if not settings["run_dir"]:
        now = time.strftime("%Y%m%d-%H%M%S")
        run_id = f"{settings['env_id']}__{algorithm.name}__{settings['seed']}__{now}"
        settings["run_dir"] = f"runs/{run_id.replace('/', '-').replace(':', '-')}"

    from sunrise.agents import AGENTS
    from sunrise.commands.learning import learn

    total, env_id = settings.pop("total_timesteps"), settings.pop("env_id")
    model = AGENTS[algorithm.name](algorithm.policies[0], env_id, **settings)
    total = length.in_timesteps(model.action_repeat) or total
    steps = counted(total, total * model.action_repeat)
    seen = env_options(model.config.env, env_id)
    drawn = f", pictures by {seen['renderer']}" if seen.get("pixels") else ""
    size = members(model.config.ensemble.ensemble_size)
    say(f"{algorithm.name} with {size} on {env_id}, {steps}{drawn}: {settings['run_dir']}")
    learn(model, total, settings["run_dir"])


def parse(algorithm: Algorithm, arguments: Sequence[str]) -> Asked:
    """Every setting of an algorithm, by flags or by default; `--help` shows them and ends."""
    prog = f"sunrise train {algorithm.name}"
    words = [word for word in arguments if word not in ("-h", "--help")]
    first, _ = tyro.cli(LookedAtFirst, args=words, prog=prog, return_unknown_args=True, add_help=False)
    defaults, learner = defaults_for(algorithm, first.env_id, first.preset), type(algorithm.defaults.learner)
    preset_flag = Annotated[str, tyro.conf.arg(help=preset_help(algorithm))]

    def flags(
        config: Config[learner],  # type: ignore[valid-type]
        preset: preset_flag = "ours",
        total_env_steps: EnvSteps = None,
    ) -> dict[str, Any]:
        return flatten_config(config)

    flags.__defaults__ = (defaults, *(flags.__defaults__ or ()))
    shown = tyro.conf.configure(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)(flags)
    settings = tyro.cli(shown, args=arguments, prog=prog, description=algorithm.text)
    return Asked(settings, Length(first.total_timesteps, first.total_env_steps))


def preset_help(algorithm: Algorithm) -> str:
    """Which presets an algorithm has."""
    others = ", ".join(f"`{preset.name}` ({preset.text})" for preset in algorithm.presets.values())
    more = f", {others}" if others else ", the only ones"
    return f"Whose settings to start from, which flags still change: `ours`{more}."
