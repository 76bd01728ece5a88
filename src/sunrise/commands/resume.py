"""`sunrise resume`: a run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from sunrise.commands.flags import OwnAlgorithm, Run, TrustEnv
from sunrise.config.length import Length
from sunrise.config.own import own_algorithm
from sunrise.console import counted, members, say
from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Go on with a run that was stopped, exactly where its last good checkpoint is."""

    run: Run
    total_timesteps: int | None = None
    """Train until this many timesteps instead; default: what the run was begun with."""
    total_env_steps: int | None = None
    """The same in simulator steps."""
    trust_env: TrustEnv = False
    algorithm: OwnAlgorithm = None
    max_env_restarts: int | None = None
    """Allow this many failures of environments instead."""
    env_timeout: float | None = None
    """Wait this many seconds for an environment instead."""


def run(arguments: Sequence[str]) -> None:
    """Go on to the end; a run that is finished is left as it is."""
    from sunrise.agents import resume_run
    from sunrise.commands.learning import learn
    from sunrise.store.reading import read_run
    from sunrise.store.run_folder import RunFolder

    flags = tyro.cli(Flags, args=arguments, prog="sunrise resume")
    config, status = read_run(flags.run), RunFolder(flags.run).read_status()
    repeat = config.get("action_repeat", 1)
    asked = Length(flags.total_timesteps, flags.total_env_steps).in_timesteps(repeat)
    total = asked or config["settings"]["total_timesteps"]
    done = status["timesteps"] if status.get("status") == "finished" else -1
    if done >= total or (done >= 0 and asked is None):
        say(f"{flags.run} is finished: {counted(done, done * repeat)}. To go on, give more with --total-timesteps.")
        return
    own = own_algorithm(flags.algorithm)
    model = resume_run(flags.run, flags.trust_env, config, flags.max_env_restarts, flags.env_timeout, own)
    # Environments side by side step over the end together: what the run was to do may be a little less than it did.
    if total < model.num_timesteps and total != config["settings"]["total_timesteps"]:
        raise SunriseError(f"total_timesteps is {total:,}, but the run is at {model.num_timesteps:,} already.")
    size = members(config["settings"]["ensemble_size"])
    say(f"{config['algo']} with {size} goes on at timestep {model.num_timesteps:,}: {flags.run}")
    learn(model, total - model.num_timesteps, str(flags.run))
