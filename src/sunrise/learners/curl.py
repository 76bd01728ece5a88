"""CURL (Laskin et al., 2020): RAD whose encoder also learns to tell which two crops are of one observation.

The anchor is the crop that the critic saw, the positive is another crop of the same observation, and every other row's
positive is a negative. The key encoder is the target critic's. The original steps the encoder with two Adams for this
loss; both see the same gradients, so their steps are equal, and we take one Adam's step twice: the same mathematics.
Two choices of ours: its code never crops at the last row or column, an offset that RAD's code and ours do draw; and it
has a second learning rate for this loss, where its paper and ours have one for everything (both are 1e-3 by default).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import CURLSettings
from sunrise.learners.pixel_sac import PixelNumbers, pixel_sac
from sunrise.networks.augmentation import PictureShape, Sight, crop, each
from sunrise.networks.pixel import Critic, Encoder, together
from sunrise.types import Backup, Batch, Info, Learner, Observation, State

ENCODER_STEPS = 2
"""Adams that hold the encoder in the original."""


class CURLState(NamedTuple):
    """The agent inside, the bilinear similarity and what Adam remembers of the contrastive loss."""

    inner: State
    similarity: Float[Array, "Z Z"]
    opt: optax.OptState


def contrast(
    anchor: Float[Array, "B Z"], positive: Float[Array, "B Z"], similarity: Float[Array, "Z Z"]
) -> Float[Array, ""]:
    """anchor[B, Z], positive[B, Z], similarity[Z, Z] -> loss: InfoNCE with logits z_a W z_p (CURL, equation 4).

    Each anchor must find its own positive among all.
    """
    logits = anchor @ similarity @ positive.T
    logits = logits - jax.lax.stop_gradient(logits.max(axis=1, keepdims=True))
    return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(logits, axis=1)))


def curl(shape: PictureShape | Sight, action_dim: int, settings: CURLSettings, numbers: PixelNumbers) -> Learner:
    """From the shape of pictures, A, settings and numbers to CURL as a learner.

    The contrastive loss comes after the rest of every update, and has no mask and no weight.
    """
    crops = each(shape, lambda picture: crop(picture, settings.crop_size))
    inner = pixel_sac(shape, action_dim, crops, settings.pixel, numbers, counts=(2, 1))
    adam = optax.adam(numbers.learning_rate)

    def init(key: PRNGKeyArray) -> CURLState:
        k_inner, k_similarity = jax.random.split(key)
        inside = inner.init(k_inner)
        similarity = jax.random.uniform(k_similarity, (settings.pixel.feature_dim,) * 2)
        return CURLState(inside, similarity, adam.init((inside.critic.encoder, similarity)))

    def learn(
        state: CURLState,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "*K B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[CURLState, Info]:
        one_view = batch._replace(obs=batch.obs[:1])
        inside, info = inner.learn(state.inner, one_view, mask, backup, weight, step, key)
        anchor, positive = together(batch.obs[:1]), together(batch.obs[1:])
        keys = encode(inside.target.encoder, positive)

        def loss(learned: tuple[Encoder, Array]) -> Array:
            encoder, similarity = learned
            return contrast(encode(encoder, anchor), keys, similarity)

        learned = (inside.critic.encoder, state.similarity)
        value, gradient = jax.value_and_grad(loss)(learned)
        (encoder_change, change), opt = adam.update(gradient, state.opt)
        encoder = learned[0]
        for _ in range(ENCODER_STEPS):
            encoder = optax.apply_updates(encoder, encoder_change)
        similarity = optax.apply_updates(state.similarity, change)
        critic = Critic(encoder, inside.critic.heads)
        metrics = info.metrics | {
            "contrastive_loss": value,
            "contrastive_norm": optax.tree.norm((encoder, similarity)),
        }
        return CURLState(inside._replace(critic=critic), similarity, opt), info._replace(metrics=metrics)

    return Learner(
        init=init,
        propose=lambda state, obs, key: inner.propose(state.inner, obs, key),
        judge=lambda state, obs, action, key: inner.judge(state.inner, obs, action, key),
        bellman=lambda state, batch, mask, key: inner.bellman(state.inner, batch, mask, key),
        judge_next=lambda state, batch, action, key: inner.judge_next(state.inner, batch, action, key),
        learn=learn,
        metrics=(*inner.metrics, "contrastive_loss", "contrastive_norm"),
        augment=inner.augment,
    )


def encode(encoder: Encoder, pictures: Observation) -> Float[Array, "B Z"]:
    """encoder, pictures[B] -> features[B, Z], without what stands beside them: that would tell one row from another."""
    return encoder.projection.of_pictures(encoder.convolutions(pictures), False)
