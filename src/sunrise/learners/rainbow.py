"""Data-efficient Rainbow for one agent (Hessel et al., 2018; van Hasselt et al., 2019), each component a switch.

Prioritised replay and n-step returns are not here: they reach a learner as `weight` and as `reward` and `discount`.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from sunrise.config.learners import RainbowSettings
from sunrise.errors import SunriseError
from sunrise.learners.adam import adam_step, separate
from sunrise.learners.critics import masked_mean, when
from sunrise.networks.augmentation import Sight
from sunrise.networks.layers import polyak
from sunrise.networks.rainbow import (
    RainbowNetwork,
    Trunk,
    of_pictures,
    perturb,
    rainbow_network,
    sight_of,
)
from sunrise.networks.rainbow_pictures import MOMENTUM, Coder, Contrast, new_contrast, picture_augmentation
from sunrise.types import Backup, Batch, Info, Learner, Observation

METRICS = ("critic_loss", "q_mean", "gradient_norm", "parameter_norm")
CONTRAST = 2**32 - 1
"""What the first key is folded with for the contrast: no split of it reaches so far."""


class RainbowNumbers(NamedTuple):
    """The settings that are arguments of the compiled functions: changing one compiles nothing."""

    learning_rate: Float[Array, ""] | float
    adam_eps: Float[Array, ""] | float
    v_min: Float[Array, ""] | float
    v_max: Float[Array, ""] | float
    noisy_std: Float[Array, ""] | float
    max_grad_norm: Float[Array, ""] | float
    contrastive_weight: Float[Array, ""] | float


class Plain(NamedTuple):
    """What DQN does otherwise than Rainbow, besides having no components."""

    trunk_width: int
    """Units of the first hidden layer, where observations are numbers."""
    tau: float
    """How far the target network moves when it moves."""
    target_update_interval: int
    """Timesteps between moves of the target network."""


class RainbowState(NamedTuple):
    """Parameters of one agent and Adam's two moments of its gradients."""

    online: RainbowNetwork
    target: RainbowNetwork
    first: RainbowNetwork
    second: RainbowNetwork
    slow: tuple[Trunk, Coder] | tuple[()] = ()
    """What makes the positives of the contrast: it follows the network slowly."""
    steps: Int[Array, ""] | tuple[()] = ()
    """Steps of the environments so far, where the target network moves by them."""


def rainbow_numbers(settings: RainbowSettings) -> RainbowNumbers:
    """Settings -> the numbers in them."""
    return RainbowNumbers(*(getattr(settings, name) for name in RainbowNumbers._fields))


def project(
    atoms: Float[Array, "atoms"],
    reward: Float[Array, "B"],
    discount: Float[Array, "B"],
    probability: Float[Array, "B atoms"],
) -> Float[Array, "B atoms"]:
    """atoms, reward[B], discount[B], probability[B, atoms] -> [B, atoms]: r + γ Z on the same atoms.

    The mass that falls between two atoms is shared by them (C51, algorithm 1).
    """
    moved = jnp.clip(reward[:, None] + discount[:, None] * atoms, atoms[0], atoms[-1])
    # The difference of two atoms has their rounding in it: the whole range does not.
    place = (moved - atoms[0]) / ((atoms[-1] - atoms[0]) / (atoms.size - 1))  # [B, from], in units of atoms
    share = jnp.clip(1 - jnp.abs(place[:, None] - jnp.arange(atoms.size)[:, None]), 0)  # [B, to, from]
    return jnp.einsum("btf,bf->bt", share, probability)


def chosen(values: Float[Array, "B C *atoms"], action: Int[Array, "B"]) -> Float[Array, "B *atoms"]:
    """values[B, C, ...], action[B] -> [B, ...]: the values of one action a row."""
    return values[jnp.arange(values.shape[0]), action]


