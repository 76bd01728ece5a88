"""The one way to run many runs: start what is not done, again what was lost, and stop for no failure of one.

The folders of the runs are the only truth. Whoever starts this again, on whatever machine sees them, goes on.
"""

import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sunrise.console import say
from sunrise.errors import SunriseError
from sunrise.experiments.cores import usable
from sunrise.experiments.live import Show
from sunrise.experiments.local import Here, Local
from sunrise.experiments.runs import Run
from sunrise.experiments.trial import Ended, Share, keep_failure, read_failure
from sunrise.signals import answered_again
from sunrise.store.run_folder import RunFolder

LOOK = 1.0
"""Seconds between looks at the folders."""


class Pool(Protocol):
    """Where trials run."""

    @property
    def has_room(self) -> bool:
        """Whether another trial can be started."""

    def start(self, run: Run) -> None:
        """Start a trial."""

    def ended(self, seconds: float) -> Iterator[tuple[Run, Ended]]:
        """Trials that ended, after waiting for one for at most so long."""

    def stop(self) -> bool:
        """Ask all trials to save and end, and wait for that; whether they did, or had to be left."""


class PoolLostError(SunriseError):
    """Where the trials ran is gone."""


@dataclass(frozen=True)
class Execution:
    """Where runs are made, and what each is granted."""

    workers: int = 0
    """Processes on this machine; 0: one after another in this process."""
    ray_address: str | None = None
    """A Ray cluster instead: `auto`, or host:port."""
    cpus: int | None = None
    """Cores a trial; default: this machine's shared among the workers, on Ray 1."""
    gpus: float = 0.0
    """GPUs a trial, on Ray."""
    memory: int | None = None
    """Bytes a trial; one that takes more is killed."""
    retries: int = 3
    """How often a trial that was killed or lost is started again."""

    def pool(self) -> Pool:
        """Where the trials will run."""
        if self.cpus is not None and self.cpus < 1:
            raise SunriseError(f"cpus is {self.cpus}, but must be at least 1.")
        if self.retries < 0:
            raise SunriseError(f"retries is {self.retries}, but must be at least 0.")
        if self.ray_address is not None:
            if self.workers:
                raise SunriseError("--workers is for this machine and --ray-address for a cluster: give one of them.")
            from sunrise.experiments.on_ray import Cluster

            return Cluster(self.ray_address, Share(self.cpus or 1, self.memory), self.gpus)
        if self.gpus:
            raise SunriseError("--gpus is for a cluster: give --ray-address too.")
        if not self.workers and (self.cpus or self.memory):
            raise SunriseError("--cpus and --memory are for runs in processes of their own: give --workers too.")
        if not self.workers:
            return Here()
        return Local(self.workers, Share(self.cpus or max(len(usable()) // self.workers, 1), self.memory))


HERE = Execution()


class Failure(NamedTuple):
    """A run that did not come to its end, and why."""

    run: Run
    why: str


def execute(
    runs: Sequence[Run], execution: Execution = HERE, then: Callable[[Run], object] = lambda run: None
) -> list[Failure]:
    """Run what is not finished, and `then` do something with each that is; what fails is reported and stops no other.

    Ctrl-C stops all of them, saved; a second one does not wait for that.
    """
    done = {run.folder for run in runs if run.done}  # refuses runs of other settings before anything is started
    waiting = deque(run for run in runs if run.folder not in done)
    attempts: Counter[str] = Counter()
    failures: list[Failure] = []
    if not waiting:
        say(f"All {len(runs)} runs were finished before, and are kept.")
        return failures
    pool, going = execution.pool(), 0
    with Show(runs, table=bool(execution.workers or execution.ray_address)) as show:
        try:
            while waiting or going:
                while waiting and pool.has_room:
                    run = waiting.popleft()
                    attempts[run.folder.name] += 1
                    show.began(run, attempts[run.folder.name])
                    pool.start(run)
                    going += 1
                for run, ended in pool.ended(LOOK):
                    going -= 1
                    tried = attempts[run.folder.name]
                    if ended.how in ("lost", "stopped") and tried <= execution.retries:
                        show.lost(run, ended.why or "it was stopped")
                        waiting.append(run)
                    elif ended.how == "finished":
                        show.finished(run)
                        then(run)
                    else:
                        failures.append(Failure(run, kept(run, ended, tried)))
                        show.failed(run, failures[-1].why)
                show.refresh()
        except KeyboardInterrupt:
            if going:
                say("Stopping: every trial saves first. Ctrl-C again leaves at once.")
            leave(pool)
            raise
        except BaseException:
            pool.stop()
            raise
        pool.stop()
    return failures


def leave(pool: Pool) -> None:
    """Stop the trials because somebody asked for it, who may ask again."""
    saved = False
    try:
        with answered_again():
            saved = pool.stop()
    except KeyboardInterrupt:
        pass
    finally:
        say(
            "Stopped; what was trained is saved."
            if saved
            else "Left; a trial that had not saved goes back to its last checkpoint."
        )


@contextmanager
def saying_how_to_go_on(command: Sequence[str]) -> Iterator[None]:
    """Around what may be ended before its runs are: whoever ended it is told the command that goes on."""
    again = f"Go on: {shlex.join(command)}"
    try:
        yield
    except KeyboardInterrupt:
        say(again)
        raise
    except PoolLostError as error:
        raise SunriseError(f"{error} {again}") from None


def kept(run: Run, ended: Ended, tried: int) -> str:
    """Why a trial failed; what it could not write itself is written into its folder now."""
    if ended.how == "failed":
        return ended.why
    why = read_failure(run.folder) or ended.why or "it was stopped"
    why = f"{why} (tried {tried} times)" if tried > 1 else why
    if not RunFolder(run.folder).is_in_use():
        keep_failure(run.folder, why, "")
    return why
