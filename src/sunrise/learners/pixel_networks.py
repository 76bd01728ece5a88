"""The networks of an agent that sees pictures: convolutions that actor and critics share, and what stands on them.

The convolutions belong to the critic and only its loss trains them; the actor looks through them.
"""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from sunrise.config.learners import CRITICS, PixelSettings
from sunrise.learners.encoder import (
    Convolutions,
    Projection,
    as_input,
    convolutions,
    feature_count,
    kernel_rows,
    orthogonal_matrices,
    projection,
    unbiased_mlp,
)
from sunrise.networks import MLP
from sunrise.pixels import PictureShape


class Encoder(eqx.Module):
    """What the critic sees with: its convolutions, which the actor uses too, and its own projection."""

    convolutions: Convolutions
    projection: Projection


class Critic(eqx.Module):
    """An encoder and the critics on top of it, which have K on axis 0."""

    encoder: Encoder
    heads: MLP


class Actor(eqx.Module):
    """The policy on top of the critic's convolutions."""

    projection: Projection
    policy: MLP


def together(pictures: UInt8[Array, "M B S H W C"]) -> Float[Array, "R H W SC"]:
    """[M, B, ...] -> [R, ...]: views one below the other, R = M · B rows, as the convolutions take them."""
    return as_input(pictures.reshape(-1, *pictures.shape[2:]))


def new_networks(
    key: PRNGKeyArray, shape: PictureShape, action_dim: int, settings: PixelSettings
) -> tuple[Critic, Actor]:
    """key, shape of a picture, A, settings -> a fresh critic and actor; every layer is orthogonal, every bias 0."""
    features, latent, arch = (
        feature_count(shape, settings.filters, settings.conv_layers),
        settings.feature_dim,
        settings.net_arch,
    )
    channels = (shape.stack * shape.colours, *[settings.filters] * settings.conv_layers)
    head, policy = (latent + action_dim, *arch, 1), (latent, *arch, 2 * action_dim)
    kernels = [(kernel_rows(i, settings.kernel_init), o) for i, o in pairwise(channels)]
    layers = [*kernels, *[(features, latent)] * 2, *[*pairwise(head)] * CRITICS, *pairwise(policy)]
    matrices = iter(orthogonal_matrices(key, layers))

    def take(sizes: Sequence[int]) -> list[Array]:
        return [next(matrices) for _ in pairwise(sizes)]

    convolved = convolutions(take(channels), settings.kernel_init)
    of_critic, of_actor = (projection(next(matrices)) for _ in range(2))
    heads = [unbiased_mlp(take(head)) for _ in range(CRITICS)]
    critic = Critic(Encoder(convolved, of_critic), jax.tree.map(lambda *k: jnp.stack(k), *heads))
    return critic, Actor(of_actor, unbiased_mlp(take(policy)))
