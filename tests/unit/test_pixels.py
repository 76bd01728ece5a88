"""Augmentations: offsets are uniform, one for a stack, and what is cut or placed is exactly that."""

from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.errors import SunriseError
from sunrise.networks import augmentation as pixels
from sunrise.networks.augmentation import (
    PictureShape,
    centre_crop,
    centre_translate,
    random_crop,
    random_shift,
    random_translate,
)
from sunrise.types import Batch

KEY = jax.random.key(3)
ROWS, STACK, HEIGHT, WIDTH, COLOURS = 400, 2, 6, 7, 3


@pytest.fixture(scope="module")
def pictures() -> Any:
    """Every pixel of a row is different, and rows are not alike."""
    rng = np.random.default_rng(0)
    return rng.integers(1, 256, (ROWS, STACK, HEIGHT, WIDTH, COLOURS), dtype=np.uint8)


def offsets(found: np.ndarray, whole: np.ndarray) -> list[tuple[int, int]]:
    """Where each found row lies in its whole row, all frames and colours at once; it must lie somewhere, once."""
    height, width = found.shape[2:4]
    places = []
    for small, large in zip(found, whole, strict=True):
        fits = [
            (top, left)
            for top in range(large.shape[1] - height + 1)
            for left in range(large.shape[2] - width + 1)
            if np.array_equal(small, large[:, top : top + height, left : left + width])
        ]
        assert len(fits) == 1
        places.append(fits[0])
    return places


def assert_uniform(places: list[tuple[int, int]], down: int, right: int) -> None:
    """Each offset about as often as any other: five standard deviations of a count."""
    counts = np.zeros((down + 1, right + 1))
    for place in places:
        counts[place] += 1
    expected = len(places) / counts.size
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_crops_are_uniform_and_the_same_for_the_frames_of_a_stack(pictures: np.ndarray) -> None:
    assert_uniform(offsets(np.asarray(random_crop(KEY, jnp.asarray(pictures), 5)), pictures), 1, 2)


def test_translations_are_uniform_and_keep_the_whole_picture_on_black(pictures: np.ndarray) -> None:
    placed = np.asarray(random_translate(KEY, jnp.asarray(pictures), 8))
    assert placed.shape == (ROWS, STACK, 8, 8, COLOURS)
    assert_uniform(offsets(pictures, placed), 2, 1)
    assert (placed.astype(int).sum((1, 2, 3, 4)) == pictures.astype(int).sum((1, 2, 3, 4))).all()


def test_shifts_are_uniform_and_repeat_the_edge(pictures: np.ndarray) -> None:
    wider = np.stack([np.pad(row, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge") for row in pictures])
    assert_uniform(offsets(np.asarray(random_shift(KEY, jnp.asarray(pictures), 1)), wider), 2, 2)


def test_acting_sees_the_centre(pictures: np.ndarray) -> None:
    np.testing.assert_array_equal(centre_crop(jnp.asarray(pictures), 3), pictures[:, :, 1:4, 2:5])
    placed = np.asarray(centre_translate(jnp.asarray(pictures), 11))
    np.testing.assert_array_equal(placed[:, :, 2:8, 2:9], pictures)
    assert placed[:, :, :2].max() == placed[:, :, 8:].max() == placed[:, :, :, :2].max() == 0
    unmoved = pixels.crop(PictureShape(STACK, HEIGHT, WIDTH, COLOURS), 3, random=False)
    np.testing.assert_array_equal(unmoved.train(KEY, jnp.asarray(pictures)), pictures[:, :, 1:4, 2:5])


def test_views_are_independent_of_each_other_and_for_obs_and_next_obs(pictures: np.ndarray) -> None:
    shape = PictureShape(STACK, HEIGHT, WIDTH, COLOURS)
    zeros = np.zeros(ROWS, np.float32)
    batch = Batch(pictures, zeros[:, None], zeros, zeros, pictures)
    seen = pixels.views(pixels.crop(shape, 5), shape, (2, 1))(batch, KEY)
    assert seen.obs.shape == (2, ROWS, STACK, 5, 5, COLOURS)
    places = [offsets(np.asarray(view), pictures) for view in (*seen.obs, *seen.next_obs)]
    for one in range(3):
        for other in range(one):
            equal = np.mean([a == b for a, b in zip(places[one], places[other], strict=True)])
            assert equal == pytest.approx(1 / 6, abs=0.1)  # six offsets
    np.testing.assert_array_equal(seen.reward, batch.reward)


def test_a_translated_observation_and_the_next_one_lie_at_the_same_place(pictures: np.ndarray) -> None:
    """As in RAD's own code, which hands the offsets of the one to the other; crops have offsets of their own."""
    zeros = np.zeros(ROWS, np.float32)
    following = np.roll(pictures, 1, axis=0)
    shape = PictureShape(STACK, HEIGHT, WIDTH, COLOURS)
    batch = Batch(pictures, zeros[:, None], zeros, zeros, following)
    seen = pixels.views(pixels.translate(shape, 9), shape, (1, 1))(batch, KEY)
    places = offsets(pictures, np.asarray(seen.obs[0]))
    assert_uniform(places, 3, 2)
    for (top, left), picture, placed in zip(places, following, np.asarray(seen.next_obs[0]), strict=True):
        black = np.zeros((STACK, 9, 9, COLOURS), np.uint8)
        black[:, top : top + HEIGHT, left : left + WIDTH] = picture
        np.testing.assert_array_equal(placed, black)


def box(*shape: int, dtype: Any = np.uint8) -> gym.spaces.Box:
    return gym.spaces.Box(0, 255, shape, dtype)


def test_layouts_are_told_apart() -> None:
    assert pixels.picture_shape(box(3, 20, 30, 3), "RAD") == (3, 20, 30, 3)
    assert pixels.picture_shape(box(20, 30, 3), "RAD") == (1, 20, 30, 3)
    assert pixels.picture_shape(box(3, 20, 30), "RAD") == (3, 20, 30, 1)
    assert [pixels.is_stack(box(*s)) for s in ((3, 20, 30, 3), (4, 84, 84), (20, 30, 3))] == [True, True, False]
    assert not pixels.is_stack(box(3, 20, 30, dtype=np.float32))


def test_what_is_no_picture_or_too_small_is_refused() -> None:
    for wrong in (box(17, dtype=np.float32), box(3, 20, 20, dtype=np.float32), box(20, 20), gym.spaces.Discrete(3)):
        with pytest.raises(SunriseError, match="RAD learns from pictures, a Box of uint8"):
            pixels.picture_shape(wrong, "RAD")
    shape = PictureShape(3, 64, 64, 3)
    with pytest.raises(SunriseError, match="crop_size is 84, but the pictures are 64 x 64"):
        pixels.crop(shape, 84)
    with pytest.raises(SunriseError, match="translate_size is 60, but the pictures are 64 x 64"):
        pixels.translate(shape, 60)
