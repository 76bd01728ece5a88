"""The paper's three functions, against numbers worked out by hand or in NumPy."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunrise.config.ensemble import EnsembleSettings, resolve_weighting
from sunrise.ensemble import bootstrap_mask, confidence_weight, pool, ucb_scores


def test_the_weight_of_votes_1_and_3_at_temperature_2_is_worked_out_by_hand() -> None:
    # mean 2, population std 1: sigmoid(-2) + 0.5
    weight = confidence_weight(jnp.asarray([[1.0], [3.0]]), 2.0)
    assert weight[0] == pytest.approx(1 / (1 + math.exp(2)) + 0.5, abs=1e-7)


def test_the_ucb_score_of_votes_1_and_3_with_lambda_10_is_12() -> None:
    assert ucb_scores(jnp.asarray([[1.0], [3.0]]), 10.0)[0] == pytest.approx(2 + 10 * 1)


def test_weights_and_scores_agree_with_numpy() -> None:
    votes = np.random.default_rng(0).normal(size=(10, 4, 32)).astype(np.float32)
    std = np.sqrt(((votes - votes.mean(0)) ** 2).mean(0))
    np.testing.assert_allclose(confidence_weight(jnp.asarray(votes), 20.0), 1 / (1 + np.exp(20 * std)) + 0.5, atol=1e-6)
    np.testing.assert_allclose(ucb_scores(jnp.asarray(votes), 5.0), votes.mean(0) + 5 * std, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=12),
    st.floats(0, 1000, width=32),
)
def test_the_weight_lies_between_a_half_and_one(votes: list[float], temperature: float) -> None:
    weight = float(confidence_weight(jnp.asarray(votes)[:, None], temperature)[0])
    assert 0.5 <= weight <= 1.0


def test_the_weight_reaches_its_floor_in_single_precision() -> None:
    assert float(confidence_weight(jnp.asarray([[-1e3], [1e3]]), 50.0)[0]) == 0.5


def test_temperature_zero_or_agreement_gives_exactly_one() -> None:
    votes = jnp.asarray(np.random.default_rng(1).normal(size=(6, 5)))
    assert np.array_equal(confidence_weight(votes, 0.0), np.ones(5))
    assert np.array_equal(confidence_weight(jnp.ones((6, 5)), 20.0), np.ones(5))


def test_pooling_makes_every_critic_of_every_member_a_voter() -> None:
    votes = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(np.float32)
    expected = [votes[i, k] for i in range(2) for k in range(3)]
    assert np.array_equal(pool(jnp.asarray(votes)), np.stack(expected))


def test_masks_are_bernoulli_and_no_row_is_empty() -> None:
    mask = bootstrap_mask(np.random.default_rng(2), 200_000, 5, 0.3)
    assert mask.any(axis=1).all()
    forced = 0.7**5 / 5  # an empty row gives each member a fifth of a chance
    np.testing.assert_allclose(mask.mean(axis=0), 0.3 + forced, atol=0.005)
    pairs = (mask[:, 0] & mask[:, 1]).mean()
    assert pairs == pytest.approx(0.09, abs=0.005)  # members are masked independently of each other


def test_probability_one_masks_nothing_and_a_tiny_one_leaves_one_member_a_row() -> None:
    assert bootstrap_mask(np.random.default_rng(3), 100, 4, 1.0).all()
    lonely = bootstrap_mask(np.random.default_rng(3), 1000, 4, 1e-12)
    assert (lonely.sum(axis=1) == 1).all()
    np.testing.assert_allclose(lonely.mean(axis=0), 0.25, atol=0.05)


def test_auto_weighting_is_confidence_for_an_ensemble_and_none_for_one_agent() -> None:
    assert resolve_weighting(EnsembleSettings(ensemble_size=1)) == "none"
    assert resolve_weighting(EnsembleSettings(ensemble_size=2)) == "confidence"
    assert resolve_weighting(EnsembleSettings(ensemble_size=1, weighting="confidence")) == "confidence"


def test_the_functions_compile_and_take_their_numbers_as_arguments() -> None:
    compiled = jax.jit(confidence_weight)
    for temperature in (1.0, 2.0, 3.0):
        compiled(jnp.ones((4, 2)), temperature)
    assert compiled._cache_size() == 1  # type: ignore[attr-defined]
