"""Environments side by side, of which each may fail alone: all in this process, or each in one of its own.

Both are Gymnasium's vector environments, which do not reset themselves. `step` takes a mask of the environments that
are meant, as `reset` does among its options, and neither raises because of an environment: `info[FAILED]` says which
failed, and how; their rows are what they were before. `revive` makes one of them anew.
"""

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from multiprocessing.util import Finalize
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import CloudpickleWrapper, iterate
from jaxtyping import Bool

from sunrise.envs.answers import Failure, bad_reward, of_length, place
from sunrise.envs.worker import signals_held, work
from sunrise.errors import SunriseError

FAILED = "sunrise/failed"
"""Where `info` has the failures of a call: a dict from environments to them."""
UNSAID = "sunrise/unsaid"
"""Where `info` has the environments that said None for whether their episode is over."""


class SyncEnvs(SyncVectorEnv[Any, Any]):
    """Environments in this process, one after another."""

    def __init__(self, makers: Sequence[Callable[[], gym.Env[Any, Any]]], remake: bool = True) -> None:
        super().__init__(makers, autoreset_mode=AutoresetMode.DISABLED)
        self.remake = remake
        """Whether calling a maker again gives another environment."""
        self.current: int | None = None
        """The environment that is being waited for."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return begin(self, self._observations, seed, options)

    def step(self, actions: Any, only: Bool[np.ndarray, "E"] | None = None) -> tuple[Any, Any, Any, Any, Any]:
        return act(self, self._observations, actions, only)

    def render(self, mode: str | None = None) -> Any:
        if mode is not None:
            raise SunriseError(
                "a mode is not for here: this is a vector environment of Gymnasium's, drawn as it was made, "
                "and Stable-Baselines3's is model.get_env()."
            )
        return super().render()

    def ask(self, command: str, arguments: Mapping[int, Any]) -> dict[int, Any]:
        """What each environment answers to a `step` or a `reset`, or how it failed."""
        answers: dict[int, Any] = {}
        try:
            for e, argument in arguments.items():
                self.current = e
                try:
                    answers[e] = self.envs[e].step(argument) if command == "step" else self.envs[e].reset(**argument)
                except (Exception, SystemExit) as error:
                    answers[e] = Failure.of(error)
        finally:
            self.current = None
        return answers

    def revive(self, e: int) -> None:
        """Make an environment anew, where that can be done."""
        if self.remake:
            with contextlib.suppress(Exception):
                self.envs[e].close()
            self.envs[e] = self.env_fns[e]()


class AsyncEnvs(AsyncVectorEnv[Any, Any]):
    """Environments each in a process of its own, which is killed when it does not answer for `timeout` seconds."""

    def __init__(self, makers: Sequence[Callable[[], gym.Env[Any, Any]]], timeout: float = 0.0) -> None:
        self.timeout = timeout
        """0: wait for ever."""
        self.patience = 0.0
        """What is left of it in this call."""
        with signals_held():  # JAX has threads, and a fork would copy their locks: new processes
            mode, worker = AutoresetMode.DISABLED, cast(Any, work)
            super().__init__(makers, shared_memory=False, context="spawn", worker=worker, autoreset_mode=mode)
        # Before multiprocessing's own end, which asks politely and would wait for those who leave signals to others.
        Finalize(self, kill_all, (self.processes,), exitpriority=10)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return begin(self, self.observations, seed, options)

    def step(self, actions: Any, only: Bool[np.ndarray, "E"] | None = None) -> tuple[Any, Any, Any, Any, Any]:
        return act(self, self.observations, actions, only)

    def ask(self, command: str, arguments: Mapping[int, Any]) -> dict[int, Any]:
        """What each environment answers to a `step` or a `reset`, or how it failed."""
        answers: dict[int, Any] = {}
        try:
            for e, argument in arguments.items():
                try:
                    self.parent_pipes[e].send((command, argument))
                except OSError:
                    answers[e] = self._ended(e)
            self.patience = self.timeout
            for e in arguments.keys() - answers.keys():
                answers[e] = self._answer(e)
        except BaseException:
            # Interrupted: an answer that is still to come must not be taken for that to the next question.
            for e in arguments.keys() - answers.keys():
                self._kill(e)
            raise
        return answers

    def _answer(self, e: int) -> Any:
        try:
            # In slices of a second, so that the time in which a whole run is suspended does not count.
            while self.timeout and not self.parent_pipes[e].poll(min(self.patience, 1.0)):
                self.patience -= 1.0
                if self.patience <= 0:
                    self._kill(e)
                    return Failure("did not answer", f"nothing came for {self.timeout:g} s; its process was killed")
            answer, well = self.parent_pipes[e].recv()
        except (EOFError, OSError):
            return self._ended(e)
        return answer if well else Failure(f"raised {answer[0]}", answer[1], answer[2])

    def _ended(self, e: int) -> Failure:
        process = self.processes[e]
        process.join(1)
        code = process.exitcode
        how = "ended" if code is None else f"ended with code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        return Failure("lost its process", f"it {how}")

    def _kill(self, e: int) -> None:
        self.processes[e].kill()
        self.processes[e].join()
        self.parent_pipes[e].close()

    def revive(self, e: int) -> None:
        """Make an environment anew, in a new process."""
        self._kill(e)
        context = multiprocessing.get_context("spawn")
        self.parent_pipes[e], pipe = context.Pipe()
        maker = CloudpickleWrapper(self.env_fns[e])
        arguments = (e, maker, pipe, self.parent_pipes[e], None, self.error_queue, self.autoreset_mode, None)
        process: Any = context.Process(target=work, name=f"environment {e}", args=arguments, daemon=True)
        with signals_held():
            process.start()
        self.processes[e] = process
        pipe.close()

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Ask every environment to close and wait a while, then end its process."""
        deadline = time.monotonic() + (0 if terminate else 10 if timeout is None else timeout)
        pipes = list(filter(None, self.parent_pipes))  # Gymnasium puts None for one that failed at its start
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.send(("close", None))
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0))
        kill_all(self.processes)
        for pipe in pipes:
            pipe.close()


