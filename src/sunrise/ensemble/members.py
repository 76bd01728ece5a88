"""An ensemble of any model by `jax.vmap`: a key for each member, one counter, sums of what updates report, refusal.

Nothing in this file knows what a member learns. A model is written for ONE member, and `jax.vmap` is the phrase "an
ensemble of":

    ensemble, tally = new_ensemble(model.init, key, members, model.metrics)

    @jax.jit
    def update(ensemble, tally, batch, mask, key):                                  # mask [N, B]
        keys = member_keys(key, ensemble.step, members)
        new, metrics = jax.vmap(model.learn, (0, None, 0, 0))(ensemble.members, batch, mask, keys)
        return accept(ensemble, tally, Change(new, metrics))
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from sunrise.trees import named_leaves
from sunrise.types import State

Memory: TypeAlias = Any
"""What all members share from update to update, such as running statistics: a pytree of arrays, empty for most."""


class Ensemble(NamedTuple):
    """N models as one pytree, the one counter they share, and what they remember together. All of it is saved."""

    members: State
    step: Int[Array, ""]
    memory: Memory = ()


class Tally(NamedTuple):
    """Sums of what the updates since the last log reported; it stays on the device until it is read."""

    updates: Int[Array, ""]
    sums: dict[str, Float[Array, ""]]


class Change(NamedTuple):
    """What an update would make of an ensemble; `accept` makes it so, unless something in it is not finite."""

    members: State
    metrics: dict[str, Float[Array, "*N"]]
    """By name, a number for each member or one for all. What is not finite in `members` must show in one of them."""
    memory: Memory = ()


def member_keys(key: PRNGKeyArray, counter: Int[Array, ""] | int, members: int) -> Shaped[PRNGKeyArray, "N"]:
    """key, counter, N -> a key for each member, which depends on the counter and the member, and not on N."""
    now = jax.random.fold_in(key, counter)
    return jax.vmap(lambda i: jax.random.fold_in(now, i))(jnp.arange(members))


def new_ensemble(
    init: Callable[[PRNGKeyArray], State],
    key: PRNGKeyArray,
    members: int,
    metrics: Iterable[str],
    memory: Memory = (),
) -> tuple[Ensemble, Tally]:
    """One model's `init`, key, N, the names of what an update reports, memory -> N fresh members, and sums of 0."""
    zero = jnp.zeros((), jnp.int32)
    start = (
        Ensemble(jax.vmap(init)(member_keys(key, 0, members)), zero, memory),
        Tally(zero, {name: jnp.zeros(()) for name in metrics}),
    )
    # A weakly typed leaf would become a strong one in the first update, and compile the second anew.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), start)  # type: ignore[no-any-return]


def accept(ensemble: Ensemble, tally: Tally, change: Change) -> tuple[Ensemble, Tally, Bool[Array, ""]]:
    """The ensemble after an update, its sums, and whether the update was finite: if not, both are as they were.

    It is decided inside the compiled call, where the state before the update still exists: its memory is given away.
    """
    metrics = {name: value.mean() if value.ndim else value for name, value in change.metrics.items()}
    finite = jnp.isfinite(jnp.stack(list(metrics.values()))).all()

    def chosen(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)

    sums = Tally(tally.updates + 1, jax.tree.map(jnp.add, tally.sums, metrics))
    new = Ensemble(
        chosen(change.members, ensemble.members), ensemble.step + finite, chosen(change.memory, ensemble.memory)
    )
    return new, chosen(sums, tally), finite


def not_finite(change: Change, metrics: Iterable[str]) -> list[str]:
    """What of each member is not finite in a change: of these metrics in their order, then of its state."""
    found = []
    reported = {name: change.metrics[name] for name in metrics}
    for name, leaf in {**reported, **named_leaves(change.members)}.items():
        bad = ~np.isfinite(np.asarray(leaf)).reshape(len(leaf), -1).all(axis=1)
        found += [f"{name} of member {i}" for i in np.flatnonzero(bad)]
    return found
