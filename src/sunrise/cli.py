"""The command line. Each command is a function; what it needs is imported when it is called."""

import json
import logging
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sunrise.errors import SunriseError, near
from sunrise.signals import end_once, heeded_signals


def train(arguments: Sequence[str]) -> None:
    """Train an algorithm: `sunrise train sac --env-id Hopper-v5`."""
    import tyro

    from sunrise.agents import AGENTS
    from sunrise.algorithms import ALGORITHMS, starting
    from sunrise.console import counted, members, say
    from sunrise.options import Preset, Simulated, Start
    from sunrise.settings import Config, Length, env_options, flatten_config

    name = _word(arguments, AGENTS, "sunrise train", "algorithm")
    known = ALGORITHMS[name]
    prog, rest = f"sunrise train {name}", list(arguments[1:])
    asked = [a for a in rest if a not in ("-h", "--help")]
    start, _ = tyro.cli(Start, args=asked, prog=prog, return_unknown_args=True, add_help=False)
    defaults = starting(name, start.env_id, start.preset)
    learner = type(known.defaults.learner)

    def parse(preset: Preset, simulated: Simulated, config: Config[learner]) -> Config[Any]:  # type: ignore[valid-type]
        return config

    config = tyro.cli(
        tyro.conf.configure(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)(
            _defaulted(parse, Preset(start.preset), Simulated(), defaults)
        ),
        args=rest,
        prog=prog,
        description=first_line(AGENTS[name]),
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
    total = Length(start.total_timesteps, start.total_env_steps).in_timesteps(model.action_repeat) or total
    steps = counted(total, total * model.action_repeat)
    seen = env_options(model.config.env, env_id)
    drawn = f", pictures by {seen['renderer']}" if seen.get("pixels") else ""
    size = members(config.ensemble.ensemble_size)
    say(f"{name} with {size} on {env_id}, {steps}{drawn}: {settings['run_dir']}")
    _learn(model, total, settings["run_dir"])


def resume(arguments: Sequence[str]) -> None:
    """Go on with a run that was stopped: `sunrise resume RUN`."""
    import tyro

    from sunrise.agents import resume_run
    from sunrise.agents.files import read_run
    from sunrise.console import counted, members, say
    from sunrise.options import Resume
    from sunrise.record import RunFolder
    from sunrise.settings import Length

    options = tyro.cli(Resume, args=arguments, prog="sunrise resume")
    config, status = read_run(options.run), RunFolder(options.run).read_status()
    repeat = config.get("action_repeat", 1)
    asked = Length(options.total_timesteps, options.total_env_steps).in_timesteps(repeat)
    total = asked or config["settings"]["total_timesteps"]
    done = status["timesteps"] if status.get("status") == "finished" else -1
    if done >= total or (done >= 0 and asked is None):
        say(f"{options.run} is finished: {counted(done, done * repeat)}. To go on, give more with --total-timesteps.")
        return
    model = resume_run(options.run, options.trust_env, config, options.max_env_restarts, options.env_timeout)
    # Environments side by side step over the end together: what the run was to do may be a little less than it did.
    if total < model.num_timesteps and total != config["settings"]["total_timesteps"]:
        raise SunriseError(f"total_timesteps is {total:,}, but the run is at {model.num_timesteps:,} already.")
    size = members(config["settings"]["ensemble_size"])
    say(f"{config['algo']} with {size} goes on at timestep {model.num_timesteps:,}: {options.run}")
    _learn(model, total - model.num_timesteps, str(options.run))


def inspect(arguments: Sequence[str]) -> None:
    """Show what is in a run or a checkpoint: `sunrise inspect RUN`."""
    import tyro

    from sunrise.inspection import inspect_path, print_findings
    from sunrise.options import Inspect

    options = tyro.cli(Inspect, args=arguments, prog="sunrise inspect")
    findings = inspect_path(options.path)
    if options.json:
        print(json.dumps(findings))
    else:
        print_findings(findings)


def _learn(model: Any, timesteps: int, run_dir: str) -> None:
    """Train on from where the model is, and say what to do next, however it ends."""
    from sunrise.console import say

    try:
        model.learn(timesteps, log_interval=None, reset_num_timesteps=False)
    except KeyboardInterrupt:
        say(f"\nStopped at timestep {model.num_timesteps:,}; saved up to {max(model.life.saved_at, 0):,} in {run_dir}.")
        say(f"Go on: sunrise resume {run_dir}")
        say(f"Look at the agents: sunrise evaluate {run_dir}")
        raise SystemExit(130) from None
    say(f"Finished. Next: sunrise evaluate {run_dir}")


def evaluate(arguments: Sequence[str]) -> None:
    """Evaluate a run: `sunrise evaluate RUN --episodes 10`."""
    import tyro

    from sunrise.agents import load_run
    from sunrise.options import Evaluate

    options = tyro.cli(Evaluate, args=arguments, prog="sunrise evaluate")
    if options.episodes < 1:
        raise SunriseError(f"episodes is {options.episodes}, but must be at least 1.")
    model = load_run(options.run, options.renderer, options.trust_env)
    result = model.evaluate(options.episodes, options.seed)
    row = {"mean_return": result.mean, "std_return": result.std, "episodes": len(result.returns)}
    print(json.dumps(row))


def record(arguments: Sequence[str]) -> None:
    """Film a run's agent: `sunrise record RUN`."""
    import tyro

    from sunrise.console import say
    from sunrise.options import Record
    from sunrise.video import record_run

    options = tyro.cli(Record, args=arguments, prog="sunrise record")
    path, mean = record_run(
        options.run, options.out, options.episodes, options.seed, options.renderer, options.trust_env
    )
    say(f"mean return {mean:.1f}")
    print(path)


def reproduce(arguments: Sequence[str]) -> None:
    """Run an experiment of the paper: `sunrise reproduce table1`."""
    import tyro

    from sunrise.options import Reproduce

    options = tyro.cli(Reproduce, args=arguments, prog="sunrise reproduce")
    out = options.out or Path("reproduce") / f"{options.experiment}-{options.scale}"
    if options.experiment == "fig1b":
        from sunrise.experiments.toy import draw_cubic, fit_cubic

        if options.dry_run:
            print("fig1b: one toy regression, about 20 seconds")
            return
        lengths = options.total_timesteps, options.total_env_steps
        if options.envs or options.games or options.tasks or options.seeds or any(lengths):
            raise SunriseError("fig1b is one toy regression: it takes no environments, seeds or steps.")
        fit = fit_cubic()
        draw_cubic(fit, out / "figure.png")
        inside, outside = fit.spread_inside, fit.spread_outside
        print(f"mean spread: {inside:.2f} where there are points, {outside:.2f} where there are none")
        print(f"Written: {out}/figure.png")
        if outside <= inside:
            raise SunriseError("the spread is not larger where there are no points: the ensemble failed its check.")
        return
    from sunrise.experiments.plan import reproduce_experiment
    from sunrise.settings import Length

    changes: dict[str, Any] = {} if options.renderer == "auto" else {"renderer": options.renderer}
    reproduce_experiment(
        options.experiment,
        options.scale,
        options.seeds,
        (
            *options.envs,
            *(f"ALE/{game}-v5" for game in options.games),
            *(f"dmc/{task.removeprefix('dmc/')}" for task in options.tasks),
        ),
        options.preset,
        Length(options.total_timesteps, options.total_env_steps),
        changes,
        out,
        options.dry_run,
    )


def envs(arguments: Sequence[str]) -> None:
    """List environments: `sunrise envs`."""
    import tyro

    from sunrise.envs.catalogue import print_catalogue
    from sunrise.options import Envs

    print_catalogue(tyro.cli(Envs, args=arguments, prog="sunrise envs").pattern)


def demo(arguments: Sequence[str]) -> None:
    """Train five agents on Pendulum, print a table, draw the result: `sunrise demo`."""
    import tyro

    from sunrise.demo import run_demo
    from sunrise.options import Demo

    options = tyro.cli(Demo, args=arguments, prog="sunrise demo")
    run_demo(options.out, options.seed)


def bench(arguments: Sequence[str]) -> None:
    """Measure speed on this machine: `sunrise bench`."""
    import tyro

    from sunrise.bench import run_bench
    from sunrise.options import Bench

    options = tyro.cli(Bench, args=arguments, prog="sunrise bench")
    run_bench(options.members, options.repeats, options.out)


NAMES = ("--run-dir", "--env-id", "--out")
"""Flags whose words are names, whatever they look like."""
COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "train": train,
    "resume": resume,
    "inspect": inspect,
    "evaluate": evaluate,
    "record": record,
    "reproduce": reproduce,
    "envs": envs,
    "demo": demo,
    "bench": bench,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; what the user can put right is one sentence on stderr.

    Without `arguments` the process is the command's own, and so is what signals do to it.
    """
    if arguments is None:
        for number in heeded_signals():
            signal.signal(number, end_once)
    arguments = plain_numbers(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["--version"]:
        from sunrise import __version__

        print(__version__)
        return
    log = logging.getLogger("sunrise")
    handlers, level = log.handlers, log.level
    log.setLevel(logging.INFO)
    log.handlers = [logging.StreamHandler()]  # its plain text, on stderr, and once: libraries add handlers of their own
    log.propagate = False
    try:
        name = _word(arguments, COMMANDS, "sunrise", "command")
        COMMANDS[name](arguments[1:])
    except SunriseError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        where = f": {error.filename}" if isinstance(error.filename, str | Path) else ""
        print(f"error: {error.strerror or error}{where}.", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        log.propagate, log.handlers = True, handlers
        log.setLevel(level)


def first_line(entry: Any) -> str:
    """What a command or an algorithm is, in one sentence."""
    return (entry.__doc__ or "").strip().partition("\n")[0]


def plain_numbers(arguments: Sequence[str]) -> list[str]:
    """`--total-timesteps 1e6` is a whole number: written out, every flag of numbers takes it."""
    plain = list(arguments)
    for place, (flag, word) in enumerate(pairwise(arguments), 1):
        if re.fullmatch(r"\d+(\.\d+)?e\+?\d{1,2}", word, re.IGNORECASE) and flag not in NAMES:
            number = float(word)
            plain[place] = str(int(number)) if number.is_integer() else word
    return plain


def _word(arguments: Sequence[str], known: Any, prog: str, what: str) -> str:
    """The command or algorithm that was asked for; without one, or for help, the list of them."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: {prog} {what.upper()} ...\n\n{what}s:", file=sys.stdout)
        for name, entry in known.items():
            print(f"  {name:<12}{first_line(entry)}")
        print(f"\n`{prog} {what.upper()} --help` shows its flags.")
        raise SystemExit(0 if arguments else 2)
    if arguments[0] not in known:
        raise SunriseError(f"there is no {what} {arguments[0]!r}.{near(arguments[0], known, count=1)}")
    return arguments[0]


def _defaulted(function: Any, *defaults: Any) -> Any:
    """`function` with defaults for its parameters, for tyro to start from."""
    function.__defaults__ = defaults
    return function
