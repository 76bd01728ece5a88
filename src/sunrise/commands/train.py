"""`sunrise train`: every setting of an algorithm is a flag."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from sunrise.cli import choose
from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.groups import Config, env_options
from sunrise.config.length import Length
from sunrise.config.own import own_algorithm, shown
from sunrise.config.preset_file import PresetFile, read_preset_file, settings_of
from sunrise.config.resolve import defaults_for
from sunrise.config.settings import flatten_config, with_settings
from sunrise.console import counted, members, say
from sunrise.errors import SunriseError


@dataclass
class LookedAtFirst:
    """What the defaults of other flags depend on, and how long the training was asked to be."""

    config: Path | None = None
    preset: str = "ours"
    env_id: str = ""
    wrapper: tuple[str, ...] = ()
    total_timesteps: int | None = None
    total_env_steps: int | None = None


EnvSteps = Annotated[
    int | None,
    tyro.conf.arg(
        help="Simulator steps (timesteps times action repeat or frame skip) to train for, instead of --total-timesteps."
    ),
]


ConfigFile = Annotated[
    Path | None,
    tyro.conf.arg(
        name="config",
        help="A file with settings to start from, which flags still change: a run's folder, its config.json, or a "
        "preset file in YAML or JSON.",
    ),
]


class Asked(NamedTuple):
    """What the flags say."""

    settings: dict[str, Any]
    length: Length


def run(arguments: Sequence[str]) -> None:
    """Train an algorithm in a new run."""
    sentences = {name: algorithm.text for name, algorithm in ALGORITHMS.items()}
    sentences["MODULE:NAME"] = "An algorithm of your own: a sunrise.Algorithm by where it is imported from."
    if arguments and arguments[0].startswith("--config"):
        arguments = [algorithm_of(look_first(arguments).config), *arguments]
    if arguments and ":" in arguments[0]:
        algorithm = own_algorithm(arguments[0])
    else:
        algorithm = ALGORITHMS[choose(arguments, sentences, "sunrise train", "algorithm")]
    settings, length = parse(algorithm, arguments[1:])
    if not settings["env_id"]:
        raise SunriseError("--env-id is missing; `sunrise envs` lists the environments.")
    if not settings["run_dir"]:
        now = time.strftime("%Y%m%d-%H%M%S")
        run_id = f"{settings['env_id']}__{algorithm.name}__{settings['seed']}__{now}"
        settings["run_dir"] = f"runs/{run_id.replace('/', '-').replace(':', '-')}"

    from sunrise.agents.own import agent
    from sunrise.commands.learning import learn

    total, env_id = settings.pop("total_timesteps"), settings.pop("env_id")
    model = agent(algorithm)(algorithm.policies[0], env_id, **settings)
    total = length.in_timesteps(model.action_repeat) or total
    steps = counted(total, total * model.action_repeat)
    seen = env_options(model.config.env, env_id)
    drawn = f", pictures by {seen['renderer']}" if seen.get("pixels") else ""
    size = members(model.config.ensemble.ensemble_size)
    say(f"{algorithm.name} with {size} on {env_id}, {steps}{drawn}: {settings['run_dir']}")
    learn(model, total, settings["run_dir"])


def parse(algorithm: Algorithm, arguments: Sequence[str]) -> Asked:
    """Every setting of an algorithm, by flags or by default; `--help` shows them and ends."""
    first, learner = look_first(arguments), type(algorithm.defaults.learner)
    file = read_preset_file(first.config) if first.config else None
    env_id = first.env_id or (env_of(file) if file else "")
    defaults = defaults_for(algorithm, env_id, first.preset)
    if file:
        found = settings_of(file, algorithm)
        wrappers = first.wrapper or wrappers_of(file, found.get("wrapper", ()))
        defaults = with_settings(defaults, {**found, "env_id": env_id, "wrapper": wrappers})
    preset_flag = Annotated[str, tyro.conf.arg(help=preset_help(algorithm))]

    def flags(
        config: Config[learner],  # type: ignore[valid-type]
        config_file: ConfigFile = None,
        preset: preset_flag = "ours",
        total_env_steps: EnvSteps = None,
    ) -> dict[str, Any]:
        return flatten_config(config)

    flags.__defaults__ = (defaults, *(flags.__defaults__ or ()))
    without_prefixes = tyro.conf.configure(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)(flags)
    settings = tyro.cli(
        without_prefixes,
        args=arguments,
        prog=f"sunrise train {algorithm.imported_from or algorithm.name}",
        description=algorithm.text,
    )
    return Asked(settings, Length(first.total_timesteps, first.total_env_steps))


def look_first(arguments: Sequence[str]) -> LookedAtFirst:
    """The flags that others depend on; the rest is not looked at yet."""
    words = [word for word in arguments if word not in ("-h", "--help")]
    first, _ = tyro.cli(LookedAtFirst, args=words, prog="sunrise train", return_unknown_args=True, add_help=False)
    return first


def env_of(file: PresetFile) -> str:
    """The environment that a file names; one that imports a module is refused: the user has to name it."""
    module, _, _ = file.env_id.rpartition(":")
    if module:
        raise SunriseError(
            f"{file.path} is for {file.env_id}: making that environment imports the module {module!r}, which runs its "
            f"code. If you trust it, say so with --env-id {file.env_id}."
        )
    return file.env_id


def wrappers_of(file: PresetFile, wrappers: Sequence[str]) -> tuple[str, ...]:
    """The wrappers that a file names; one that runs code of somebody's is refused: the user has to name it."""
    if not wrappers:
        return ()
    from sunrise.envs.wrappers import read_wrapper

    for text in wrappers:
        if not read_wrapper(text).harmless:
            raise SunriseError(
                f"{file.path} is for an environment wrapped by {text}: that imports a module, which runs its code. If "
                f'you trust it, say so with --wrapper "{text}".'
            )
    return tuple(wrappers)


def algorithm_of(path: Path | None) -> str:
    """The algorithm that a file is for."""
    file = read_preset_file(path) if path else None
    if not (file and file.algo):
        raise SunriseError(f"{path} does not say for which algorithm it is: `sunrise train sac --config {path}`.")
    if file.algo not in ALGORITHMS:
        named = shown(file.algo if ":" in file.algo else file.imported_from)
        raise SunriseError(
            f"{path} is for {file.algo!r}, an algorithm that is not ours: training it imports its code, which runs. If "
            f"you trust it, name it yourself: `sunrise train {named} --config {path}`."
        )
    return file.algo


def preset_help(algorithm: Algorithm) -> str:
    """Which presets an algorithm has."""
    others = ", ".join(f"`{preset.name}` ({preset.text})" for preset in algorithm.presets.values())
    more = f", {others}" if others else ", the only ones"
    return f"Whose settings to start from, which flags still change: `ours`{more}."
