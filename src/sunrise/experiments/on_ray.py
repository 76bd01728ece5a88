"""Trials on a Ray cluster: each a plain task, never retried by Ray itself, in a process that does nothing else."""

import logging
import math
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sunrise.console import say
from sunrise.errors import MissingExtraError, SunriseError
from sunrise.experiments.executor import PoolLostError
from sunrise.experiments.runs import Run
from sunrise.experiments.trial import Ended, Share, encode, run_alone
from sunrise.signals import kept_signals
from sunrise.store.ownership import Owner, set_place

LEAVE = 60.0
"""Seconds that trials have to save when they are asked to stop."""
SILENCE, LAST = 20.0, 10.0
"""Seconds that the head may be silent, and that trials then have to save: after 60 Ray ends all of its processes."""

NODES = """\
import sys, ray
ray.init(sys.argv[1], log_to_driver=False)
print(*(node["NodeID"] for node in ray.nodes() if node["Alive"]))
"""
"""A program that says which nodes a head knows."""


def on_a_node(spec: dict[str, Any], share: tuple[Any, ...]) -> tuple[str, str]:
    """What a task does: a trial, in a process of its own on some node."""
    import ray

    set_place(ray.get_runtime_context().get_node_id())
    ended = run_alone(spec, Share(*share), is_dead)
    return ended.how, ended.why


def is_dead(owner: Owner) -> bool:
    """Whether Ray has given up the node that a process was on. It may yet live, cut off from the others."""
    import ray

    return any(node["NodeID"] == owner.place and not node["Alive"] for node in ray.nodes())


def require_answer(address: str, seconds: float = 10.0) -> None:
    """Raise OSError where nobody listens at host:port: Ray itself would ask for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=seconds).close()


class Cluster:
    """The tasks of one command on a cluster, which schedules them itself."""

    def __init__(self, address: str, share: Share, gpus: float) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("a cluster", "ray") from None
        self.ray: Any = ray
        try:
            require_answer(address)
            with kept_signals():
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise SunriseError(
                f"there is no Ray cluster at {address!r}: {str(error).partition(chr(10))[0]} "
                "Start one here with `ray start --head`, or give its host:port."
            ) from None
        self.share = share
        self.going: dict[Any, Run] = {}
        self.head, self.node = str(ray.get_runtime_context().gcs_address), ray.get_runtime_context().get_node_id()
        self.silent_since = math.inf
        """When the head did not answer, and has not since."""
        needed = {"CPU": share.cpus, "GPU": gpus, "memory": share.memory or 0}
        # max_retries=0: Ray would try a task that it killed for memory again for ever. max_calls=1: a worker that has
        # run one trial is not used for another, so nothing of JAX is inherited.
        self.task = ray.remote(
            max_retries=0,
            max_calls=1,
            num_cpus=share.cpus,
            num_gpus=gpus,
            memory=share.memory,
            scheduling_strategy="SPREAD",
        )(on_a_node)
        fits = [all(node["Resources"].get(k, 0) >= n for k, n in needed.items()) for node in ray.nodes()]
        if not any(fits):
            say("No node of the cluster has what a trial is to be granted: the trials wait until one does.")

    @property
    def has_room(self) -> bool:
        return True

    def start(self, run: Run) -> None:
        """Hand a trial to the cluster."""
        self.going[self.task.remote(encode(run), tuple(self.share))] = run

    def ended(self, seconds: float) -> Iterator[tuple[Run, Ended]]:
        """The trials that ended, after waiting for one for at most so long."""
        if not self.going:
            return
        self.ray.wait(list(self.going), num_returns=1, timeout=seconds)
        ready, _ = self.ray.wait(list(self.going), num_returns=len(self.going), timeout=0)
        for task in ready:
            yield self.going.pop(task), self._how(task)
        self._listen()

    def _listen(self) -> None:
        """Look whether there still is a head: Ray would end this process after a minute, without a word of ours."""
        try:
            require_answer(self.head, seconds=2.0)
            if self.silent_since == math.inf or self._is_the_same():
                self.silent_since = math.inf
                return
        except OSError:
            pass
        if self.silent_since == math.inf:
            self.silent_since = time.monotonic()
            say(f"The head of the Ray cluster, {self.head}, does not answer; it has {SILENCE:.0f} s to come back.")
        elif time.monotonic() - self.silent_since > SILENCE:
            say("It is gone. Those trials that can still be reached save and stop; Ray ends the others.")
            gone = f"the head of the Ray cluster, {self.head}, is gone, and its cluster with it"
            raise PoolLostError(f"{gone}: start one, if there is none.")

    def _is_the_same(self) -> bool:
        """Whether a head that answers again knows this node. Of another one at its address Ray must not be asked here:
        it would abort this process.
        """
        ask = [sys.executable, "-c", NODES, self.head]
        with suppress(subprocess.SubprocessError):
            known = subprocess.run(ask, capture_output=True, text=True, timeout=SILENCE, check=True).stdout
            return self.node in known.split()
        return False

    def _how(self, task: Any) -> Ended:
        """What a task returned; what Ray says where it did not."""
        errors = self.ray.exceptions
        try:
            return Ended(*self.ray.get(task))
        except errors.RayTaskError as error:  # our own code is broken, or not the same everywhere
            return Ended("failed", f"{type(error.cause).__name__}: {error.cause}")
        except (errors.RuntimeEnvSetupError, errors.TaskUnschedulableError) as error:
            return Ended("failed", str(error))
        except errors.RayError as error:
            known = {
                errors.OutOfMemoryError: "Ray killed it because its node ran out of memory",
                errors.NodeDiedError: "its node died",
                errors.WorkerCrashedError: "its process was killed or broke down",
            }
            return Ended("lost", known.get(type(error), f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"))

    def stop(self) -> bool:
        """Ask all trials to save and end, wait for that, and leave the cluster; whether all did."""
        still: list[Any] = []
        try:
            for task in self.going:
                self.ray.cancel(task, force=False, recursive=False)
            if self.going:
                seconds = LEAVE if self.silent_since == math.inf else LAST
                _, still = self.ray.wait(list(self.going), num_returns=len(self.going), timeout=seconds)
        finally:
            self.ray.shutdown()
        return not still
