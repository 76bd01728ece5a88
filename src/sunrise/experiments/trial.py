"""One run of many, in a process of its own: begun or gone on with, and how it ended.

`python -m sunrise.experiments.trial SPEC` is such a process; a task on Ray calls `run_alone` in its own.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sunrise.errors import SunriseError
from sunrise.experiments.cores import claim, limit_memory
from sunrise.experiments.paper import Arm
from sunrise.experiments.runs import Run, algorithm_of
from sunrise.files.folder import Folder
from sunrise.signals import SIGNALS, end_once
from sunrise.store.machine import labelled
from sunrise.store.ownership import LostError, Owner, owner_of, wait_until_free
from sunrise.store.run_folder import CHANGEABLE

if TYPE_CHECKING:
    from sunrise.agents import Agent

FAILURE, LOG = "failure.txt", "trial.log"
PATIENCE = 120.0
"""Seconds that a new attempt waits for the process before it to leave the folder."""
PR_SET_PDEATHSIG = 1


class Ended(NamedTuple):
    """How an attempt ended: `failed` is final, what is `lost` or `stopped` can be tried again."""

    how: Literal["finished", "failed", "lost", "stopped"]
    why: str = ""


class Share(NamedTuple):
    """What a trial is granted."""

    cpus: int
    memory: int | None = None
    """Bytes."""


def encode(run: Run) -> dict[str, Any]:
    """A run as plain data, wherever the process that makes it is."""
    own, folder = {"arm": run.arm.name, "algo": run.arm.algo, "env": run.env, "seed": run.seed}, run.folder.absolute()
    own |= {"labels": dict(run.labels)}
    return {**own, "settings": {**run.settings, "run_dir": str(folder)}, "folder": str(folder)}


def decode(spec: dict[str, Any]) -> Run:
    """The run again."""
    arm = Arm(spec["arm"], spec["algo"])
    return Run(arm, spec["env"], spec["seed"], spec["settings"], Path(spec["folder"]), spec["labels"])


def as_command(run: Run) -> list[str]:
    """What would train the run by hand: config.json says it, because how a trial is started tells nobody anything."""
    flags = []
    for name, value in run.settings.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            flags += [f"--{flag}", *map(str, value if isinstance(value, list | tuple) else [value])]
    return ["sunrise", "train", run.arm.algo, *flags]


def agent_of(run: Run) -> "Agent":
    """The agent of a run: where it was stopped, or new."""
    from sunrise.agents import resume_run
    from sunrise.agents.own import agent

    algorithm = algorithm_of(run.arm)
    if run.begun:
        # The environment is the one that was asked for: a run of another is refused before.
        others = {name: run.settings.get(name) for name in CHANGEABLE[1:]}
        own = algorithm if ":" in run.arm.algo else None
        return resume_run(run.folder, trust_env=True, algorithm=own, others=others)
    settings = {k: v for k, v in run.settings.items() if k not in ("env_id", "total_timesteps")}
    return agent(algorithm)(algorithm.policies[0], run.env, **settings)


def run_here(run: Run, progress_bar: bool = False) -> Ended:
    """Train a run to its end in this process. An error is kept in its folder and is final; Ctrl-C goes through."""
    folder = Folder(run.folder)
    try:
        if run.done:
            return Ended("finished")
        folder.make()
        folder.remove(FAILURE)
        with labelled(arm=run.arm.name, **run.labels):
            model = agent_of(run)
            left = run.settings["total_timesteps"] - model.num_timesteps
            model.learn(max(left, 0), log_interval=None, reset_num_timesteps=False, progress_bar=progress_bar)
    except (LostError, MemoryError) as error:
        return Ended("lost", str(error) or "there was no memory left")
    except Exception as error:
        why = str(error) if isinstance(error, SunriseError) else f"{type(error).__name__}: {error}"
        if is_anothers(folder):
            return Ended("lost", why)
        keep_failure(run.folder, why, traceback.format_exc())
        return Ended("failed", why)
    return Ended("finished")


def run_alone(spec: dict[str, Any], share: Share, is_dead: Callable[[Owner], bool] | None = None) -> Ended:
    """The same with a share of the machine, in a process that does nothing else."""
    run = decode(spec)
    sys.argv = as_command(run)
    claim(share.cpus)
    if share.memory is not None:
        limit = share.memory

        def note(now: int) -> None:
            over = f"it had {now / 2**20:,.0f} MiB of memory, more than the {limit / 2**20:,.0f} MiB it was granted"
            keep_failure(run.folder, f"{over}: give more with --memory.", "")

        limit_memory(limit, note)
    try:
        if run.folder.exists():
            wait_until_free(Folder(run.folder), PATIENCE, is_dead)
    except SunriseError as error:
        return Ended("lost", str(error))
    try:
        return run_here(run)
    except KeyboardInterrupt:
        return Ended("stopped")


def is_anothers(folder: Folder) -> bool:
    """Whether another process has the folder, or has had it after this one."""
    owner = owner_of(folder)
    return owner is not None and not owner.is_this_process


def keep_failure(path: Path, why: str, trace: str) -> None:
    """Write what happened into a run's folder, as far as that can still be written."""
    text = f"{why}\n\n{time.strftime('%Y-%m-%dT%H:%M:%S%z')} on {socket.gethostname()}\n\n{trace}"
    with suppress(OSError, SunriseError):
        folder = Folder(path)
        folder.make()
        folder.write(FAILURE, text.encode(errors="replace"))


def read_failure(path: Path) -> str:
    """Why the last attempt failed, in one line; nothing where it did not."""
    try:
        return Folder(path).read(FAILURE, 2**20).decode(errors="replace").partition("\n")[0]
    except (OSError, SunriseError):
        return ""


def die_with(parent: int) -> None:
    """Ask to be stopped, as by SIGTERM, when the process that started this one is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit(1)


def main() -> None:
    """A process that a `Local` pool started: says how it ended on a descriptor of its own."""
    spec = json.loads(sys.argv[1])
    for number in SIGNALS:
        signal.signal(number, end_once)
    die_with(spec["parent"])
    ended = run_alone(spec["run"], Share(*spec["share"]))
    os.write(spec["answer"], json.dumps(ended).encode())
    os.close(spec["answer"])


if __name__ == "__main__":
    main()
