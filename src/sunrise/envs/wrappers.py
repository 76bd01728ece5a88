"""Wrappers by name, around environments that are made by their id: `pkg.mod:Wrapper`, or `pkg.mod:Wrapper(name=value)`.

A name imports a module and calls what is in it, so one that a file brings along is only believed where it is one of
Gymnasium's own that do nothing but change what passes through them.
"""

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym

from sunrise.envs.imports import import_named
from sunrise.errors import SunriseError, near

GYMNASIUM = "gymnasium.wrappers"
HARMLESS = {
    "ClipAction",
    "ClipReward",
    "FilterObservation",
    "FlattenObservation",
    "FrameStackObservation",
    "GrayscaleObservation",
    "RecordEpisodeStatistics",
    "RescaleAction",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
    "TimeAwareObservation",
    "TimeLimit",
}
"""Of Gymnasium's: they open no file and no window, and import nothing."""


class Wrapping(NamedTuple):
    """A wrapper as it was named."""

    module: str
    name: str
    arguments: dict[str, Any]

    @property
    def harmless(self) -> bool:
        return self.module == GYMNASIUM and self.name in HARMLESS


def read_wrapper(text: str) -> Wrapping:
    """What a name means; values of arguments are plain Python: numbers, texts, lists, True, None."""
    module, colon, call = text.partition(":")
    try:
        if not module or not colon:
            raise ValueError
        node = ast.parse(call.strip(), mode="eval").body
        made = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if made.args or not isinstance(made.func, ast.Name) or any(word.arg is None for word in made.keywords):
            raise ValueError
        arguments = {str(word.arg): ast.literal_eval(word.value) for word in made.keywords}
        return Wrapping(module, made.func.id, arguments)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise SunriseError(
            f"wrapper is {text!r}, but must be like pkg.mod:Wrapper or pkg.mod:Wrapper(name=value)."
        ) from None


def wrap(env: gym.Env[Any, Any], wrappers: Sequence[str]) -> gym.Env[Any, Any]:
    """An environment inside wrappers, the first of them innermost."""
    for text in wrappers:
        module, name, arguments = read_wrapper(text)
        found = import_named(module, f"the wrapper {name!r}")
        if not callable(made := getattr(found, name, None)):
            raise SunriseError(f"there is no wrapper {name!r} in {module}.{near(name, vars(found), count=1)}")
        try:
            env = made(env, **arguments)
        except Exception as error:
            raise SunriseError(f"the wrapper {text} cannot be put around {env}: {error}") from error
        if not isinstance(env, gym.Env):
            raise SunriseError(f"the wrapper {text} makes {env!r}, which is no environment.")
    return env


def trusted_wrappers(wrappers: Sequence[str], trust: bool) -> tuple[str, ...]:
    """The wrappers of a run's environment; one that runs code of somebody's is refused unless the user says it may."""
    for text in wrappers:
        if not trust and not (wrapping := read_wrapper(text)).harmless:
            raise SunriseError(
                f"this run's environment is wrapped by {text}: that imports the module {wrapping.module!r}, which runs "
                "its code. If you trust it, say so with --trust-env (in Python: give `env`, wrapped already)."
            )
    return tuple(wrappers)
