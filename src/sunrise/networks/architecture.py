"""What the actor and the critics of an agent are made of."""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.config.learners import ArchitectureSettings, Init
from sunrise.errors import SunriseError
from sunrise.networks.layers import MLP, mlp
from sunrise.networks.simba import Simba, simba

Network: TypeAlias = MLP | Simba


def new_actor(
    key: PRNGKeyArray,
    inputs: int,
    hidden: Sequence[int],
    heads: Sequence[int],
    init: Init,
    last_bound: float,
    settings: ArchitectureSettings,
) -> Network:
    """key, sizes -> a network [B, in] -> [B, sum of heads], with `heads` side by side in its output."""
    if settings.network == "simba":
        return simba(key, inputs, settings.simba_actor, heads)
    return mlp(key, (inputs, *hidden, sum(heads)), init, last_bound, activation=settings.activation)


def new_critics(
    key: PRNGKeyArray, inputs: int, hidden: Sequence[int], init: Init, settings: ArchitectureSettings
) -> Network:
    """key, sizes -> K networks [B, in] -> [B, 1] as one, with K on axis 0 of every leaf."""
    if settings.network == "simba" and (settings.layer_norm or settings.dropout):
        raise SunriseError("layer_norm and dropout are for network mlp: SimBa has layer norms of its own.")

    def one(key: PRNGKeyArray) -> Network:
        if settings.network == "simba":
            return simba(key, inputs, settings.simba_critic, (1,))
        sizes = inputs, *(settings.critic_net_arch or hidden), 1
        return mlp(key, sizes, init, 3e-3, settings.layer_norm, settings.activation)

    together: Network = jax.vmap(one)(jax.random.split(key, settings.n_critics))
    return together


def optimiser(rate: Float[Array, ""] | float, settings: ArchitectureSettings) -> optax.GradientTransformation:
    """Step size, settings -> Adam, or AdamW where weights are to decay."""
    if settings.weight_decay == 0:
        return optax.adam(rate)
    return optax.adamw(rate, weight_decay=settings.weight_decay)
