"""The uniform replay buffer, against a plain list."""

import gymnasium as gym
import numpy as np
import pytest

from sunrise.errors import SunriseError
from sunrise.replay import memory
from sunrise.replay.uniform import UniformReplay
from sunrise.types import Batch, Collected

BOX = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)


def rows(first: int, count: int) -> Collected:
    """Rows that carry their own number in every field."""
    number = np.arange(first, first + count, dtype=np.float32)
    pair = np.stack([number, number], axis=1)
    batch = Batch(pair, number[:, None], number, number / 1000, pair + 1)
    return Collected(batch, np.arange(count), np.zeros(count, bool), [])


def masks(first: int, count: int) -> np.ndarray:
    return np.stack([(np.arange(first, first + count) >> bit) % 2 for bit in range(3)], axis=1).astype(bool)


def buffer(capacity: int) -> UniformReplay:
    return UniformReplay(capacity, BOX, (1,), np.dtype(np.float32), 3, np.random.default_rng(0))


def test_the_ring_keeps_the_newest_rows_with_their_masks() -> None:
    oracle: list[int] = []
    replay, first = buffer(7), 0
    for count in (3, 2, 4, 1, 5, 3):  # wraps around within an addition
        replay.add(rows(first, count), masks(first, count))
        oracle += range(first, first + count)
        first += count
        kept = oracle[-7:]
        assert len(replay) == len(kept)
        sample, _ = replay.sample(2000, 0)
        assert set(sample.batch.reward.astype(int)) == set(kept)
        number = sample.batch.reward
        np.testing.assert_array_equal(sample.batch.obs[:, 1], number)
        np.testing.assert_array_equal(sample.batch.next_obs[:, 0], number + 1)
        np.testing.assert_array_equal(sample.batch.action[:, 0], number)
        np.testing.assert_array_equal(sample.batch.discount, number / 1000)
        for bit in range(3):
            np.testing.assert_array_equal(sample.mask[:, bit], (number.astype(int) >> bit) % 2)


def test_rows_are_drawn_uniformly() -> None:
    replay = buffer(10)
    replay.add(rows(0, 10), masks(0, 10))
    drawn = replay.sample(50_000, 0)[0].batch.reward.astype(int)
    np.testing.assert_allclose(np.bincount(drawn) / 50_000, 0.1, atol=0.01)


def test_a_sample_is_never_written_again() -> None:
    """JAX may still read an array after the call it was handed to has returned."""
    replay = buffer(4)
    replay.add(rows(0, 4), masks(0, 4))
    sample, _ = replay.sample(16, 0)
    before = sample.batch.reward.copy()
    replay.add(rows(100, 4), masks(100, 4))
    np.testing.assert_array_equal(sample.batch.reward, before)
    for array in (sample.batch.obs, sample.batch.action, sample.mask):
        assert array.base is None


def test_the_stated_memory_is_what_the_arrays_take() -> None:
    replay = buffer(1000)
    arrays = (*replay.batch, replay.mask)
    assert replay.nbytes == sum(array.nbytes for array in arrays)


def test_a_buffer_that_cannot_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1_000_000)
    with pytest.raises(SunriseError, match=r"needs 0\.06 GB of memory, but 0\.00 GB is available: lower buffer_size"):
        buffer(2_000_000)


def test_the_memory_of_this_machine_is_known() -> None:
    assert 1e8 < memory.available() < 1e14
