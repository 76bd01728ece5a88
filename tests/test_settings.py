"""Settings: each has a text, a bound where it is a number, and is known to `help` and to type checkers."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import sunrise
from sunrise.agents import AGENTS
from sunrise.algorithms import ALGORITHMS
from sunrise.config.texts import fields
from sunrise.config.typed import NAMES, module
from sunrise.validation import BOUNDS

FREE = {"v_min", "v_max"}
"""Numbers that may be anything."""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_has_a_text_and_every_number_its_bounds(name: str) -> None:
    for field in fields(ALGORITHMS[name].defaults):
        assert len(field.text) > 10, field.name
        assert field.text.endswith((".", ")")), field.name
        if field.kind in (int, float):
            assert field.name in BOUNDS or field.name in FREE, field.name


@pytest.mark.parametrize("name", ALGORITHMS)
def test_help_lists_every_parameter_with_its_type_its_default_and_its_meaning(name: str) -> None:
    text = inspect.getdoc(AGENTS[name]) or ""
    flat = " ".join(text.split())
    for field in fields(ALGORITHMS[name].defaults):
        assert f" {field.name}: " in text
        assert f"= {field.default!r} " in flat
        assert field.text in flat
    for argument in ("policy", "env", "preset", "policy_kwargs", "tensorboard_log", "verbose", "eval_env", "device"):
        assert f"    {argument}: " in text


def test_the_keywords_as_types_are_those_of_the_settings() -> None:
    """`make keywords` writes them."""
    stub = Path(inspect.getfile(AGENTS["sac"])).with_suffix(".pyi")
    assert stub.read_text() == module()
    assert {name: cls.__name__ for name, cls in AGENTS.items()} == NAMES


def test_the_arguments_in_the_types_are_those_of_the_class() -> None:
    own: Any = inspect.signature(sunrise.Agent.__init__).parameters
    stub = Path(inspect.getfile(AGENTS["sac"])).with_suffix(".pyi").read_text()
    for name, parameter in own.items():
        if parameter.kind == parameter.KEYWORD_ONLY:
            assert f"        {name}: " in stub
