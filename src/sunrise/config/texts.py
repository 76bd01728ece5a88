"""The text under each field of the settings: the help of a flag and of a keyword are the same sentence."""

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple


class Field(NamedTuple):
    """One setting as users see it."""

    name: str
    kind: Any
    default: Any
    text: str


def texts(group: type[Any]) -> dict[str, str]:
    """The text under each field of a dataclass, given as its type."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(group))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = text.value.value if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) else ""
            found[field.target.id] = " ".join(str(said).split())
    return found


def fields(group: Any) -> Iterator[Field]:
    """Every setting of a group and of the groups inside it."""
    kinds, said = typing.get_type_hints(type(group)), texts(type(group))
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if dataclasses.is_dataclass(value):
            yield from fields(value)
        else:
            yield Field(field.name, kinds[field.name], value, said.get(field.name, ""))


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
