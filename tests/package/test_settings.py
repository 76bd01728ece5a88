"""Settings: each has a text, a bound where it is a number, and is known to `help` and to type checkers."""

import inspect
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sunrise
from sunrise.agents import AGENTS
from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.fields import fields
from sunrise.config.rules import Between, Count, Not, Rule, Sizes
from sunrise.config.typed import NAMES, module


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_has_a_text_and_every_number_its_rule(name: str) -> None:
    found = list(fields(ALGORITHMS[name].defaults))
    assert [field.name for field in found if not field.is_complete] == []
    assert len({field.name for field in found}) == len(found)  # one name is one setting


@dataclass
class Unfinished:
    """What a hurried author writes."""

    complete: Count = 1
    """How many there are."""
    without_rule: int = 1
    """How many there are."""
    in_a_union: float | None = None
    """A number, or nothing."""
    without_text: Count = 1
    a_word: str = ""
    """Any word whatever."""


def test_a_setting_without_a_rule_or_a_text_is_noticed() -> None:
    incomplete = [field.name for field in fields(Unfinished()) if not field.is_complete]
    assert incomplete == ["without_rule", "in_a_union", "without_text"]


def test_rules_say_what_must_be() -> None:
    said = {str(rule): (rule.allows(wrong), rule.allows(right)) for rule, wrong, right in WITH_EXAMPLES}
    assert said == {str(rule): (False, True) for rule, _, _ in WITH_EXAMPLES}
    assert Between(0).allows("auto")
    assert Between(0).allows(None)


WITH_EXAMPLES: list[tuple[Rule, Any, Any]] = [
    (Between(0, 1), 1.01, 1),
    (Between(1), 0, 10**9),
    (Between(), math.nan, -1e300),
    (Not(0, "above 0"), 0, 0.1),
    (Sizes("layers"), (), (3,)),
    (Sizes("layers"), (3, 0), (3, 1)),
    (Sizes("a width and a depth", exactly=2), (3,), (3, 1)),
]


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


def test_the_classes_say_what_the_list_of_algorithms_says() -> None:
    assert {name: (cls.__doc__ or "").partition("\n")[0] for name, cls in AGENTS.items()} == {
        name: algorithm.text for name, algorithm in ALGORITHMS.items()
    }


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
