"""A weighting scheme that is not in the package: `examples/own_weighting.py`, against numbers worked out by hand."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise import SAC, SunriseError
from sunrise.cli import main
from sunrise.config import ensemble as settings_module
from sunrise.ensemble import Evidence, Scheme, register_weighting, weights
from sunrise.types import Batch
from tests.runs.test_resume import SMALL
from tests.support import runs
from tests.support.example import example

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def forgotten_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered here is known to no other test."""
    names = list(settings_module.KNOWN_WEIGHTINGS)
    monkeypatch.setattr(weights, "SCHEMES", dict(weights.SCHEMES))
    for module in (weights, settings_module):
        monkeypatch.setattr(module, "KNOWN_WEIGHTINGS", names)


def test_a_scheme_from_outside_the_package_weighs_by_hand_computed_numbers_and_remembers() -> None:
    example("own_weighting")
    scheme = weights.SCHEMES["cautious"]

    def weigh(spread: list[float], memory: Any) -> tuple[np.ndarray, Any]:
        nothing: Any = ()
        evidence = Evidence(jnp.asarray([spread]), jnp.zeros((2, 1, len(spread))), Batch(*[nothing] * 5), 20.0)
        weight, memory = scheme.weigh(evidence, memory, KEY)
        return np.asarray(weight)[0], memory

    weight, memory = weigh([1.0, 1.0, 1.0, 5.0], scheme.init())  # usual is 2, more than 3 is too much
    assert weight.tolist() == [1, 1, 1, 0.5]
    weight, memory = weigh([3.0, 6.0, 9.0, 22.0], memory)  # usual is (0.99 · 2 + 10) / 1.99 = 6.02, the limit 9.03
    assert float(memory.value) == pytest.approx((0.99 * 2 + 10) / 1.99, rel=1e-5)
    assert weight.tolist() == [1, 1, 1, 0.5]


def test_a_run_with_it_keeps_the_name_goes_on_exactly_and_is_refused_where_nobody_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example("own_weighting")
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder, timesteps in ((whole, 100), (part, 60)):
        model = SAC("MlpPolicy", "Pendulum-v1", **SMALL | {"weighting": "cautious"}, run_dir=str(folder))
        model.learn(timesteps, progress_bar=False, log_interval=None)
    assert json.loads((whole / "config.json").read_text())["settings"]["weighting"] == "cautious"
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert min(row.get("train/weight_mean", 1) for row in rows) < 1

    with monkeypatch.context() as elsewhere:
        for module in (weights, settings_module):
            elsewhere.setattr(module, "KNOWN_WEIGHTINGS", list(settings_module.WEIGHTINGS))
        with pytest.raises(SystemExit, match="2"):
            main(["evaluate", str(part)])
        said = capsys.readouterr().err
        assert "weighting is 'cautious'" in said
        assert "sunrise.ensemble.register_weighting" in said

    SAC.resume(part).learn(40, reset_num_timesteps=False, progress_bar=False, log_interval=None)
    runs.assert_same(whole, part)


def test_a_name_of_ours_cannot_be_taken_and_a_misspelt_one_is_refused_with_the_nearest() -> None:
    with pytest.raises(SunriseError, match="'relative' is a weighting of our own"):
        register_weighting("relative", Scheme(lambda evidence, memory, key: (evidence.spread, memory)))
    with pytest.raises(SunriseError, match=r"weighting is 'relativ'.*Did you mean relative\?"):
        SAC("MlpPolicy", "Pendulum-v1", weighting="relativ")
