"""What the actor and the critics of an agent are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax
from jaxtyping import PRNGKeyArray

from sunrise.networks import MLP, Init, mlp

CRITICS = 2
"""Critics of an agent, unless it is told otherwise."""
Network: TypeAlias = MLP


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


def new_critics(
    key: PRNGKeyArray, sizes: Sequence[int], init: Init, settings: ArchitectureSettings | None = None
) -> Network:
    """K networks as one, with K on axis 0 of every leaf."""
    made = settings or ArchitectureSettings()
    keys = jax.random.split(key, made.n_critics)
    together: Network = jax.vmap(lambda k: mlp(k, sizes, init, last_bound=3e-3, normed=made.layer_norm))(keys)
    return together
