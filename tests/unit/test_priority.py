"""Rows are drawn in proportion to their priorities, by a tree that is a function of its leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunrise.errors import SunriseError
from sunrise.replay.priority import SumTree
from tests.support.sequence_oracle import fill, filled, stacks

priorities = st.lists(st.integers(0, 4), min_size=1, max_size=40).filter(any)


@settings(deadline=None)
@given(priorities)
def test_the_tree_finds_what_a_running_sum_finds(priority: list[int]) -> None:
    tree = SumTree(len(priority))
    tree.set(np.arange(len(priority)), np.array(priority, float))
    upto = np.cumsum(priority)
    assert tree.total == upto[-1]
    mass = np.arange(0, upto[-1], 0.5)
    np.testing.assert_array_equal(tree.find(mass), np.searchsorted(upto, mass, side="right"))


scales = st.sampled_from([0.0, 1e-300, 1e-16, 1e-8, 0.1, 1 / 3, 1.0, 1e8])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 29), scales), min_size=1, max_size=60), st.integers(0, 2**31))
def test_a_tree_is_a_function_of_its_leaves(changes: list[tuple[int, float]], seed: int) -> None:
    tree, rebuilt, at_once = SumTree(30), SumTree(30), SumTree(30)
    leaves, highest = np.zeros(30), 1.0
    for row, priority in changes:
        tree.set(np.array([row]), priority)
        leaves[row], highest = priority, max(highest, priority)
    rebuilt.nodes[rebuilt.leaves :][:30] = leaves
    rebuilt.rebuild()
    rows, given_priorities = (np.array(column) for column in zip(*changes, strict=True))
    at_once.set(rows, given_priorities)  # of a row named twice, the last counts
    for other in (rebuilt, at_once):
        np.testing.assert_array_equal(tree.nodes, other.nodes)
    assert tree.highest == at_once.highest == highest
    np.testing.assert_array_equal(tree[np.arange(30)], leaves)
    if tree.total > 0:
        edges = np.cumsum(leaves)
        mass = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf), [0, 2 * tree.total]])
        assert leaves[tree.find(mass)].all(), "a row without priority was found"
        assert leaves[tree.draw(100, np.random.default_rng(seed))].all()


def test_rows_without_priority_are_never_drawn_again() -> None:
    replay = filled()
    _, index = replay.sample(500, 0)
    rows = np.unique(index)
    replay.reprioritise(rows, np.where(rows % 3 == 0, 0.0, 1.0))
    assert set(np.unique(replay.sample(2000, 0)[1])) == set(rows[rows % 3 != 0])
    replay.reprioritise(rows, np.zeros(len(rows)))
    with pytest.raises(SunriseError, match="learning_starts"):
        replay.sample(1, 0)


def test_priorities_and_importance_are_those_of_the_formula() -> None:
    replay = filled(importance_from=100, importance_until=300)
    rows = np.unique(replay.sample(500, 0)[1])
    error = np.random.default_rng(1).normal(size=len(rows)) * 3
    replay.reprioritise(rows, error)
    probability = np.abs(error) ** 0.5 / (np.abs(error) ** 0.5).sum()
    of_row = dict(zip(rows.tolist(), probability.tolist(), strict=True))
    for timesteps, beta in ((0, 0.4), (100, 0.4), (200, 0.7), (300, 1.0), (9000, 1.0)):
        sample, index = replay.sample(64, timesteps)
        weight = (len(rows) * np.array([of_row[i] for i in index.tolist()])) ** -beta
        np.testing.assert_allclose(sample.importance, weight / weight.max(), rtol=1e-5)
    count = np.bincount(replay.sample(1000, 0)[1], minlength=60)[rows]
    assert np.abs(count - 1000 * probability).max() < 2, "stratified: each row comes as often as it should"


def test_new_rows_get_the_highest_priority_so_far() -> None:
    replay = filled()
    rows = np.unique(replay.sample(500, 0)[1])
    assert replay.tree is not None
    assert set(replay.tree[rows]) == {1.0}
    replay.reprioritise(rows, np.full(len(rows), 0.01))
    replay.reprioritise(rows[:1], np.array([49.0]))
    rng = np.random.default_rng(8)
    fill(replay, [stacks(rng, (3, 2, 2)) for _ in range(2)], 9, rng)
    assert set(np.round(replay.tree[np.unique(replay.sample(500, 0)[1])], 6)) == {0.1, 7.0}


def test_errors_that_are_not_finite_leave_priorities_as_they_were() -> None:
    replay = filled()
    assert replay.tree is not None
    rows = np.unique(replay.sample(500, 0)[1])[:3]
    replay.reprioritise(rows, np.array([np.nan, np.inf, 4.0]))
    assert replay.tree[rows].tolist() == [1.0, 1.0, 2.0]
