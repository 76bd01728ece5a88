"""The networks of an agent that sees pictures: convolutions that actor and critics share, and what stands on them.

The convolutions belong to the critic and only its loss trains them; the actor looks through them.
"""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, UInt8

from sunrise.config.learners import CRITICS, PixelSettings
from sunrise.networks.augmentation import PictureShape, Sight
from sunrise.networks.encoder import (
    Convolutions,
    Eyes,
    Projection,
    as_input,
    convolutions,
    feature_count,
    kernel_rows,
    orthogonal_matrices,
    projection,
    unbiased_mlp,
)
from sunrise.networks.layers import MLP
from sunrise.networks.observations import Seen, on_pictures
from sunrise.types import Observation


class Encoder(eqx.Module):
    """What the critic sees with: its convolutions, which the actor uses too, and its own projection."""

    convolutions: Convolutions | Eyes
    projection: Projection


class Critic(eqx.Module):
    """An encoder and the critics on top of it, which have K on axis 0."""

    encoder: Encoder
    heads: MLP


class Actor(eqx.Module):
    """The policy on top of the critic's convolutions."""

    projection: Projection
    policy: MLP


def together(seen: UInt8[Array, "M B S H W C"] | Seen) -> Observation:
    """[M, B, ...] -> [R, ...]: views one below the other, R = M · B rows, as the convolutions take them."""
    return on_pictures(as_input, jax.tree.map(lambda views: views.reshape(-1, *views.shape[2:]), seen))


def pictures_of(shape: PictureShape | Sight) -> tuple[PictureShape, ...]:
    """The shapes of the pictures of an observation."""
    return shape.pictures if isinstance(shape, Sight) else (shape,)


def features_of(shape: PictureShape | Sight, settings: PixelSettings) -> int:
    """How many numbers the convolutions give; pictures that are too small for them are refused."""
    return sum(feature_count(picture, settings.filters, settings.conv_layers) for picture in pictures_of(shape))


def new_networks(
    key: PRNGKeyArray, shape: PictureShape | Sight, action_dim: int, settings: PixelSettings
) -> tuple[Critic, Actor]:
    """key, what is seen, A, settings -> a fresh critic and actor; every layer is orthogonal, every bias 0."""
    features, latent, arch = features_of(shape, settings), settings.feature_dim, settings.net_arch
    known = latent + (shape.beside if isinstance(shape, Sight) else 0)
    channels = [(p.stack * p.colours, *[settings.filters] * settings.conv_layers) for p in pictures_of(shape)]
    head, policy = (known + action_dim, *arch, 1), (known, *arch, 2 * action_dim)
    kernels = [(kernel_rows(i, settings.kernel_init), o) for sizes in channels for i, o in pairwise(sizes)]
    layers = [*kernels, *[(features, latent)] * 2, *[*pairwise(head)] * CRITICS, *pairwise(policy)]
    matrices = iter(orthogonal_matrices(key, layers))

    def take(sizes: Sequence[int]) -> list[Array]:
        return [next(matrices) for _ in pairwise(sizes)]

    eyes = [convolutions(take(sizes), settings.kernel_init) for sizes in channels]
    convolved = Eyes(tuple(eyes)) if isinstance(shape, Sight) else eyes[0]
    of_critic, of_actor = (projection(next(matrices)) for _ in range(2))
    heads = [unbiased_mlp(take(head)) for _ in range(CRITICS)]
    critic = Critic(Encoder(convolved, of_critic), jax.tree.map(lambda *k: jnp.stack(k), *heads))
    return critic, Actor(of_actor, unbiased_mlp(take(policy)))
