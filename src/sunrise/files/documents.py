"""JSON documents: one way to read them, whoever wrote them, and a checksum for those that nothing else vouches for."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

SMALL, LARGE = 2**20, 64 * 2**20
"""Bytes of a document that a person may read, and of one that grows with a run."""
DEEPEST = 32
DIGITS = 80
"""A generator's state has 39."""
SEALED, SEAL = "sealed", "sha256"
Seal = Literal["whole", "broken", "none"]


def decode(content: bytes | str, constants: bool = False) -> Any:
    """What a document says; ValueError where it is not one.

    Repeated names, numbers beyond all use, deep nesting, and (without `constants`) NaN and infinities are refused.
    """
    try:
        found = json.loads(
            content,
            object_pairs_hook=_pairs,
            parse_int=_whole,
            parse_float=_finite_number,
            parse_constant=None if constants else _refuse,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [found]
    for _ in range(DEEPEST):
        level = [
            part
            for entry in level
            if isinstance(entry, dict | list)
            for part in (entry.values() if isinstance(entry, dict) else entry)
            if isinstance(part, dict | list)
        ]
    if level:
        raise ValueError("it is nested too deeply")
    return found


def decode_mapping(content: bytes | str, constants: bool = False) -> dict[str, Any]:
    """The same of a document that must be an object."""
    found = decode(content, constants)
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError("a number is too long")
    return int(text)


def _finite_number(text: str) -> float:
    if len(text) > DIGITS or not math.isfinite(number := float(text)):
        raise ValueError("a number is too large")
    return number


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def finite(content: Any) -> Any:
    """The same with null for every number that is not finite."""
    if isinstance(content, Mapping):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def to_json(content: Any) -> str:
    """JSON that a person can read; a number that is not finite becomes null."""
    return json.dumps(finite(content), indent=2) + "\n"


def sealed(content: Mapping[str, Any]) -> bytes:
    """A document that carries its own checksum, so that a flipped bit is noticed.

    It says at its other end that it has one: no damage in one place takes both away.
    """
    return to_json({SEALED: True, **content, SEAL: _sum(content)}).encode()


def unsealed(document: Mapping[str, Any]) -> tuple[dict[str, Any], Seal]:
    """The content of a document, and whether it is what was written; `none` where it was written without a checksum."""
    content = {name: value for name, value in document.items() if name not in (SEALED, SEAL)}
    if len(content) == len(document):
        return content, "none"
    return content, "whole" if document.get(SEALED) is True and document.get(SEAL) == _sum(content) else "broken"


def _sum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(finite(content), sort_keys=True).encode()).hexdigest()


def count_numbers(text: dict[str, Any]) -> int:
    """How many numbers an element of a described space has."""
    if text["kind"] == "dict":
        return sum(count_numbers(part) for part in text["spaces"].values())
    if text["kind"] == "discrete":
        if not all(type(text[name]) is int and abs(text[name]) < 2**31 for name in ("n", "start")):
            raise ValueError("a set of actions that cannot be counted")
        return max(1, int(text["n"]))
    kinds = ("box", "multidiscrete", "multibinary")
    if text["kind"] not in kinds or not all(type(side) is int and side >= 0 for side in text["shape"]):
        raise ValueError(f"its kind is {text['kind']!r}, its shape {text.get('shape')}")
    if text["kind"] == "multidiscrete":
        if not all(type(n) is int and abs(n) < 2**31 for name in ("nvec", "start") for n in text[name]):
            raise ValueError("choices that cannot be counted")
        return sum(text["nvec"])
    return math.prod(text["shape"])
