"""What the actor and the critics of an agent are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import jax
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sunrise.errors import SunriseError
from sunrise.learners.simba import Simba, simba
from sunrise.networks import MLP, Init, mlp

CRITICS = 2
"""Critics of an agent, unless it is told otherwise."""
Network: TypeAlias = MLP | Simba


@dataclass(frozen=True)
class ArchitectureSettings:
    """What the networks of an agent are made of, and how many critics it has."""

    n_critics: int = CRITICS
    """K: critics of one agent; all of them are voters of the weight and of exploration."""
    critic_subset: int = CRITICS
    """M: critics, drawn anew for each update, whose minimum is the target (REDQ); K or more: all of them."""
    layer_norm: bool = False
    """Normalise the hidden layers of the critics before their activation (DroQ)."""
    dropout: float = 0.0
    """Chance that a hidden unit of a critic is left out, in all that updates and exploration ask of critics (DroQ)."""
    network: Literal["mlp", "simba"] = "mlp"
    """Layers of `net_arch`, or SimBa's residual blocks, whose policy bends its log-deviation into its bounds."""
    simba_actor: tuple[int, int] = (128, 1)
    """Width and number of blocks of a SimBa actor."""
    simba_critic: tuple[int, int] = (512, 2)
    """Width and number of blocks of a SimBa critic."""
    normalise_observations: bool = False
    """Learn from observations in units of their deviations so far; the statistics are part of the agent (SimBa)."""
    weight_decay: float = 0.0
    """AdamW's decay of the weights of actor and critics (SimBa)."""


def new_actor(
    key: PRNGKeyArray,
    inputs: int,
    hidden: Sequence[int],
    heads: Sequence[int],
    init: Init,
    last_bound: float,
    settings: ArchitectureSettings,
) -> Network:
    """A network with `heads` side by side in its output."""
    if settings.network == "simba":
        return simba(key, inputs, settings.simba_actor, heads)
    return mlp(key, (inputs, *hidden, sum(heads)), init, last_bound)


def new_critics(
    key: PRNGKeyArray, inputs: int, hidden: Sequence[int], init: Init, settings: ArchitectureSettings
) -> Network:
    """K networks as one, with K on axis 0 of every leaf."""
    if settings.network == "simba" and (settings.layer_norm or settings.dropout):
        raise SunriseError("layer_norm and dropout are for network mlp: SimBa has layer norms of its own.")

    def one(key: PRNGKeyArray) -> Network:
        if settings.network == "simba":
            return simba(key, inputs, settings.simba_critic, (1,))
        return mlp(key, (inputs, *hidden, 1), init, last_bound=3e-3, normed=settings.layer_norm)

    together: Network = jax.vmap(one)(jax.random.split(key, settings.n_critics))
    return together


def optimiser(rate: Float[Array, ""] | float, settings: ArchitectureSettings) -> optax.GradientTransformation:
    """Adam, or AdamW where weights are to decay."""
    if settings.weight_decay == 0:
        return optax.adam(rate)
    return optax.adamw(rate, weight_decay=settings.weight_decay)
