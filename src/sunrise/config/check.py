"""Which settings make sense: their kinds, their rules, and what goes together."""

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from sunrise.config.fields import Declared, declared
from sunrise.config.groups import Config
from sunrise.config.rules import Between
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError, near

L = TypeVar("L")
FINITE = Between()
"""What holds for every number."""


def check(config: Config[L]) -> Config[L]:
    """`config` itself if every setting makes sense; otherwise an error that names the one that does not."""
    settings, known = flatten_config(config), dict(declared_in(config))
    for name, (kind, _) in known.items():
        check_kind(name, settings[name], kind)
    for name, (_, rules) in known.items():
        for rule in (*rules, FINITE):
            if not rule.allows(settings[name]):
                raise SunriseError(f"{name} is {settings[name]}, but must be {rule}.")
    if settings.get("v_min", -1) >= settings.get("v_max", 1):
        raise SunriseError(f"v_min is {settings['v_min']}, but must be below v_max, which is {settings['v_max']}.")
    if config.training.train_freq_unit == "episode" and config.run.num_envs > 1:
        raise SunriseError(f"train_freq counts episodes, but num_envs is {config.run.num_envs}: use one environment.")
    training, rows = config.training, config.training.buffer_size // config.run.num_envs
    if rows <= training.n_step:
        raise SunriseError(
            f"buffer_size is {training.buffer_size}, but must be more than {training.n_step * config.run.num_envs}: "
            "an environment's share of it holds no window of n_step transitions and what follows."
        )
    return config


def declared_in(group: Any) -> Iterator[tuple[str, Declared]]:
    """The kind and the rules of every setting of a group, and of the groups inside it, by its name."""
    for name, entry in declared(type(group)).items():  # type: ignore[arg-type]
        value = getattr(group, name)
        if dataclasses.is_dataclass(value):
            yield from declared_in(value)
        else:
            yield name, entry


def check_kind(name: str, value: Any, kind: Any) -> None:
    """Refuse a value of the wrong kind, or a choice that there is not."""
    if fits(value, kind):
        return
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        known = ", ".join(map(str, choices))
        raise SunriseError(f"{name} is {value!r}, but must be one of {known}.{near(str(value), choices, count=1)}")
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        raise SunriseError(f"{name} is {value!r}, but must be {' or '.join(map(in_words, typing.get_args(kind)))}.")
    raise SunriseError(f"{name} is {value!r}, but must be of type {getattr(kind, '__name__', kind)}.")


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; a truth value is no number."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(entry, parts[0]) for entry in value)
    if kind is float:
        return type(value) in (int, float)
    return kind not in (int, str, bool, types.NoneType) or type(value) is kind


def in_words(kind: Any) -> str:
    """One of several kinds, as a sentence names it."""
    if typing.get_origin(kind) is Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    words = {float: "a number", int: "a whole number", str: "a word", types.NoneType: "nothing"}
    return words.get(kind, str(kind))
