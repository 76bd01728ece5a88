"""What Rainbow can do with pictures beside its own loss: DrQ's random shifts, and CURL's contrast.

DrQ (Kostrikov et al., 2020) learns from observations that are moved at random. CURL (Laskin et al., 2020) also learns
to tell which two views are of one observation: an online anchor is to find, among the rows of a batch, the positive
that a slow copy of the network made of another view.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from sunrise.networks.augmentation import Pictures, PictureShape, corners, cut, random_shift
from sunrise.networks.layers import Linear, standardised
from sunrise.networks.observations import Seen
from sunrise.types import Batch, Observation

STRIDE, DEPTH = 5, 2
"""Rainbow's kernels are as wide as their stride; of their layers there are so many where pictures are large enough."""
UNSEEN = 0.2
"""A picture is widened by black where its network would not see more than this part of a side."""
CODE = 128
"""Numbers in the code of a view."""
SHARPNESS = 0.1
"""What similarities are multiplied by before their softmax."""
MOMENTUM = 0.999
"""How much of the slow copy stays at each update."""


def depth_for(height: int, width: int) -> int:
    """Layers of convolutions for pictures of a size: two, or one where two would leave nothing."""
    return DEPTH if min(height, width) >= STRIDE**DEPTH else 1


def fitted(side: int, tile: int) -> int:
    """A side as the network takes it: whole tiles, or so that a little of it is cut off."""
    unseen = side % tile
    return side - unseen + tile if side < tile or unseen > UNSEEN * side else side


def channels_shape(shape: PictureShape) -> PictureShape:
    """What `as_channels` makes of pictures: frames and colours on one axis, and sides that fit the network."""
    tile = STRIDE ** depth_for(shape.height, shape.width)
    return PictureShape(shape.stack * shape.colours, fitted(shape.height, tile), fitted(shape.width, tile), 1)


def as_channels(picture: Shaped[Array, "B *picture"], shape: PictureShape) -> Shaped[Array, "B C H W"]:
    """Pictures of any layout as Rainbow's network takes them, in the middle of black where they are widened."""
    wanted = channels_shape(shape)
    frames = jnp.moveaxis(picture.reshape(-1, *shape), -1, 2).reshape(-1, wanted.stack, shape.height, shape.width)
    more = wanted.height - shape.height, wanted.width - shape.width
    return jnp.pad(frames, ((0, 0), (0, 0), *((side // 2, side - side // 2) for side in more)))


class Coder(eqx.Module):
    """Two layers on top of the convolutions, each normalised."""

    hidden: Linear
    code: Linear

    def __call__(self, features: Float[Array, "B features"]) -> Float[Array, "B code"]:
        return standardised(self.code(jax.nn.relu(standardised(self.hidden(features)))))


class Contrast(eqx.Module):
    """A coder and the bilinear similarity of two codes."""

    coder: Coder
    similarity: Float[Array, "code code"]

    def loss(self, anchor: Float[Array, "B code"], positive: Float[Array, "B code"]) -> Float[Array, ""]:
        """Codes[B] of two views -> InfoNCE: each anchor must find its own positive among all (CURL, equation 4)."""
        logits = SHARPNESS * (anchor @ self.similarity @ positive.T)
        return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(logits, axis=1)))


def new_contrast(key: PRNGKeyArray, features: int, width: int) -> Contrast:
    """key, features, hidden width -> fresh weights, uniform in [0, 1) as in CURL's code."""
    k_hidden, k_code, k_similarity = jax.random.split(key, 3)
    hidden = Linear(jax.random.uniform(k_hidden, (features, width)), jnp.zeros(width))
    code = Linear(jax.random.uniform(k_code, (width, CODE)), jnp.zeros(CODE))
    return Contrast(Coder(hidden, code), jax.random.uniform(k_similarity, (CODE, CODE)))


def moved_crop(key: PRNGKeyArray, pictures: Pictures, pad: int) -> Pictures:
    """A crop smaller by `pad`, its edge repeated, and of that a crop of the first size: CURL's views of Atari."""
    k_crop, k_place = jax.random.split(key)
    rows, _, height, width, _ = pictures.shape
    small = cut(pictures, corners(k_crop, rows, pad, pad), height - pad, width - pad)
    wider = jnp.pad(small, ((0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0)), mode="edge")
    return cut(wider, corners(k_place, rows, pad, pad), height, width)


def changed(move: Callable[..., Pictures], obs: Observation, key: PRNGKeyArray, pad: int) -> Observation:
    """obs[B, C, H, W], key -> the same, with all frames of a row changed alike; of one in parts, each picture."""
    if isinstance(obs, Seen):
        keys = [jax.random.fold_in(key, place) for place in range(len(obs.pictures))]
        return obs.with_pictures([changed(move, p, k, pad) for p, k in zip(obs.pictures, keys, strict=True)])
    frames = jnp.asarray(obs)
    return move(key, frames[..., None], pad)[..., 0]


def picture_augmentation(shifted: bool, contrastive: bool, pad: int) -> Callable[[Batch, PRNGKeyArray], Batch]:
    """A learner's `augment`: shifted observations, and with them two views for the contrast, [3, B, C, H, W]."""

    def augment(batch: Batch, key: PRNGKeyArray) -> Batch:
        k_obs, k_next, k_anchor, k_positive = jax.random.split(key, 4)
        obs, next_obs = batch.obs, batch.next_obs
        if shifted:
            obs, next_obs = changed(random_shift, obs, k_obs, pad), changed(random_shift, next_obs, k_next, pad)
        if contrastive:
            seen = [changed(moved_crop, batch.obs, k, pad) for k in (k_anchor, k_positive)]
            obs = jax.tree.map(lambda *views: jnp.stack(views), jax.tree.map(jnp.asarray, obs), *seen)
        return batch._replace(obs=obs, next_obs=next_obs)

    return augment
