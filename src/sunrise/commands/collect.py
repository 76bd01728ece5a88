"""`sunrise collect`: a dataset of what a run's agents do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from sunrise.commands.flags import EpisodeSeed, OwnAlgorithm, Run, RunRenderer, TrustEnv
from sunrise.config.own import own_algorithm
from sunrise.console import say
from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Write a Minari dataset of a run's last checkpoint."""

    run: Run
    out: Annotated[str, tyro.conf.arg(metavar="ID")]
    """The dataset's id, like hopper/sunrise-v0; it is in MINARI_DATASETS_PATH, or where Minari has its datasets."""
    episodes: int | None = None
    """Whole episodes to collect; default: 10."""
    timesteps: int | None = None
    """Timesteps to collect instead; the last episode is cut there."""
    deterministic: bool = False
    """Without noise, as in evaluations; default: exploring, as in training."""
    seed: EpisodeSeed = None
    trust_env: TrustEnv = False
    algorithm: OwnAlgorithm = None
    renderer: RunRenderer = None


def run(arguments: Sequence[str]) -> None:
    """Collect, and print where the dataset is."""
    flags = tyro.cli(Flags, args=arguments, prog="sunrise collect")
    for name, number in (("episodes", flags.episodes), ("timesteps", flags.timesteps)):
        if number is not None and number < 1:
            raise SunriseError(f"{name} is {number}, but must be at least 1.")
    if flags.episodes and flags.timesteps:
        raise SunriseError("give --episodes or --timesteps, not both.")

    from sunrise.agents import load_run
    from sunrise.agents.collecting import Length, collect
    from sunrise.offline.dataset import place_of

    place = place_of(flags.out)
    model = load_run(flags.run, flags.renderer, flags.trust_env, own_algorithm(flags.algorithm))
    length = Length(flags.episodes or (None if flags.timesteps else 10), flags.timesteps)
    episodes, timesteps = collect(model, flags.out, length, flags.deterministic, flags.seed)
    say(f"{episodes:,} episodes, {timesteps:,} timesteps: {flags.out}")
    print(place)
