"""Ctrl-C and a request to end, answered between two steps instead of in the middle of one, unless a step hangs."""

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

log = logging.getLogger("sunrise")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a program to end: Ctrl-C, a service manager or scheduler, a terminal that closes."""
GRACE = 10.0
"""Seconds that an environment has to come back after the first signal."""
PATIENCE = 5.0
"""Seconds from the second signal to the end of the process, where Python does not get to answer it."""


def end_once(number: int, frame: Any) -> None:
    """What a command does with a signal while it does not train: it ends. Further signals are ignored meanwhile."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def answered_signals() -> list[signal.Signals]:
    """Those that the process does not ignore: a run under nohup outlives its terminal."""
    return [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]


@contextmanager
def answered_again() -> Iterator[None]:
    """Where a command comes to its end because of a signal, one more is a KeyboardInterrupt, and ends it at once."""
    ignored = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, end_once)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def kept_signals() -> Iterator[None]:
    """What answers signals is afterwards what it was before, whatever somebody's library has put in its place."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                if handler is not None:
                    signal.signal(number, handler)


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
    asked, raised, left = threading.Event(), threading.Event(), threading.Event()
    main = threading.current_thread() is threading.main_thread()

    def note(number: int, frame: Any) -> None:
        if left.is_set():
            return
        if asked.is_set():
            raised.set()
            raise KeyboardInterrupt
        asked.set()

    answered = answered_signals() if main else []
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    arguments = (reader, waiting, timeout, answered, raised)
    watch = threading.Thread(target=watch_over, args=arguments, daemon=True, name="watch")
    before = {number: signal.signal(number, note) for number in answered}
    descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False) if main else -1
    watch.start()
    try:
        yield asked
    finally:
        left.set()
        for number, handler in before.items():
            ending = asked.is_set() and handler is end_once
            signal.signal(number, signal.SIG_IGN if ending else handler)
        if main:
            signal.set_wakeup_fd(descriptor)
        writer.close()
        watch.join()
        reader.close()


def watch_over(
    reader: socket.socket, waiting: Sequence[Waiting], timeout: float, answered: Sequence[int], raised: threading.Event
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
        heard += [now for number in numbers if number in answered]
        for one, since in [(one, one.since) for one in waiting]:
            if since is None:
                continue
            # A second later than one in a process of its own is killed.
            if timeout and now - since > timeout + 1 and warned != since:
                warned = since
                log.warning("Waiting for %s for more than %g s. Ctrl-C stops the run.", one.whom(), timeout)
            if len(heard) == 1 and now - max(heard[0], since) > GRACE:
                log.warning("Stopping without %s, which does not come back.", one.whom())
                signal.pthread_kill(threading.main_thread().ident or 0, answered[0])
        ignored = not raised.is_set() or len(heard) > 2
        if len(heard) > 1 and ignored and now - heard[-1] > PATIENCE:
            log.warning("Left at once. The last checkpoint is whole: `sunrise resume` goes on from it.")
            os._exit(130)
