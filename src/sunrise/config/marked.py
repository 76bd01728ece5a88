"""A YAML file as plain values that know their line: words, numbers and truth values, and nothing is constructed."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from sunrise.errors import SunriseError
from sunrise.files.documents import DIGITS
from sunrise.files.folder import open_file

LARGEST, DEEPEST = 2**18, 8
"""Bytes of a file, and levels of nesting in it."""
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
NUMBER = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
"""YAML 1.1 takes `1e6` and `3e-4` for words; here they are numbers, as on the command line."""
WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False, "null": None, "~": None}


class Marked(NamedTuple):
    """A value and the line it stands on; lists and mappings hold marked values, and a mapping's keys are words."""

    value: Any
    line: int


class FileError(SunriseError):
    """Something wrong in a file, at a line."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}, line {line}: {problem}")


def read_yaml(path: Path) -> Marked:
    """What a file says. Anchors, tags, repeated keys, several documents and deep nesting are refused by line."""
    try:
        with open_file(path, LARGEST) as file:
            text = file.read(LARGEST).decode()
    except UnicodeDecodeError:
        raise SunriseError(f"{path} is not a text in UTF-8.") from None
    try:
        _require_plain(path, text)
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FileError(path, mark.line + 1 if mark else 1, f"{error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise SunriseError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    if node is None:
        raise SunriseError(f"{path} is empty.")
    return _marked(path, node)


def _require_plain(path: Path, text: str) -> None:
    """Look at the file before anything is built of it."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise FileError(path, line, "it is nested too deeply.")
        if getattr(event, "anchor", None):
            raise FileError(path, line, "anchors and aliases (& and *) are not taken: write it out.")
        if getattr(event, "tag", None):
            raise FileError(path, line, f"the tag {event.tag} is not taken: only words, numbers and truth values are.")


def _marked(path: Path, node: yaml.Node, line: int | None = None) -> Marked:
    line = node.start_mark.line + 1 if line is None else line
    if isinstance(node, yaml.SequenceNode):
        return Marked([_marked(path, part) for part in node.value], line)
    if isinstance(node, yaml.MappingNode):
        entries: dict[str, Marked] = {}
        for key, value in node.value:
            at = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                raise FileError(path, at, "a key must be a word.")
            if key.value in entries:
                raise FileError(path, at, f"{key.value!r} is there twice, first on line {entries[key.value].line}.")
            entries[key.value] = _marked(path, value, at)
        return Marked(entries, line)
    return Marked(_scalar(node.value) if getattr(node, "style", None) is None else node.value, line)


def _scalar(text: str) -> Any:
    """A word without quotation marks: a number or a truth value if it looks like one."""
    if text == "" or text.lower() in WORDS:
        return WORDS.get(text.lower())
    if len(text) > DIGITS:
        return text
    if WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    return float(text.replace("_", "")) if NUMBER.fullmatch(text) else text
