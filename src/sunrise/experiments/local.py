"""Trials on this machine: each a process of its own with its share of the cores, or one after another in this one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from sunrise.console import console
from sunrise.experiments.cores import THREADS
from sunrise.experiments.runs import Run
from sunrise.experiments.trial import LOG, Ended, Share, encode, run_here
from sunrise.files.folder import Folder

PAUSE, LEAVE = 0.05, 60.0
"""Seconds between looks at the processes, and that they have to save when they are asked to stop."""


class Process(NamedTuple):
    """A trial that goes on."""

    run: Run
    process: "subprocess.Popen[bytes]"
    answer: int
    """Where it says how it ended."""


class Local:
    """Processes side by side."""

    def __init__(self, workers: int, share: Share) -> None:
        self.workers, self.share = workers, share
        self.going: list[Process] = []

    @property
    def has_room(self) -> bool:
        return len(self.going) < self.workers

    def start(self, run: Run) -> None:
        """Start a trial. A terminal's Ctrl-C is for us alone, and it stops when we are gone."""
        folder, (answer, says) = Folder(run.folder), os.pipe()
        folder.make()
        spec = {"run": encode(run), "share": self.share, "answer": says, "parent": os.getpid()}
        threads = dict.fromkeys(THREADS, str(self.share.cpus))
        try:
            with folder.change(LOG) as log:
                os.lseek(log, 0, os.SEEK_END)
                process = subprocess.Popen(
                    [sys.executable, "-m", "sunrise.experiments.trial", json.dumps(spec)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **threads},
                    pass_fds=[says],
                    start_new_session=True,
                )
        except BaseException:
            os.close(answer)
            raise
        finally:
            os.close(says)
        self.going.append(Process(run, process, answer))

    def ended(self, seconds: float) -> Iterator[tuple[Run, Ended]]:
        """The trials that ended, after waiting for one for at most so long."""
        until = time.monotonic() + seconds
        while self.going and time.monotonic() < until:
            over = [one for one in self.going if one.process.poll() is not None]
            for one in over:
                self.going.remove(one)
                yield one.run, how(one)
            if over:
                return
            time.sleep(PAUSE)

    def stop(self) -> bool:
        """Ask every trial to save and end, and wait for that; whether all did."""
        for one in self.going:
            with suppress(ProcessLookupError):
                one.process.terminate()
        until, killed = time.monotonic() + LEAVE, 0
        for one in self.going:
            try:
                one.process.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
                killed += 1
            how(one)
        self.going.clear()
        return not killed


def how(one: Process) -> Ended:
    """What an ended process said; one that said nothing was killed or broke down."""
    with os.fdopen(one.answer, "rb", buffering=0) as answer:
        os.set_blocking(answer.fileno(), False)
        said = answer.read(2**16)
    if said:
        return Ended(*json.loads(said))
    code = one.process.returncode
    if code < 0:
        return Ended("lost", f"its process was killed by {signal.Signals(-code).name}")
    return Ended("lost", f"its process ended with code {code}; see {one.run.folder / LOG}")


class Here:
    """One after another in this process: nothing to start, and every core."""

    def __init__(self) -> None:
        self.over: list[tuple[Run, Ended]] = []

    @property
    def has_room(self) -> bool:
        return not self.over

    def start(self, run: Run) -> None:
        """Run it to its end."""
        self.over.append((run, run_here(run, progress_bar=console.is_terminal)))

    def ended(self, seconds: float) -> Iterator[tuple[Run, Ended]]:
        """What was run."""
        while self.over:
            yield self.over.pop()

    def stop(self) -> bool:
        """Nothing goes on when this is called."""
        return True
