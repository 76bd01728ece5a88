"""The flags that say where many runs are made: the same for every command that makes them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from sunrise.errors import SunriseError

if TYPE_CHECKING:
    from sunrise.experiments.executor import Execution


@dataclass
class Where:
    """Where the runs are made."""

    workers: int | None = None
    """Runs side by side on this machine, each in a process with its share of the cores; default: one at a time."""
    ray_address: str | None = None
    """Make the runs on a Ray cluster instead: `auto` where a node of it is this machine, or host:port."""
    cpus: int | None = None
    """Cores a run; default: this machine's divided among the workers, on Ray 1. The last bits depend on it."""
    gpus: float = 0.0
    """GPUs a run, on Ray."""
    memory: float | None = None
    """GiB of memory a run: Ray places it accordingly, and one that takes more is killed."""
    retries: int = 3
    """How often a run that was killed, or lost with its machine, is started again."""

    def execution(self, at_least: int) -> "Execution":
        """What the flags ask for; `at_least` so many processes where they do not say."""
        from sunrise.experiments.executor import Execution

        if self.workers is not None and self.workers < 1:
            raise SunriseError(f"workers is {self.workers}, but must be at least 1.")
        if self.memory is not None and not self.memory > 0:
            raise SunriseError(f"memory is {self.memory}, but must be above 0.")
        memory = None if self.memory is None else int(self.memory * 2**30)
        workers = self.workers or (at_least if self.ray_address is None else 0)
        return Execution(workers, self.ray_address, self.cpus, self.gpus, memory, self.retries)


WhereFlags = Annotated[Where, tyro.conf.arg(name="")]
"""A group of flags without a name of its own in front of each."""
