"""rl-zoo3 with our algorithms: `python -m sunrise.zoo train --algo sac --env Hopper-v5` is its own command.

Its hyper-parameters, evaluation, search and `enjoy` then drive our models. rl_zoo3 is no dependency of ours.
"""

import importlib
import runpy
import sys

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


def main() -> None:
    """Run one of the zoo's scripts with our algorithms."""
    if len(sys.argv) < 2 or sys.argv[1] not in SCRIPTS:
        sys.exit(f"usage: python -m sunrise.zoo {{{','.join(SCRIPTS)}}} ...")
    script = sys.argv.pop(1)
    try:
        register()
    except SunriseError as error:
        sys.exit(str(error))
    module = f"rl_zoo3.plots.{script}" if "plot" in script else f"rl_zoo3.{script}"
    if hasattr(loaded := importlib.import_module(module), script):
        getattr(loaded, script)()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
