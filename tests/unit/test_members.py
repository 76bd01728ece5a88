"""An ensemble of any model: lines fitted by gradient descent, which have neither critics nor actions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.ensemble.members import Change, accept, member_keys, new_ensemble, not_finite

KEY, MEMBERS, POINTS, RATE, JITTER = jax.random.key(5), 3, 12, 0.1, 0.01


def new_line(key: Any) -> dict[str, Any]:
    """One model: a slope and an intercept."""
    slope, intercept = jax.random.normal(key, (2,))
    return {"slope": slope, "intercept": intercept}


def learn_line(line: dict[str, Any], x: Any, y: Any, mask: Any, key: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A step on the masked squared error of one line, with inputs that are moved a little at random."""
    seen = x + JITTER * jax.random.normal(key, x.shape)
    value, gradient = jax.value_and_grad(
        lambda line: jnp.sum(mask * (line["slope"] * seen + line["intercept"] - y) ** 2) / mask.size
    )(line)
    return jax.tree.map(lambda p, g: p - RATE * g, line, gradient), {"loss": value}


@jax.jit
def update(ensemble: Any, tally: Any, x: Any, y: Any, mask: Any) -> Any:
    """One compiled call for all members; `memory` counts what they have seen together."""
    keys = member_keys(KEY, ensemble.step, mask.shape[0])
    new, metrics = jax.vmap(learn_line, (0, None, None, 0, 0))(ensemble.members, x, y, mask, keys)
    change = Change(new, metrics | {"rows": mask.any(axis=0).sum() * 1.0}, ensemble.memory + mask.sum())
    return accept(ensemble, tally, change)


def start(members: int = MEMBERS) -> Any:
    return new_ensemble(new_line, KEY, members, ("loss", "rows"), memory=jnp.zeros(()))


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, POINTS).astype(np.float32)
    return x, 2 * x - 1, (rng.random((MEMBERS, POINTS)) < 0.6).astype(np.float32)


def key_of(step: int, i: int) -> Any:
    return jax.random.fold_in(jax.random.fold_in(KEY, step), i)


def test_members_of_any_model_learn_as_a_plain_loop_over_them_does(points: Any) -> None:
    x, y, mask = points
    ensemble, tally = start()
    for _ in range(5):
        ensemble, tally, finite = update(ensemble, tally, *points)
        assert bool(finite)
    losses = np.zeros(5)
    for i in range(MEMBERS):
        slope, intercept = (float(v) for v in jax.random.normal(key_of(0, i), (2,)))
        for step in range(5):
            seen = x + JITTER * np.asarray(jax.random.normal(key_of(step, i), x.shape))
            error = slope * seen + intercept - y
            losses[step] += (mask[i] * error**2).sum() / POINTS / MEMBERS
            slope -= RATE * (2 * mask[i] * error * seen).sum() / POINTS
            intercept -= RATE * (2 * mask[i] * error).sum() / POINTS
        assert float(ensemble.members["slope"][i]) == pytest.approx(slope, abs=1e-5)
        assert float(ensemble.members["intercept"][i]) == pytest.approx(intercept, abs=1e-5)
    assert (int(ensemble.step), int(tally.updates)) == (5, 5)
    assert float(tally.sums["loss"]) == pytest.approx(losses.sum(), rel=1e-4)
    assert float(tally.sums["rows"]) == 5 * mask.any(axis=0).sum()
    assert float(ensemble.memory) == 5 * mask.sum()
    assert update._cache_size() == 1  # type: ignore[attr-defined]


def test_member_i_begins_the_same_whatever_the_size_of_the_ensemble() -> None:
    two, five = start(2)[0].members, start(5)[0].members
    assert np.array_equal(two["slope"], five["slope"][:2])
    assert len(np.unique(five["slope"])) == 5


def test_an_update_that_is_not_finite_leaves_members_sums_and_memory_as_they_were_and_is_named(points: Any) -> None:
    x, y, mask = points
    before = update(*start(), *points)[:2]
    spoilt = np.array(mask)
    spoilt[1, 3] = np.nan
    *after, finite = update(*before, x, y, spoilt)
    assert not bool(finite)
    jax.tree.map(np.testing.assert_array_equal, tuple(after), before)
    *_, finite = update(*after, *points)
    assert bool(finite)

    keys = member_keys(KEY, before[0].step, MEMBERS)
    refused = Change(*jax.vmap(learn_line, (0, None, None, 0, 0))(before[0].members, x, y, spoilt, keys))
    assert not_finite(refused, ("loss",)) == ["loss of member 1", "intercept of member 1", "slope of member 1"]
