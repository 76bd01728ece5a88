"""The command line: a table of commands. Each is a file of `commands/`, imported when it is asked for."""

import importlib
import logging
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from sunrise.errors import SunriseError, near
from sunrise.signals import answered_signals, end_once

COMMANDS = {
    "train": "Train an algorithm: `sunrise train sac --env-id Hopper-v5`.",
    "resume": "Go on with a run that was stopped: `sunrise resume RUN`.",
    "inspect": "Show what is in a run or a checkpoint: `sunrise inspect RUN`.",
    "evaluate": "Evaluate a run: `sunrise evaluate RUN --episodes 10`.",
    "record": "Film a run's agent: `sunrise record RUN`.",
    "sweep": "Run arms x environments x seeds from a file: `sunrise sweep grid.yaml`.",
    "reproduce": "Run an experiment of the paper: `sunrise reproduce table1`.",
    "report": "Compare runs: tables, curves and a page: `sunrise report RUNS --out DIR`.",
    "watch": "Show the runs below a folder in a browser while they go on: `sunrise watch runs`.",
    "envs": "List environments: `sunrise envs`.",
    "demo": "Train five agents on Pendulum, print a table, draw the result: `sunrise demo`.",
    "bench": "Measure speed on this machine: `sunrise bench`.",
}
"""A command `x` is `run(arguments)` of the file `commands/x.py`; what it is, in one sentence."""
NAMES = ("--run-dir", "--env-id", "--out", "--config", "--watch")
"""Flags whose words are names, whatever they look like."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; what the user can put right is one sentence on stderr.

    Without `arguments` the process is the command's own, and so is what signals do to it.
    """
    if arguments is None:
        for number in answered_signals():
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
        name = choose(arguments, COMMANDS, "sunrise", "command")
        importlib.import_module(f"sunrise.commands.{name}").run(arguments[1:])
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


def plain_numbers(arguments: Sequence[str]) -> list[str]:
    """`--total-timesteps 1e6` is a whole number: written out, every flag of numbers takes it."""
    plain = list(arguments)
    for place, (flag, word) in enumerate(pairwise(arguments), 1):
        if re.fullmatch(r"\d+(\.\d+)?e\+?\d{1,2}", word, re.IGNORECASE) and flag not in NAMES:
            number = float(word)
            plain[place] = str(int(number)) if number.is_integer() else word
    return plain


def choose(arguments: Sequence[str], known: Mapping[str, str], prog: str, what: str) -> str:
    """The command or algorithm that was asked for; without one, or for help, the list of them.

    `known` has a sentence for each, `what` is what they are.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: {prog} {what.upper()} ...\n\n{what}s:", file=sys.stdout)
        for name, sentence in known.items():
            print(f"  {name:<12}{sentence}")
        print(f"\n`{prog} {what.upper()} --help` shows its flags.")
        raise SystemExit(0 if arguments else 2)
    if arguments[0] not in known:
        raise SunriseError(f"there is no {what} {arguments[0]!r}.{near(arguments[0], known, count=1)}")
    return arguments[0]