def kill_all(processes: Sequence[Any]) -> None:
    """End processes that answer no signal but this one."""
    for process in processes:
        process.kill()
    for process in processes:
        process.join()


OurEnvs = SyncEnvs | AsyncEnvs


def begin(envs: OurEnvs, kept: Any, seed: Any, options: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Reset the environments of `options["reset_mask"]`, all without one; `kept` has the last observation of each."""
    rest = dict(options or {})
    only = rest.pop("reset_mask", np.ones(envs.num_envs, bool))
    first = seed if isinstance(seed, int) else 0
    seeds = (
        list(seed) if isinstance(seed, Sequence) else [None if seed is None else first + e for e in range(len(only))]
    )
    arguments = {int(e): {"seed": seeds[e], "options": rest or None} for e in np.flatnonzero(only)}
    answers = envs.ask("reset", arguments)
    infos: dict[str, Any] = {}
    failed: dict[int, Failure] = {}
    for e in arguments:
        answer = of_length(answers[e], 2)
        failure = answer if isinstance(answer, Failure) else place(kept, e, answer[0], envs.single_observation_space)
        if failure is not None:
            failed[e] = failure
        else:
            infos = envs._add_info(infos, answer[1], e)
    return deepcopy(kept), infos | ({FAILED: failed} if failed else {})


def act(envs: OurEnvs, kept: Any, actions: Any, only: Bool[np.ndarray, "E"] | None) -> tuple[Any, Any, Any, Any, Any]:
    """Step the environments of the mask, all without one; `kept` has the last observation of each."""
    each = list(iterate(envs.action_space, actions))
    asked = range(envs.num_envs) if only is None else np.flatnonzero(only)
    arguments = {int(e): each[e] for e in asked}
    answers = envs.ask("step", arguments)
    rewards = np.zeros(envs.num_envs)
    terminated, truncated = np.zeros((2, envs.num_envs), bool)
    infos: dict[str, Any] = {}
    failed: dict[int, Failure] = {}
    for e in arguments:
        answer = of_length(answers[e], 5)
        failure = answer if isinstance(answer, Failure) else bad_reward(answer[1])
        failure = failure or place(kept, e, answer[0], envs.single_observation_space)
        if failure is not None:
            failed[e] = failure
            continue
        rewards[e], terminated[e], truncated[e] = np.asarray(answer[1]).item(), bool(answer[2]), bool(answer[3])
        infos = envs._add_info(infos, answer[4], e)
        if answer[2] is None or answer[3] is None:
            infos.setdefault(UNSAID, []).append(e)
    return deepcopy(kept), rewards, terminated, truncated, infos | ({FAILED: failed} if failed else {})
