"""The user's callback: it sees each step, and it alone may stop the run."""

from collections.abc import Callable
from typing import Any

from sunrise.run.events import CallbackExit, Event, Stepped, StopRunError

Callback = Callable[[dict[str, Any], dict[str, Any]], bool | None]
"""locals, globals -> False to stop."""


class CallbackSink:
    """Calls `callback({"self": model, "episodes": ...}, {})` after each step."""

    name, essential = "the callback", True

    def __init__(self, callback: Callback, model: object) -> None:
        self.callback, self.model = callback, model

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Stepped):
            return
        try:
            answer = self.callback({"self": self.model, "episodes": event.episodes}, {})
        except SystemExit as error:
            raise CallbackExit(error.code) from None
        if answer is False:
            raise StopRunError

    def close(self) -> None:
        pass
