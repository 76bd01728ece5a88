"""An ensemble of any learner by `jax.vmap`: one compiled call updates, explores with, or evaluates all members.

Nothing in this file knows an algorithm, and one member is the plain algorithm on the same lines.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from sunrise.config.ensemble import EnsembleSettings, resolve_weighting
from sunrise.ensemble.functions import ucb_scores
from sunrise.ensemble.weights import SCHEMES, Memory, effective_batch
from sunrise.tensors import named_leaves
from sunrise.types import AnyArray, Backup, Batch, Learner, Observation, Sample, State, rows

VIEW = 2**32 - 1
"""What the update's key is folded with to augment a batch: no member has this number."""


class EnsembleNumbers(NamedTuple):
    """Arguments of the compiled functions: changing one compiles nothing."""

    temperature: Float[Array, ""] | float
    ucb_lambda: Float[Array, ""] | float
    gamma: Float[Array, ""] | float


class Ensemble(NamedTuple):
    """N agents as one pytree, the one counter they share, and what the weighting of their backups remembers."""

    members: State
    step: Int[Array, ""]
    memory: Memory = ()


class Tally(NamedTuple):
    """Sums of what the updates since the last log reported; it stays on the device until it is read."""

    updates: Int[Array, ""]
    sums: dict[str, Float[Array, ""]]


class Report(NamedTuple):
    """What an update tells the host."""

    finite: Bool[Array, ""]
    """False: a value was not finite, and the update was refused."""
    priority: Float[Array, "B"]
    """Mean error of the members' critics on each row."""


class Choice(NamedTuple):
    """An action for each environment, and which candidate it was."""

    action: Shaped[Array, "E *A"]
    candidate: Int[Array, "E"]


class Sunrise(NamedTuple):
    """The compiled functions of an ensemble. Each takes `numbers` = (EnsembleNumbers, the learner's numbers)."""

    init: Callable[[PRNGKeyArray, Any], tuple[Ensemble, Tally]]
    update: Callable[[Ensemble, Tally, Sample, PRNGKeyArray, Any], tuple[Ensemble, Tally, Report]]
    explore: Callable[[State, Observation, AnyArray, PRNGKeyArray, AnyArray, Any], Choice]
    """members, obs[E], acting member[E], key, counter, numbers."""
    exploit: Callable[[State, Observation, Any], Array]
    uncertainty: Callable[[State, Observation, AnyArray, Any], Array]
    faults: Callable[[Ensemble, Sample, PRNGKeyArray, Any], list[str]]
    """Runs an update that was refused once more, and names what is not finite in it."""
    observe: Callable[[State, Observation, Any], State] | None = None
    """members, obs[E], numbers: what is noted of observations that are acted on; None where nothing is."""


def member_keys(key: PRNGKeyArray, counter: Int[Array, ""] | int, members: int) -> Shaped[PRNGKeyArray, "N"]:
    """A key for each member that depends on the counter and on the member, and not on how many there are."""
    now = jax.random.fold_in(key, counter)
    return jax.vmap(lambda i: jax.random.fold_in(now, i))(jnp.arange(members))


def pool(votes: Float[Array, "N K *rest"]) -> Float[Array, "V *rest"]:
    """Every critic of every member is a voter."""
    return votes.reshape(-1, *votes.shape[2:])


