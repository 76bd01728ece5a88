"""Settings by their names, whatever group they are in."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from sunrise.config.fields import declared
from sunrise.config.groups import Config
from sunrise.errors import SunriseError, near

L = TypeVar("L")


def flatten_config(config: Any) -> dict[str, Any]:
    """Every setting by its own name, whatever group it is in."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        flat |= flatten_config(value) if dataclasses.is_dataclass(value) else {field.name: value}
    return flat


def with_settings(config: Config[L], changes: Mapping[str, Any]) -> Config[L]:
    """`config` with settings changed by name; a misspelt one is refused with the nearest right one."""
    known = flatten_config(config)
    for name in changes:
        if name not in known:
            raise SunriseError(unknown_setting(name, known))
    changed: Config[L] = replace_deeply(config, {name: plain(value) for name, value in changes.items()})
    return changed


def unknown_setting(name: str, known: Mapping[str, Any], where: str = "") -> str:
    """What to say of a name that is no setting; `where` it stands comes first."""
    return f"{where}there is no setting {name!r}.{near(name, known, count=1, alike=0.7)}"


def replace_deeply(group: Any, changes: Mapping[str, Any]) -> Any:
    """A group of settings, and the groups inside it, with fields changed by name."""
    own, kinds = {}, declared(type(group))  # type: ignore[arg-type]
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if dataclasses.is_dataclass(value):
            own[field.name] = replace_deeply(value, changes)
        elif field.name in changes:
            own[field.name] = of_kind(changes[field.name], kinds[field.name].kind)
    return dataclasses.replace(group, **own)


def of_kind(value: Any, kind: Any) -> Any:
    """A number as its setting counts: 1e6 is a whole number, and 1 is as good as 1.0."""
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return float(value) if kind is float and type(value) is int else value


def plain(value: Any) -> Any:
    """A value as settings keep it: tuples for lists, Python's numbers for NumPy's, `(4, "step")` as 4."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return value[0] if len(value) == 2 and value[1] == "step" else tuple(value)
    return value
