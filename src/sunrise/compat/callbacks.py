"""Callbacks of a training: Stable-Baselines3's unchanged, a plain function, or `Callback`, which needs nothing else.

All have the methods that `Callback` has. A callback's own counters are not part of an exact resume: a run that goes on
calls it with the counters it has then.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from sunrise.compat.infos import with_ends
from sunrise.errors import SunriseError
from sunrise.run.events import CallbackExit, Ended, Event, Started, Stepped, StopRunError

Function: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], bool | None]
"""locals, globals -> False to stop."""


@runtime_checkable
class Follows(Protocol):
    """Whoever follows a training: `Callback`, or Stable-Baselines3's BaseCallback."""

    def init_callback(self, model: Any) -> None: ...
    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None: ...
    def on_rollout_start(self) -> None: ...
    def update_locals(self, locals_: dict[str, Any]) -> None: ...
    def on_step(self) -> bool | None: ...
    def on_rollout_end(self) -> None: ...
    def on_training_end(self) -> None: ...


CallbackArgument: TypeAlias = Function | Follows | Sequence[Function | Follows]


class Callback:
    """To be inherited from, where Stable-Baselines3 is not there: override what begins with `_on`.

    `self.model` is the agent, `self.locals` has the last step (`rewards`, `dones`, `infos`, `new_obs`, `actions`),
    `self.n_calls` counts steps and `self.num_timesteps` timesteps.
    """

    model: Any

    def __init__(self, verbose: int = 0) -> None:
        self.verbose, self.n_calls, self.num_timesteps = verbose, 0, 0
        self.locals: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}

    @property
    def logger(self) -> Any:
        """The model's."""
        return self.model.logger

    @property
    def training_env(self) -> Any:
        """The model's environments."""
        return self.model.get_env()

    def _on_training_start(self) -> None:
        """Before the first step."""

    def _on_rollout_start(self) -> None:
        """Before the steps between two rounds of updates."""

    def _on_step(self) -> bool:
        """After each step; False stops the training."""
        return True

    def _on_rollout_end(self) -> None:
        """After them."""

    def _on_training_end(self) -> None:
        """After the last step."""

    def init_callback(self, model: Any) -> None:
        self.model = model

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        self.locals, self.globals, self.num_timesteps = locals_, globals_, self.model.num_timesteps
        self._on_training_start()

    def on_rollout_start(self) -> None:
        self._on_rollout_start()

    def update_locals(self, locals_: dict[str, Any]) -> None:
        self.locals.update(locals_)

    def on_step(self) -> bool:
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_rollout_end(self) -> None:
        self._on_rollout_end()

    def on_training_end(self) -> None:
        self._on_training_end()


class OfFunction(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def _on_step(self) -> bool:
        answer = self.function(self.locals, self.globals)
        return answer is None or bool(answer)


def listed(callback: CallbackArgument) -> list[Follows]:
    """One callback or several, as objects."""
    several = list(callback) if isinstance(callback, list | tuple) else [callback]
    found: list[Follows] = []
    for one in several:
        if isinstance(one, Follows):
            found.append(one)
        elif callable(one):
            found.append(OfFunction(one))
        else:
            raise SunriseError(f"callback is {one!r}, but must be a function, a callback or a list of them.")
    return found


class CallbackSink:
    """Tells callbacks of each step what Stable-Baselines3 tells them; each of them may stop the run."""

    name, essential = "the callback", True

    def __init__(self, callback: CallbackArgument, model: Any, arguments: dict[str, Any]) -> None:
        self.callbacks, self.model = listed(callback), model
        self.locals: dict[str, Any] = {"self": model, "callback": callback, **arguments}
        self.began = time.time()

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Started | Stepped | Ended):
            return
        try:
            match event:
                case Started():
                    self._start()
                case Stepped():
                    self._step(event)
                case Ended(status="finished"):
                    self._all("on_training_end")
        except SystemExit as error:
            raise CallbackExit(error.code) from None

    def _start(self) -> None:
        self.began = time.time()
        for callback in self.callbacks:
            callback.init_callback(self.model)
        for callback in self.callbacks:
            callback.on_training_start(self.locals, {})
        self._all("on_rollout_start")

    def _step(self, event: Stepped) -> None:
        seen = event.seen
        new = {
            "num_collected_steps": self.model.trainer.steps_since_round,
            "episodes": event.episodes,
            "replay_buffer": self.model.replay_buffer,
        }
        if seen is not None:
            new |= {
                "actions": seen.action,
                "new_obs": seen.obs,
                "rewards": np.asarray(seen.reward, np.float32),
                "dones": seen.terminated | seen.truncated,
                "infos": with_ends(seen, event.episodes, time.time() - self.began),
            }
        self.locals.update(new)
        go_on = True
        for callback in self.callbacks:
            callback.update_locals(self.locals)
            answer = callback.on_step()
            go_on = (answer is None or bool(answer)) and go_on
        if self.model.trainer.steps_since_round == 0:
            self._all("on_rollout_end")
            self._all("on_rollout_start")
        if not go_on:
            raise StopRunError

    def _all(self, method: str) -> None:
        for callback in self.callbacks:
            getattr(callback, method)()

    def close(self) -> None:
        pass
