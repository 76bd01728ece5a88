"""Augmentations of pictures: pure functions, image to image.

An offset is drawn for each row and is the same for the frames of its stack. An ensemble's members all see one view.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, UInt8

from sunrise.errors import SunriseError
from sunrise.networks.observations import Seen
from sunrise.types import Batch, Observation

Pictures = UInt8[Array, "B S H W C"]
"""B rows of S stacked frames, the newest last."""
Changed = UInt8[Array, "B S h w C"]
"""The same of another size."""


class PictureShape(NamedTuple):
    """The shape of one observation as the learners see it."""

    stack: int
    height: int
    width: int
    colours: int


class Sight(NamedTuple):
    """What observations in parts look like: their pictures, and how many numbers and options stand beside them."""

    pictures: tuple[PictureShape, ...]
    beside: int


class Augmentation(NamedTuple):
    """How pictures are changed before they are learned from, and how before they are acted on."""

    train: Callable[[PRNGKeyArray, Any], Any]
    """Pictures, alone or with what stands beside them, which is not changed."""
    act: Callable[[Any], Any]
    """Without randomness: for acting, evaluation and uncertainty."""
    shape: PictureShape | Sight
    """What comes out of either."""
    alike: bool = False
    """A next observation is changed as its observation was, and not by an offset of its own."""


# -- cutting and placing -----------------------------------------------------------------------------------------------


def cut(pictures: Pictures, corner: Int[Array, "B 2"], height: int, width: int) -> Changed:
    """A rectangle of each row, from its corner (top, left)."""
    _, stack, _, _, colours = pictures.shape
    size = (stack, height, width, colours)
    return jax.vmap(lambda row, c: jax.lax.dynamic_slice(row, (0, c[0], c[1], 0), size))(pictures, corner)


def corners(key: PRNGKeyArray, rows: int, down: int, right: int) -> Int[Array, "B 2"]:
    """Uniform offsets in 0 ... down and 0 ... right."""
    return jax.random.randint(key, (rows, 2), 0, jnp.array([down + 1, right + 1]))


def random_crop(key: PRNGKeyArray, pictures: Pictures, size: int) -> Changed:
    """A square cut out at random (RAD, CURL)."""
    rows, _, height, width, _ = pictures.shape
    return cut(pictures, corners(key, rows, height - size, width - size), size, size)


def centre_crop(pictures: Pictures, size: int) -> Changed:
    """The square in the middle."""
    top, left = ((side - size) // 2 for side in pictures.shape[2:4])
    return pictures[:, :, top : top + size, left : left + size]


def random_translate(key: PRNGKeyArray, pictures: Pictures, size: int) -> Changed:
    """The whole picture, placed at random in a larger black one (RAD)."""
    rows, stack, height, width, colours = pictures.shape
    black = jnp.zeros((stack, size, size, colours), pictures.dtype)
    corner = corners(key, rows, size - height, size - width)
    return jax.vmap(lambda row, c: jax.lax.dynamic_update_slice(black, row, (0, c[0], c[1], 0)))(pictures, corner)


def centre_translate(pictures: Pictures, size: int) -> Changed:
    """The whole picture in the middle of a larger black one."""
    before = [(size - side) // 2 for side in pictures.shape[2:4]]
    after = [size - side - b for side, b in zip(pictures.shape[2:4], before, strict=True)]
    return jnp.pad(pictures, ((0, 0), (0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0)))


def random_shift(key: PRNGKeyArray, pictures: Pictures, pad: int) -> Pictures:
    """The picture moved by up to `pad` pixels; its edge is repeated where there is nothing (DrQ)."""
    rows, _, height, width, _ = pictures.shape
    wider = jnp.pad(pictures, ((0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0)), mode="edge")
    return cut(wider, corners(key, rows, 2 * pad, 2 * pad), height, width)


# -- augmentations -----------------------------------------------------------------------------------------------------


def crop(shape: PictureShape, size: int, random: bool = True) -> Augmentation:
    """Random crops of `size`, or without `random` the centre always."""
    if size > min(shape.height, shape.width):
        raise SunriseError(
            f"crop_size is {size}, but the pictures are {shape.height} x {shape.width}: lower crop_size, or render "
            "larger pictures (render_size)."
        )

    def centre(pictures: Pictures) -> Changed:
        return centre_crop(pictures, size)

    return Augmentation(
        (lambda key, pictures: random_crop(key, pictures, size)) if random else (lambda _, pictures: centre(pictures)),
        centre,
        shape._replace(height=size, width=size),
    )


def translate(shape: PictureShape, size: int) -> Augmentation:
    """Random places in a black picture of `size`, one for an observation and the next.

    RAD's own code does so, and evaluates in the middle. It draws pictures of `size` and places their centre, and lets
    its training episodes see them uncut, where its paper and ours draw a smaller picture and always act in the middle.
    """
    if size < max(shape.height, shape.width):
        raise SunriseError(
            f"translate_size is {size}, but the pictures are {shape.height} x {shape.width}, which must fit into it."
        )
    return Augmentation(
        lambda key, pictures: random_translate(key, pictures, size),
        lambda pictures: centre_translate(pictures, size),
        shape._replace(height=size, width=size),
        alike=True,
    )


def shift(shape: PictureShape, pad: int) -> Augmentation:
    """Random shifts of up to `pad` pixels."""
    return Augmentation(lambda key, pictures: random_shift(key, pictures, pad), lambda pictures: pictures, shape)


def each(shape: PictureShape | Sight, make: Callable[[PictureShape], Augmentation]) -> Augmentation:
    """An augmentation of pictures, or of every picture of observations in parts, each by offsets of its own."""
    if isinstance(shape, PictureShape):
        return make(shape)
    own = [make(picture) for picture in shape.pictures]

    def train(key: PRNGKeyArray, seen: Seen) -> Seen:
        keys = [jax.random.fold_in(key, place) for place in range(len(own))]
        return seen.with_pictures([a.train(k, p) for a, k, p in zip(own, keys, seen.pictures, strict=True)])

    def act(seen: Seen) -> Seen:
        return seen.with_pictures([a.act(picture) for a, picture in zip(own, seen.pictures, strict=True)])

    return Augmentation(train, act, Sight(tuple(a.shape for a in own), shape.beside), own[0].alike)  # type: ignore[misc]


def views(
    augmentation: Augmentation, shape: PictureShape | Sight, counts: tuple[int, int]
) -> Callable[[Batch, PRNGKeyArray], Batch]:
    """A learner's `augment`: M views of the observations and of the next ones, on a new axis in front."""

    def look(obs: Observation, key: PRNGKeyArray, count: int) -> Array | Seen:
        pictures = as_stacks(obs, shape)
        seen = [augmentation.train(jax.random.fold_in(key, view), pictures) for view in range(count)]
        together: Array | Seen = jax.tree.map(lambda *views: jnp.stack(views), *seen)
        return together

    def augment(batch: Batch, key: PRNGKeyArray) -> Batch:
        k_obs, k_next = jax.random.split(key)
        k_next = k_obs if augmentation.alike else k_next
        return batch._replace(obs=look(batch.obs, k_obs, counts[0]), next_obs=look(batch.next_obs, k_next, counts[1]))

    return augment


