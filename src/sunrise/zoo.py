"""rl-zoo3 with our algorithms: `python -m sunrise.zoo train --algo sac --env Hopper-v5` is its own command.

Its hyper-parameters, evaluation, search and `enjoy` then drive our models. rl_zoo3 is no dependency of ours.
"""

import importlib
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sunrise.agents.agent import Agent
from sunrise.agents.classes import DQN, SAC, TD3, DisCor, Rainbow
from sunrise.errors import SunriseError

SCRIPTS = ("train", "enjoy", "record_video", "record_training", "plot_train", "all_plots", "plot_from_file")


def zipped(cls: type[Agent]) -> type[Agent]:
    """The same class, whose models are saved by the name that the zoo looks for."""

    class Zipped(cls, algo=cls.algo):  # type: ignore[misc, valid-type, call-arg]
        suffix = ".zip"

    Zipped.__name__ = Zipped.__qualname__ = cls.__name__
    return Zipped


def register() -> None:
    """Put our classes in the place of Stable-Baselines3's of the same name, and those beside that only we have."""
    try:
        algorithms = importlib.import_module("rl_zoo3").ALGOS
    except ImportError as error:
        raise SunriseError(f"rl_zoo3 is needed for this: pip install rl_zoo3 ({error}).") from None
    algorithms.update({cls.algo: zipped(cls) for cls in (SAC, TD3, DQN, DisCor, Rainbow)})


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """For a while, something of somebody else's is something of ours."""
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)


def passing_over(objective: Callable[[Any, Any], Any], refused: list[SunriseError]) -> Callable[[Any, Any], Any]:
    """A search's trial that is passed over where we refuse its settings, as TD3's other noise; `refused` notes them."""
    from optuna import TrialPruned

    samplers = importlib.import_module("rl_zoo3.hyperparams_opt").HYPERPARAMS_SAMPLER
    samplers["discor"] = samplers["sac"]

    def trial_of(manager: Any, trial: Any) -> Any:
        if manager.algo not in samplers:
            raise SunriseError(f"rl-zoo3 has no search space for {manager.algo}: use `sunrise tune`.")
        try:
            return objective(manager, trial)
        except SunriseError as error:
            print(f"This trial is passed over: {error}")
            refused.append(error)
            raise TrialPruned(str(error)) from None

    return trial_of


def ours(command: Sequence[str]) -> list[str]:
    """A command that one of the zoo's scripts starts, with our algorithms in it."""
    if list(command[:2]) == ["python", "-m"] and command[2].startswith("rl_zoo3."):
        return [sys.executable, "-m", "sunrise.zoo", command[2].removeprefix("rl_zoo3."), *command[3:]]
    return list(command)


def run(script: str) -> None:
    """Run one of the zoo's scripts with our algorithms; it reads `sys.argv`. A refusal is a `SunriseError`."""
    register()
    module = f"rl_zoo3.plots.{script}" if "plot" in script else f"rl_zoo3.{script}"
    loaded = importlib.import_module(module)
    if not hasattr(loaded, script):
        call = subprocess.call
        del sys.modules[module]  # it is run, not imported
        with replaced(subprocess, "call", lambda command, **options: call(ours(command), **options)):
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    manager = importlib.import_module("rl_zoo3.exp_manager").ExperimentManager
    refused: list[SunriseError] = []
    try:
        with replaced(manager, "objective", passing_over(manager.objective, refused)):
            getattr(loaded, script)()
    except FileNotFoundError as error:
        file = Path(str(error.filename))
        if file.parent.name != "hyperparams":
            raise
        raise SunriseError(
            f"rl-zoo3 has no hyper-parameters for {file.stem}: give a file of them, -conf FILE."
        ) from None
    except ValueError:
        if not refused:
            raise
        raise refused[-1] from None  # there was no trial to choose from


def main() -> None:
    """The command line."""
    if len(sys.argv) < 2 or sys.argv[1] not in SCRIPTS:
        sys.exit(f"usage: python -m sunrise.zoo {{{','.join(SCRIPTS)}}} ...")
    try:
        run(sys.argv.pop(1))
    except SunriseError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
