"""Ctrl-C and a polite kill, heeded between two steps instead of in the middle of one, unless a step does not end."""

import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from sunrise.envs.worker import SIGNALS

log = logging.getLogger("sunrise")
GRACE = 10.0
"""Seconds that an environment has to come back after the first signal."""
PATIENCE = 5.0
"""Seconds from the second signal to the end of the process, where Python does not get to heed it."""


class Waiting(Protocol):
    """What may be waiting for an environment."""

    since: float | None
    """Since when, by `time.monotonic`; None when it is not."""

    def whom(self) -> str:
        """For which."""


@contextmanager
def interruptible(waiting: Sequence[Waiting] = (), timeout: float = 0.0) -> Iterator[threading.Event]:
    """The event is set by the first signal that asks to stop; the second is a KeyboardInterrupt wherever it strikes.

    An environment that does not come back within `GRACE` seconds of the first is interrupted as if there had been a
    second. One that is waited for longer than `timeout` seconds is named in a warning, once for each call.
    """
    asked, raised = threading.Event(), threading.Event()
    main = threading.current_thread() is threading.main_thread()

    def note(number: int, frame: Any) -> None:
        if asked.is_set():
            raised.set()
            raise KeyboardInterrupt
        asked.set()

    # What is ignored stays so: a run under nohup outlives its terminal.
    heeded = [n for n in SIGNALS if main and signal.getsignal(n) not in (signal.SIG_IGN, None)]
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    arguments = (reader, waiting, timeout, heeded, raised)
    watch = threading.Thread(target=watch_over, args=arguments, daemon=True, name="watch")
    before = {number: signal.signal(number, note) for number in heeded}
    descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False) if main else -1
    watch.start()
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if main:
            signal.set_wakeup_fd(descriptor)
        writer.close()
        watch.join()
        reader.close()


def watch_over(
    reader: socket.socket, waiting: Sequence[Waiting], timeout: float, heeded: Sequence[int], raised: threading.Event
) -> None:
    """In a thread of its own, which hears of a signal also when the main thread is deep in somebody's C."""
    heard: list[float] = []
    """When each signal came; the second one may be ours."""
    warned: float | None = None
    while True:
        ready, _, _ = select.select([reader], [], [], 0.2)
        numbers = reader.recv(64) if ready else b""
        if ready and not numbers:
            return
        now = time.monotonic()
        heard += [now for number in numbers if number in heeded]
        for one, since in [(one, one.since) for one in waiting]:
            if since is None:
                continue
            # A second later than one in a process of its own is killed.
            if timeout and now - since > timeout + 1 and warned != since:
                warned = since
                log.warning("Waiting for %s for more than %g s. Ctrl-C stops the run.", one.whom(), timeout)
            if len(heard) == 1 and now - max(heard[0], since) > GRACE:
                log.warning("Stopping without %s, which does not come back.", one.whom())
                signal.pthread_kill(threading.main_thread().ident or 0, heeded[0])
        ignored = not raised.is_set() or len(heard) > 2
        if len(heard) > 1 and ignored and now - heard[-1] > PATIENCE:
            log.warning("Left at once. The last checkpoint is whole: `sunrise resume` goes on from it.")
            os._exit(130)