def rainbow(
    observation_space: gym.Space[object] | Sight,
    n_actions: int,
    settings: RainbowSettings,
    numbers: RainbowNumbers,
    updates_before: int = 0,
    plain: Plain | None = None,
) -> Learner:
    """From a space of observations, C, settings and numbers to Rainbow as a learner, with K = 1.

    Its loss is masked and weighted. Observations are numbers, frames [channels, height, width], or in parts.
    `updates_before` is how many updates the timesteps before the first one would have had. `plain` is
    where DQN differs, which is this with every component off.
    """
    seen = sight_of(observation_space)
    if seen is None and (settings.contrastive or settings.augmentation != "none"):
        raise SunriseError("augmentation and contrastive are for pictures, but these observations are none.")
    if not settings.net_arch and (plain is None or seen is not None):
        raise SunriseError("net_arch is empty, but each stream needs a hidden layer.")
    if settings.distributional and settings.n_atoms < 2:
        raise SunriseError(f"n_atoms is {settings.n_atoms}, but a distribution needs 2 at least.")
    n_atoms = settings.n_atoms if settings.distributional else 1
    atoms = jnp.linspace(numbers.v_min, numbers.v_max, n_atoms)

    def init(key: PRNGKeyArray) -> RainbowState:
        std = numbers.noisy_std if settings.noisy else None
        shape = n_actions, n_atoms
        width = None if plain is None else plain.trunk_width
        network = rainbow_network(key, observation_space, shape, settings.net_arch, settings.dueling, std, width)
        if settings.contrastive:
            k_contrast = jax.random.fold_in(key, CONTRAST)
            features = network.advantage[0].weight.shape[0] - (seen.beside if seen else 0)
            contrast = new_contrast(k_contrast, features, settings.net_arch[0])
            network = RainbowNetwork(network.trunk, network.advantage, network.value, contrast)
        zeros = jax.tree.map(jnp.zeros_like, network)
        steps = () if plain is None else jnp.zeros((), jnp.int32)
        return RainbowState(network, network, zeros, zeros, coding(network), steps)

    def coding(network: RainbowNetwork) -> Any:
        """What makes codes of views; nothing where there is no contrast."""
        return (network.trunk, network.contrast.coder) if isinstance(network.contrast, Contrast) else ()

    def q_values(logits: Float[Array, "B C atoms"]) -> Float[Array, "B C"]:
        return jax.nn.softmax(logits) @ atoms if settings.distributional else logits[..., 0]

    def outputs(network: RainbowNetwork, obs: Observation, key: PRNGKeyArray | None) -> Float[Array, "B C atoms"]:
        return perturb(network, key)(obs, n_actions)

    def propose(state: RainbowState, obs: Observation, key: PRNGKeyArray | None) -> Array:
        if key is None:
            return jnp.argmax(q_values(outputs(state.online, obs, None)), axis=1)
        k_noise = jax.random.split(key, 3)[0]  # the others are unused: the key of the noise stays what it was
        return jnp.argmax(q_values(outputs(state.online, obs, k_noise)), axis=1)

    def judge(state: RainbowState, obs: Observation, action: Array, key: PRNGKeyArray | None) -> Array:
        return chosen(q_values(outputs(state.online, obs, key)), action)[None]

    def judge_next(state: RainbowState, batch: Batch, action: Array, key: PRNGKeyArray) -> Array:
        """The maximum, whoever asks about whichever action (the paper, appendix B)."""
        _, k_target = jax.random.split(key)
        return q_values(outputs(state.target, batch.next_obs, k_target)).max(axis=1)[None]

    def bellman(state: RainbowState, batch: Batch, mask: Array, key: PRNGKeyArray) -> Backup:
        k_online, k_target = jax.random.split(key)
        logits = outputs(state.target, batch.next_obs, k_target)
        next_q = q_values(logits)
        selector = q_values(outputs(state.online, batch.next_obs, k_online)) if settings.double else next_q
        next_action = jnp.argmax(selector, axis=1)
        value = chosen(next_q, next_action)
        if settings.distributional:
            next_probability = jax.nn.softmax(chosen(logits, next_action))
            target = project(atoms, batch.reward, batch.discount, next_probability)
        else:
            target = batch.reward + batch.discount * value
        votes = value if settings.weight_value == "double" else next_q.max(axis=1)
        return Backup(target, next_action, votes[None])

    def learn(
        state: RainbowState,
        batch: Batch,
        mask: Float[Array, "B"],
        backup: Backup,
        weight: Float[Array, "B"],
        step: Array,
        key: PRNGKeyArray,
    ) -> tuple[RainbowState, Info]:
        k_online, _ = jax.random.split(key)
        obs = batch.obs[0] if settings.contrastive else batch.obs

        def critic_loss(online: RainbowNetwork) -> tuple[Array, tuple[Array, ...]]:
            logits = chosen(outputs(online, obs, k_online), batch.action)[:, None]
            q = q_values(logits)[:, 0]
            if settings.distributional:
                loss = error = -jnp.sum(backup.target * jax.nn.log_softmax(logits[:, 0]), axis=1)
                surprise = jnp.abs(q - backup.target @ atoms)
            else:
                error = surprise = jnp.abs(q - backup.target)
                loss = optax.losses.huber_loss(q, backup.target)
            contrast_loss = jnp.zeros(())
            if settings.contrastive:  # it is part of each row's loss, and so of its priority
                assert isinstance(online.contrast, Contrast)
                makers: Any = (coding(online), batch.obs[1]), (state.slow, batch.obs[2])
                codes = [code(of_pictures(trunk, view)) for (trunk, code), view in makers]
                contrast_loss = online.contrast.loss(*codes)
                loss, error = (
                    loss + numbers.contrastive_weight * contrast_loss,
                    error + numbers.contrastive_weight * contrast_loss,
                )
            return masked_mean(weight * loss, mask), (q, error, surprise, contrast_loss)

        (value, (q, error, surprise, contrast_loss)), gradient = jax.value_and_grad(critic_loss, has_aux=True)(
            state.online
        )
        norm = optax.tree.norm(gradient)
        bound = numbers.max_grad_norm
        scale = jnp.where(bound > 0, jnp.minimum(1, bound / norm), 1)
        moments, rate = (state.first, state.second), numbers.learning_rate
        online, first, second = adam_step(state.online, *moments, gradient, scale, step, rate, numbers.adam_eps)
        # The new parameters exist before their norm is known, and so before any memory is overwritten, which waits
        # for the metrics to be finite: without this XLA copies the state at the start of every update.
        online = separate(online)
        target = state.target
        if plain is None:
            # A select, and no condition: a state that passes through one is copied on CPU.
            due = (updates_before + step + 1) % settings.target_update_interval == 0
            target = when(due, online, target)
        slow = polyak(state.slow, coding(online), 1 - MOMENTUM)
        metrics = dict(zip(METRICS, (value, q.mean(), norm, optax.tree.norm(online)), strict=True))
        if settings.contrastive:
            metrics["contrastive_loss"] = contrast_loss
        new = RainbowState(online, target, first, second, slow, state.steps)
        return new, Info(error[None], metrics, surprise[None])

    def elapse(state: RainbowState, steps: Array, envs: Array) -> RainbowState:
        """Move the target network as often as it was due: the network has not changed since the last round."""
        assert plain is not None
        assert not isinstance(state.steps, tuple)
        every = jnp.maximum(plain.target_update_interval // envs, 1)
        times = (state.steps + steps) // every - state.steps // every
        # Once by tau is all but 1 - tau of the way.
        moved = state.online if plain.tau == 1 else polyak(state.target, state.online, 1 - (1 - plain.tau) ** times)
        return state._replace(target=when(times > 0, moved, state.target), steps=state.steps + steps)

    names = (*METRICS, "contrastive_loss") if settings.contrastive else METRICS
    learner = Learner(init, propose, judge, bellman, judge_next, learn, names, jnp.arange(n_actions))
    learner = learner._replace(elapse=None if plain is None else elapse)
    shifted = settings.augmentation == "shift"
    if not (shifted or settings.contrastive):
        return learner
    return learner._replace(augment=picture_augmentation(shifted, settings.contrastive, settings.shift_pad))
