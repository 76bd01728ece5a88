"""`sunrise record`: a film of a run's agents."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from sunrise.commands.flags import EpisodeSeed, OwnAlgorithm, Run, RunRenderer, TrustEnv
from sunrise.config.own import own_algorithm
from sunrise.console import say


@dataclass
class Flags:
    """Film a run's last checkpoint: an MP4 of noiseless episodes."""

    run: Run
    out: Path | None = None
    """The film; default: videos/step-N.mp4 in the run's folder."""
    episodes: int = 1
    """Episodes to film, one after another."""
    seed: EpisodeSeed = None
    trust_env: TrustEnv = False
    algorithm: OwnAlgorithm = None
    renderer: RunRenderer = None


def run(arguments: Sequence[str]) -> None:
    """Film, and print where the film is."""
    from sunrise.agents.video import record_run

    flags = tyro.cli(Flags, args=arguments, prog="sunrise record")
    own = own_algorithm(flags.algorithm)
    path, mean = record_run(flags.run, flags.out, flags.episodes, flags.seed, flags.renderer, flags.trust_env, own)
    say(f"mean return {mean:.1f}")
    print(path)
