"""Weighting schemes: properties that hold for every batch, against NumPy and numbers worked out by hand."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Array, PRNGKeyArray

from sunrise.config.ensemble import WEIGHTINGS, EnsembleSettings, Weighting, resolve_temperature
from sunrise.ensemble import EnsembleNumbers, Numbers, build
from sunrise.ensemble.weights import RATE, SCHEMES, Evidence, RunningMean, effective_batch, new_running_mean
from sunrise.types import Backup, Batch, Info, Learner, Sample

KEY = jax.random.key(11)
ROWS, VOTERS = 32, 6

SCALE_FREE: tuple[Weighting, ...] = ("relative", "signal", "inverse_variance")
LOOKING: tuple[Weighting, ...] = ("confidence", *SCALE_FREE)
NO_VOTES, NO_BATCH = jnp.zeros((VOTERS, 1, ROWS)), Batch((), (), (), (), ())
COMPILED = {name: jax.jit(scheme.weigh) for name, scheme in SCHEMES.items()}
BOUNDS = {"confidence": (0.5, 1), "relative": (0.5, 1), "signal": (0, 1), "inverse_variance": (0, math.sqrt(2 * ROWS))}

votes_of_batches = st.lists(
    st.lists(st.floats(-100, 100, width=32), min_size=VOTERS, max_size=VOTERS), min_size=ROWS, max_size=ROWS
).map(lambda rows: np.asarray(rows, np.float64).T)
thorough = settings(max_examples=40, deadline=None)


def weigh(name: Weighting, s: Any, error: float = 1.0, memory: Any = None) -> np.ndarray:
    """The weights of rows that disagree by s, after updates whose TD errors were all `error`."""
    scheme = SCHEMES[name]
    if memory is None:
        memory = scheme.learned(scheme.init(), jnp.full((1, 1, 4), error))
    temperature = resolve_temperature(EnsembleSettings(weighting=name))
    evidence = Evidence(jnp.asarray(s)[None], NO_VOTES, NO_BATCH, temperature)
    return np.asarray(COMPILED[name](evidence, memory, KEY)[0][0])


@pytest.mark.parametrize("name", SCALE_FREE)
@thorough
@given(votes=votes_of_batches, exponent=st.floats(-3, 3), shift=st.floats(-1000, 1000))
def test_scaling_and_shifting_all_values_changes_no_weight(
    name: Weighting, votes: np.ndarray, exponent: float, shift: float
) -> None:
    c = 10**exponent
    s, moved = votes.std(axis=0), (c * votes + shift).std(axis=0)
    if s.max() < 1e-3:  # shifted by a thousand, so little is rounding
        return
    np.testing.assert_allclose(weigh(name, moved, error=c), weigh(name, s), rtol=2e-3, atol=2e-3)


def test_the_papers_weight_does_depend_on_the_scale() -> None:
    s = np.linspace(0.01, 0.1, ROWS)
    assert np.ptp(weigh("confidence", s)) > 0.3
    assert np.ptp(weigh("confidence", 100 * s)) < 1e-6


@pytest.mark.parametrize("name", LOOKING)
@thorough
@given(votes=votes_of_batches)
def test_more_disagreement_never_means_more_weight_and_weights_are_bounded(name: Weighting, votes: np.ndarray) -> None:
    s = np.sort(votes.std(axis=0))
    weight = weigh(name, s)
    low, high = BOUNDS[name]
    assert (np.diff(weight) <= 1e-6).all()
    assert (weight >= low).all()
    assert (weight <= high + 1e-4).all()


@pytest.mark.parametrize("name", LOOKING)
def test_where_nobody_disagrees_the_weight_is_exactly_one(name: Weighting) -> None:
    for memory in (None, SCHEMES[name].init()):
        assert np.array_equal(weigh(name, np.zeros(ROWS), memory=memory), np.ones(ROWS))


def test_the_relative_weight_on_pendulums_spread_by_hand() -> None:
    """At half and at twice the mean disagreement: sigmoid(-1/2) + 0.5 and sigmoid(-2) + 0.5, whatever the mean is."""
    s = 12.0 * np.array([0.5, 2.0, 0.5, 1.0])  # mean 12
    expected = [1 / (1 + math.exp(x)) + 0.5 for x in (0.5, 2.0, 0.5, 1.0)]
    np.testing.assert_allclose(weigh("relative", s), expected, atol=1e-6)
    assert expected[0] == pytest.approx(0.878, abs=1e-3)
    assert weigh("confidence", s).max() < 0.5001


def test_the_signal_weight_by_hand() -> None:
    np.testing.assert_allclose(weigh("signal", np.array([0.0, 1.0, 2.0]), error=2.0), [1, 4 / 5, 4 / 8], atol=1e-6)
    assert np.array_equal(weigh("signal", np.ones(3), memory=new_running_mean()), np.ones(3))  # no error is known yet


def test_the_inverse_variance_weight_agrees_with_a_search_in_numpy() -> None:
    rng = np.random.default_rng(0)
    for spread in (0.1, 1.0, 3.0):
        s = np.exp(rng.normal(0, spread, ROWS))
        smallest = None
        for xi in np.logspace(-8, 8, 20_001) * (s**2).mean():
            w = 1 / (s**2 + xi)
            if w.sum() ** 2 / (w**2).sum() >= ROWS / 2:
                smallest = ROWS * w / w.sum()
                break
        assert smallest is not None
        np.testing.assert_allclose(weigh("inverse_variance", s), smallest, rtol=5e-3)
        assert effective_batch(jnp.asarray(weigh("inverse_variance", s))[None])[0] >= ROWS / 2 - 0.1


def test_a_running_mean_is_right_from_the_first_number_and_forgets_slowly() -> None:
    numbers = np.random.default_rng(1).normal(5, 1, 300)
    mean = new_running_mean()
    assert float(mean.value) == 0
    for i, x in enumerate(numbers):
        mean = mean.updated(jnp.asarray(x))
        past = (1 - RATE) ** np.arange(i, -1, -1)
        assert float(mean.value) == pytest.approx((past * numbers[: i + 1]).sum() / past.sum(), rel=1e-4)
    assert isinstance(mean, RunningMean)


# -- inside an ensemble ------------------------------------------------------------------------------------------------


def opinion(numbers: Any) -> Learner:
    """Not an agent, only an opinion: two critics that value what follows at (1 ± 0.1) times a number of their own."""

    def votes(state: Array, batch: Batch) -> Array:
        values: Array = state * jnp.asarray([0.9, 1.1])[:, None] * batch.next_obs[:, 0]
        return values

    def learn(
        state: Array, batch: Batch, mask: Array, backup: Backup, weight: Array, step: Array, key: PRNGKeyArray
    ) -> tuple[Array, Info]:
        error = jnp.abs(backup.target)[None]
        return state, Info(error, {"loss": jnp.sum(weight * batch.reward)})

    return Learner(
        init=lambda key: jax.random.uniform(key, minval=1.0, maxval=2.0),
        propose=lambda state, obs, key: obs,
        judge=lambda state, obs, action, key: jnp.zeros((2, obs.shape[0])),
        bellman=lambda state, batch, mask, key: Backup(batch.reward, batch.obs, votes(state, batch)),
        judge_next=lambda state, batch, action, key: votes(state, batch),
        learn=learn,
        metrics=("loss",),
    )


class Opinions:
    """An ensemble of opinions and the rows it looks at."""

    def __init__(self, members: int = 3, **changes: Any) -> None:
        outer = EnsembleSettings(members, **changes)
        self.functions = build(opinion, outer)
        self.numbers = Numbers(EnsembleNumbers(resolve_temperature(outer), 1.0, 0.99), ())
        self.ensemble, self.tally = self.functions.init(jax.random.key(3), self.numbers)
        self.own = np.asarray(self.ensemble.members)

    def update(self, batch: Batch, importance: float = 1.0) -> dict[str, float]:
        """What one update logs."""
        mask, weights = np.ones((ROWS, len(self.own)), bool), np.full(ROWS, importance, np.float32)
        before = jax.device_get(self.tally)
        self.ensemble, self.tally, report = self.functions.update(
            self.ensemble, self.tally, Sample(batch, mask, weights), KEY, self.numbers
        )
        self.finite = bool(report.finite)
        return {name: float(total - before.sums[name]) for name, total in self.tally.sums.items()}

    def s(self, batch: Batch) -> np.ndarray:
        """The disagreement by NumPy."""
        values = np.outer(self.own, [0.9, 1.1]).ravel()[:, None] * batch.next_obs[:, 0]
        return np.asarray(values.std(axis=0))


def rows(seed: int = 0, terminal: int = 0) -> Batch:
    """Rows of growing disagreement, the first ones terminal."""
    rng = np.random.default_rng(seed)
    next_obs = np.sort(rng.uniform(0.1, 1, (ROWS, 1)), axis=0).astype(np.float32)
    discount = np.where(np.arange(ROWS) < terminal, 0, 0.99).astype(np.float32)
    return Batch(next_obs, next_obs, rng.normal(1, 1, ROWS).astype(np.float32), discount, next_obs)


@pytest.mark.parametrize("weight_votes", ["own", "shared"])
@pytest.mark.parametrize("name", LOOKING)
def test_an_ensemble_uses_the_disagreement_of_all_its_critics(name: Weighting, weight_votes: str) -> None:
    model, batch = Opinions(weighting=name, weight_votes=weight_votes), rows()
    logged = model.update(batch)
    assert logged["disagreement_mean"] == pytest.approx(model.s(batch).mean(), rel=1e-5)
    expected = weigh(name, model.s(batch), memory=SCHEMES[name].init())
    assert logged["weight_mean"] == pytest.approx(expected.mean(), rel=1e-5)
    assert logged["loss"] == pytest.approx((expected * batch.reward).sum(), rel=1e-4)
    assert logged["effective_batch"] == pytest.approx(expected.sum() ** 2 / (expected**2).sum(), rel=1e-5)


@pytest.mark.parametrize("weight_votes", ["own", "shared"])
@pytest.mark.parametrize("name", SCALE_FREE)
def test_all_terminal_batches_have_the_weight_one(name: Weighting, weight_votes: str) -> None:
    model = Opinions(weighting=name, weight_votes=weight_votes)
    for _ in range(2):
        logged = model.update(rows(terminal=ROWS))
        assert (logged["weight_p05"], logged["weight_mean"], logged["weight_p95"]) == (1, 1, 1)
        assert logged["disagreement_mean"] > 0


@pytest.mark.parametrize("name", LOOKING)
def test_an_agent_alone_disagrees_with_nobody(name: Weighting) -> None:
    model = Opinions(1, weighting=name)
    for _ in range(2):
        logged = model.update(rows())
        assert (logged["weight_p05"], logged["weight_mean"], logged["weight_p95"]) == (1, 1, 1)


def test_where_an_episode_terminated_no_scale_free_weight_is_lowered_and_the_papers_is_unless_asked_not_to() -> None:
    batch = rows(terminal=ROWS // 2)
    same, one = (Opinions(terminal_weight=choice).update(batch) for choice in ("same", "one"))
    assert same["weight_p95"] < 0.9
    assert one["weight_p95"] == 1
    assert one["weight_p05"] == same["weight_p05"]
    assert Opinions(weighting="relative").update(batch)["weight_p95"] == 1


def test_the_normaliser_divides_by_the_batchs_mean() -> None:
    plain, mean = (Opinions(weight_normaliser=choice).update(rows()) for choice in ("none", "mean"))
    assert mean["weight_mean"] == pytest.approx(1, abs=1e-6)
    assert mean["weight_p05"] == pytest.approx(plain["weight_p05"] / plain["weight_mean"], rel=1e-5)
    assert mean["effective_batch"] == pytest.approx(plain["effective_batch"], rel=1e-5)
    assert Opinions(weighting="constant").update(rows())["weight_p05"] == 0.5
    assert Opinions(weighting="constant", weight_normaliser="mean").update(rows())["weight_p05"] == 1


def test_importance_multiplies_after_the_weight() -> None:
    once, twice = (Opinions(weighting="inverse_variance").update(rows(), importance) for importance in (1.0, 2.0))
    assert twice["loss"] == pytest.approx(2 * once["loss"], rel=1e-5)
    assert twice["weight_mean"] == once["weight_mean"]


def test_the_signal_follows_the_td_errors_of_the_updates_before() -> None:
    model, batches = Opinions(weighting="signal"), [rows(seed) for seed in range(3)]
    assert model.update(batches[0])["weight_p05"] == 1  # no error is known yet
    d = (batches[0].reward ** 2).mean()
    second = d / (d + model.s(batches[1]) ** 2)
    assert model.update(batches[1])["weight_mean"] == pytest.approx(second.mean(), rel=1e-5)
    d = ((1 - RATE) * d + (batches[1].reward ** 2).mean()) / (2 - RATE)
    third = d / (d + model.s(batches[2]) ** 2)
    assert model.update(batches[2])["weight_mean"] == pytest.approx(third.mean(), rel=1e-5)


@pytest.mark.parametrize("name", ["relative", "signal"])
def test_what_a_scheme_remembers_is_refused_with_the_update(name: str) -> None:
    model = Opinions(weighting=name)
    model.update(rows())
    before = jax.device_get(model.ensemble.memory)
    reward = rows().reward.copy()
    reward[0] = np.nan
    model.update(rows(1)._replace(reward=reward))
    assert not model.finite
    assert jax.device_get(model.ensemble.memory) == before
    model.update(rows(1))
    assert jax.device_get(model.ensemble.memory) != before


def test_every_weighting_has_a_scheme_and_auto_a_temperature() -> None:
    assert set(SCHEMES) == set(WEIGHTINGS)
    assert resolve_temperature(EnsembleSettings()) == 20
    assert resolve_temperature(EnsembleSettings(), pixels=True) == 10
    assert resolve_temperature(EnsembleSettings(weighting="relative"), pixels=True) == 1
    assert resolve_temperature(EnsembleSettings(weighting="relative", weight_temperature=3.0)) == 3
