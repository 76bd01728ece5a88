"""Settings as users see them: name, kind, rules, value and text, all read from where the setting is written."""

import ast
import dataclasses
import functools
import inspect
import textwrap
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from sunrise.config.rules import Rule


class Declared(NamedTuple):
    """What stands beside the name of a field."""

    kind: Any
    """Its type."""
    rules: tuple[Rule, ...]
    """What holds for its value besides."""


class Field(NamedTuple):
    """One setting as users see it."""

    name: str
    kind: Any
    rules: tuple[Rule, ...]
    default: Any
    text: str

    @property
    def is_complete(self) -> bool:
        """Whether it has a text and, where it can hold a number, a rule."""
        return len(self.text) > 10 and self.text.endswith((".", ")")) and (bool(self.rules) or not numeric(self.kind))


@functools.cache
def declared(group: type[Any]) -> dict[str, Declared]:
    """The kind and the rules of each field of a dataclass, given as its type."""
    found = {}
    for name, kind in typing.get_type_hints(group, include_extras=True).items():
        rules: tuple[Any, ...] = ()
        if typing.get_origin(kind) is Annotated:
            kind, *rest = typing.get_args(kind)  # noqa: PLW2901
            rules = tuple(rule for rule in rest if hasattr(rule, "allows"))
        found[name] = Declared(kind, rules)
    return found


@functools.cache
def texts(group: type[Any]) -> dict[str, str]:
    """The text under each field of a dataclass, given as its type; none where its source is not known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(group))).body[0]
    except (OSError, TypeError):
        return {}
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = text.value.value if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) else ""
            found[field.target.id] = " ".join(str(said).split())
    return found


def fields(group: Any) -> Iterator[Field]:
    """Every setting of a group and of the groups inside it."""
    kinds, said = declared(type(group)), texts(type(group))  # type: ignore[arg-type]
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if dataclasses.is_dataclass(value):
            yield from fields(value)
        else:
            yield Field(field.name, *kinds[field.name], value, said.get(field.name, ""))


def numeric(kind: Any) -> bool:
    """Whether a value of this kind can be a number, or hold one."""
    return kind in (int, float) or any(numeric(part) for part in typing.get_args(kind))


def written(kind: Any) -> str:
    """A type as it is written in code."""
    if typing.get_origin(kind) is Literal:
        return f"Literal[{', '.join(_quoted(choice) for choice in typing.get_args(kind))}]"
    if typing.get_origin(kind) is not None and typing.get_origin(kind) is not tuple:
        return " | ".join(written(part) for part in typing.get_args(kind))
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)


def _quoted(choice: Any) -> str:
    return f'"{choice}"' if isinstance(choice, str) else str(choice)


def parameters(config: Any) -> str:
    """Every setting with its type, its default and its meaning, for `help`."""
    lines = ["Settings, each a keyword:"]
    for field in fields(config):
        lines.append(f"    {field.name}: {written(field.kind).replace('NoneType', 'None')} = {field.default!r}")
        lines += textwrap.wrap(field.text, 108, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines)