# -- observations ------------------------------------------------------------------------------------------------------


def as_stacks(obs: Observation, shape: PictureShape | Sight) -> Pictures | Seen:
    """Observations of any layout we take as rows of stacked frames; those in parts have been taken apart already."""
    return obs if isinstance(obs, Seen) else jnp.asarray(obs).reshape(-1, *shape)


def is_picture(space: gym.Space[object]) -> bool:
    """Whether elements of a space are pictures, of any layout we take."""
    return isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) in {3, 4}


def is_stack(space: gym.Space[object]) -> bool:
    """Whether observations are stacked frames [stack, H, W] or [stack, H, W, C], and not one picture [H, W, C].

    Of three axes the shorter end is the one that is no side of the picture.
    """
    if not is_picture(space):
        return False
    assert space.shape is not None
    return len(space.shape) == 4 or space.shape[2] >= space.shape[0]


def picture_shape(space: gym.Space[object], algorithm: str) -> PictureShape:
    """The shape of the pictures of a space; one without pictures is refused."""
    if not isinstance(space, gym.spaces.Box) or not is_picture(space):
        raise SunriseError(
            f"{algorithm} learns from pictures, a Box of uint8 [stack, H, W, C], [H, W, C] or [C, H, W], "
            f"but this environment's observations are {space}; for states use sac."
        )
    if len(space.shape) == 4:
        return PictureShape(*space.shape)
    if is_stack(space):  # colours first are as good as frames of one colour
        stack, height, width = space.shape
        return PictureShape(stack, height, width, 1)
    height, width, colours = space.shape
    return PictureShape(1, height, width, colours)
