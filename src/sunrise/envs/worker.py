"""A process with one environment in it: it answers its parent, leaves signals to it, and ends with it."""

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym

from sunrise.errors import EnvironmentFailedError
from sunrise.signals import SIGNALS


@contextmanager
def signals_held() -> Iterator[None]:
    """A process started meanwhile ignores these signals from its first moment; here they are answered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        resource_tracker.ensure_running()  # multiprocessing's own helper, which would die of SIGHUP,
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # and whose start lifts a part of the mask
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_the_parent() -> None:
    """Do nothing at a signal. Not by ignoring it: what the environment starts would inherit that, and never end."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def end_with_the_parent() -> None:
    """Wait, in a thread, for the parent to be gone; then there is nobody to answer, whatever goes on here."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def work(
    index: int,
    make: Callable[[], gym.Env[Any, Any]],
    pipe: Connection,
    parent_pipe: Connection,
    memory: Any,
    errors: Any,
    mode: Any,
    permits: Any,
) -> None:
    """Answer each (command, argument) with (what came of it, True), or with (what went wrong, False).

    The commands and parameters are those of Gymnasium's own workers; `memory` and `permits` are not used.
    """
    parent_pipe.close()
    leave_signals_to_the_parent()
    threading.Thread(target=end_with_the_parent, daemon=True).start()
    env: gym.Env[Any, Any] | None = None
    unmade: Exception | None = None
    try:
        env = make()
    except Exception as error:
        unmade = error
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        command = ""
        while command != "close":
            command, argument = pipe.recv()
            try:
                if env is None:
                    raise unmade or EOFError
                answer = perform(env, command, argument), True
            except Exception as error:
                wrong = (type(error).__name__, str(error), traceback.format_exc())
                answer = wrong, False
                if command not in ("step", "reset"):  # Gymnasium looks for it elsewhere
                    said = f"environment {index} raised {wrong[0]} at its start: {wrong[1]}"
                    errors.put((index, EnvironmentFailedError, said, wrong[2]))
            pipe.send(answer)
    if env is not None:
        env.close()


def perform(env: gym.Env[Any, Any], command: str, argument: Any) -> Any:
    """Do what a command says."""
    match command:
        case "step":
            return env.step(argument)
        case "reset":
            return env.reset(**argument)
        case "_call":
            name, arguments, keywords = argument
            attribute = env.get_wrapper_attr(name)
            return attribute(*arguments, **keywords) if callable(attribute) else attribute
        case "_setattr":
            return env.set_wrapper_attr(*argument)
        case "_check_spaces":
            _, observations, actions = argument
            return observations == env.observation_space, actions == env.action_space
    return None