def build(make_learner: Callable[[Any], Learner], settings: EnsembleSettings) -> Sunrise:
    """An ensemble of what `make_learner(numbers)` returns."""
    n = settings.ensemble_size
    scheme = SCHEMES[resolve_weighting(settings)]

    def init(key: PRNGKeyArray, numbers: Any) -> tuple[Ensemble, Tally]:
        one = make_learner(numbers[1])
        members = jax.vmap(one.init)(member_keys(key, 0, n))
        names = (*one.metrics, *distributions(jnp.zeros((1, 1)), jnp.ones((1, 1))))
        zero = jnp.zeros((), jnp.int32)
        start = (
            Ensemble(members, step=zero, memory=scheme.init()),
            Tally(zero, {name: jnp.zeros(()) for name in names}),
        )
        # A weakly typed leaf would become a strong one in the first update, and compile the second anew.
        return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), start)  # type: ignore[no-any-return]

    def disagreement(one: Learner, members: State, batch: Batch, backup: Backup, keys: Array) -> Float[Array, "M B"]:
        """The standard deviation of all target critics: each at its own member's next action, M = 1, or all at the next
        action of each member, M = N.
        """
        if settings.weight_votes == "shared" and scheme.uses_votes:
            votes = pool(
                jax.vmap(
                    lambda state, k: jax.vmap(lambda a: one.judge_next(state, batch, a, k), out_axes=1)(backup.action)
                )(members, keys)
            )  # [V, N, B]
        else:
            votes = pool(backup.votes)[:, None]  # [V, 1, B]
        return jnp.std(votes, axis=0)

    def weigh(
        std: Float[Array, "M B"], discount: Float[Array, "B"], memory: Memory, key: PRNGKeyArray, own: EnsembleNumbers
    ) -> tuple[Float[Array, "M B"], Memory]:
        """The weight of each backup. An agent alone disagrees with nobody: its critics are one opinion."""
        s = std * (n > 1)
        if scheme.discounted:
            s = s * jnp.where(discount > 0, discount / jnp.where(own.gamma > 0, own.gamma, 1), 0)
        weight, memory = scheme.weigh(s, memory, own.temperature, key)
        if settings.terminal_weight == "one":
            weight = jnp.where(discount > 0, weight, 1)
        if settings.weight_normaliser == "mean":
            weight = weight / weight.mean(axis=1, keepdims=True)
        return weight, memory

    def step_once(ensemble: Ensemble, sample: Sample, key: PRNGKeyArray, numbers: Any) -> tuple[Any, ...]:
        one = make_learner(numbers[1])
        members, now = ensemble.members, jax.random.fold_in(key, ensemble.step)
        keys = member_keys(key, ensemble.step, n)
        batch = one.augment(sample.batch, jax.random.fold_in(now, VIEW))
        mask = sample.mask.T.astype(batch.reward.dtype)  # [N, B]
        backup = jax.vmap(one.bellman, (0, None, 0, 0))(members, batch, mask, keys)
        std = disagreement(one, members, batch, backup, keys)
        weight, memory = weigh(std, batch.discount, ensemble.memory, jax.random.fold_in(now, n), numbers[0])
        factor = jnp.broadcast_to(weight * sample.importance, mask.shape)
        new, info = jax.vmap(one.learn, (0, None, 0, 0, 0, None, 0))(
            members, batch, mask, backup, factor, ensemble.step, keys
        )
        memory = scheme.learned(memory, info.error if info.surprise is None else info.surprise)
        return new, memory, info, distributions(std, weight)

    def update(
        ensemble: Ensemble, tally: Tally, sample: Sample, key: PRNGKeyArray, numbers: Any
    ) -> tuple[Ensemble, Tally, Report]:
        new, memory, info, shared = step_once(ensemble, sample, key, numbers)
        metrics = {name: value.mean() for name, value in info.metrics.items()} | shared
        finite = jnp.isfinite(jnp.stack(list(metrics.values()))).all()

        def keep(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)

        tally_new = Tally(tally.updates + 1, jax.tree.map(jnp.add, tally.sums, metrics))
        return (
            Ensemble(keep(new, ensemble.members), ensemble.step + finite, keep(memory, ensemble.memory)),
            keep(tally_new, tally),
            Report(finite, info.error.mean(axis=(0, 1))),
        )

    def candidates(one: Learner, members: State, obs: Observation, keys: Array) -> Array:
        """What may be done: the finite set of actions, or what the members propose. [C, E, *A]."""
        if one.actions is not None:
            return jnp.broadcast_to(one.actions[:, None], (one.actions.size, rows(obs)))
        return jax.vmap(one.propose, (0, None, 0))(members, obs, keys)

    def explore(
        members: State, obs: Observation, acting: Array, key: PRNGKeyArray, counter: Array, numbers: Any
    ) -> Choice:
        one = make_learner(numbers[1])
        keys = member_keys(key, counter, n)
        if settings.exploration == "member":
            proposals = jax.vmap(one.propose, (0, None, 0))(members, obs, keys)
            return Choice(proposals[acting, jnp.arange(rows(obs))], acting)
        options = candidates(one, members, obs, keys)
        votes = pool(
            jax.vmap(lambda state, k: jax.vmap(lambda a: one.judge(state, obs, a, k), out_axes=1)(options))(
                members, keys
            )
        )  # [V, C, E]
        best = jnp.argmax(ucb_scores(votes, numbers[0].ucb_lambda), axis=0)
        return Choice(options[best, jnp.arange(rows(obs))], best)

    def exploit(members: State, obs: Observation, numbers: Any) -> Array:
        """The mean of the members' actions, or the action of the highest mean value."""
        one = make_learner(numbers[1])
        if one.actions is None:
            return jax.vmap(lambda state: one.propose(state, obs, None))(members).mean(axis=0)
        options = candidates(one, members, obs, jnp.zeros(n))
        votes = jax.vmap(lambda state: jax.vmap(lambda a: one.judge(state, obs, a, None), out_axes=1)(options))(members)
        return one.actions[jnp.argmax(pool(votes).mean(axis=0), axis=0)]

    def uncertainty(members: State, obs: Observation, action: Array, numbers: Any) -> Array:
        one = make_learner(numbers[1])
        return jnp.std(pool(jax.vmap(lambda state: one.judge(state, obs, action, None))(members)), axis=0)

    def observe(members: State, obs: Observation, numbers: Any) -> State:
        note = make_learner(numbers[1]).observe
        return members if note is None else jax.vmap(note, (0, None))(members, obs)

    def faults(ensemble: Ensemble, sample: Sample, key: PRNGKeyArray, numbers: Any) -> list[str]:
        new, _, info, _ = jax.jit(step_once)(ensemble, sample, key, numbers)
        found = []
        reported = {name: info.metrics[name] for name in make_learner(numbers[1]).metrics}
        for name, leaf in {**reported, **named_leaves(new)}.items():
            bad = ~np.isfinite(np.asarray(leaf)).reshape(n, -1).all(axis=1)
            found += [f"{name} of member {i}" for i in np.flatnonzero(bad)]
        return found

    return Sunrise(
        faults=faults,
        init=jax.jit(init),
        update=jax.jit(update, donate_argnums=(0, 1)),
        explore=jax.jit(explore),
        exploit=jax.jit(exploit),
        uncertainty=jax.jit(uncertainty),
        observe=jax.jit(observe, donate_argnums=0),
    )


def distributions(std: Float[Array, "M B"], weight: Float[Array, "M B"]) -> dict[str, Array]:
    """What is always logged of the disagreement and of the weights."""
    shared = spread(disagreement=std, weight=weight)
    return {**shared, "effective_batch": effective_batch(weight).mean()}


def spread(**distributions: Array) -> dict[str, Array]:
    """Mean, 5 %, 50 % and 95 % of distributions of equal size, by one sort for all of them."""
    ordered = jnp.sort(jnp.stack([values.ravel() for values in distributions.values()]), axis=1)
    last = ordered.shape[1] - 1
    found: dict[str, Array] = {}
    for row, (name, values) in enumerate(distributions.items()):
        found[f"{name}_mean"] = values.mean()
        found |= {f"{name}_p{percent:02}": ordered[row, round(percent / 100 * last)] for percent in (5, 50, 95)}
    return found
