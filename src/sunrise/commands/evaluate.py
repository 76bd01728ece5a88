"""`sunrise evaluate`: the returns of a run's agents."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from sunrise.commands.flags import EpisodeSeed, OwnAlgorithm, Run, RunRenderer, TrustEnv
from sunrise.config.own import own_algorithm
from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Evaluate a run's last checkpoint: one line of JSON on stdout."""

    run: Run
    episodes: int = 10
    """Whole episodes to run."""
    seed: EpisodeSeed = None
    trust_env: TrustEnv = False
    algorithm: OwnAlgorithm = None
    renderer: RunRenderer = None


def run(arguments: Sequence[str]) -> None:
    """Run whole noiseless episodes."""
    from sunrise.agents import load_run

    flags = tyro.cli(Flags, args=arguments, prog="sunrise evaluate")
    if flags.episodes < 1:
        raise SunriseError(f"episodes is {flags.episodes}, but must be at least 1.")
    model = load_run(flags.run, flags.renderer, flags.trust_env, own_algorithm(flags.algorithm))
    result = model.evaluate(flags.episodes, flags.seed)
    row = {"mean_return": result.mean, "std_return": result.std, "episodes": len(result.returns)}
    print(json.dumps(row))
