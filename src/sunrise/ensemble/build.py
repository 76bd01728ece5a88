"""SUNRISE of any learner: the compiled functions that update, explore with and evaluate all members at once.

Nothing in this file knows an algorithm, and one member is the plain algorithm on the same lines.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from sunrise.config.ensemble import EnsembleSettings, resolve_weighting
from sunrise.ensemble import voting
from sunrise.ensemble.functions import Number
from sunrise.ensemble.members import Change, Ensemble, Memory, Tally, accept, member_keys, new_ensemble, not_finite
from sunrise.ensemble.placement import Placement
from sunrise.ensemble.voting import Choice
from sunrise.ensemble.weights import Evidence, Scheme, scheme_of, summary
from sunrise.types import AnyArray, Batch, Learner, Observation, Sample, State

VIEW = 2**32 - 1
"""What the update's key is folded with to augment a batch: no member has this number."""


class EnsembleNumbers(NamedTuple):
    """The settings of the ensemble that are arguments of its compiled functions: changing one compiles nothing."""

    temperature: Number
    ucb_lambda: Number
    gamma: Number


class Numbers(NamedTuple):
    """All numbers that the compiled functions take: the ensemble's, and the learner's own record of them."""

    ensemble: EnsembleNumbers
    learner: Any


class Report(NamedTuple):
    """What an update tells the host."""

    finite: Bool[Array, ""]
    """False: a value was not finite, and the update was refused."""
    priority: Float[Array, "B"]
    """Mean error of the members' critics on each row."""


class Sunrise(NamedTuple):
    """The compiled functions of an ensemble."""

    init: Callable[[PRNGKeyArray, Numbers], tuple[Ensemble, Tally]]
    """key, numbers -> a fresh ensemble, and its sums."""
    update: Callable[[Ensemble, Tally, Sample, PRNGKeyArray, Numbers], tuple[Ensemble, Tally, Report]]
    """ensemble, tally, sample[B], key, numbers -> ensemble, tally, report. The first two are used up."""
    explore: Callable[[State, Observation, AnyArray, PRNGKeyArray, AnyArray, Numbers], Choice]
    """members[N], obs[E], acting member[E], key, counter, numbers -> an action for each environment."""
    exploit: Callable[[State, Observation, Numbers], Array]
    """members[N], obs[E], numbers -> action[E] without noise."""
    uncertainty: Callable[[State, Observation, AnyArray, Numbers], Array]
    """members[N], obs[E], action[E], numbers -> standard deviation[E] of all votes."""
    faults: Callable[[Ensemble, Sample, PRNGKeyArray, Numbers], list[str]]
    """Runs an update that was refused once more, and names what is not finite in it."""
    observe: Callable[[State, Observation, Numbers], State] | None = None
    """members[N], obs[E], numbers -> members: what is noted of observations that are acted on; None: nothing is."""
    elapse: Callable[[State, AnyArray, AnyArray, Numbers], State] | None = None
    """members[N], steps of the environments, E, numbers -> members: what goes by those steps; None: nothing does."""


def weights_of(
    scheme: Scheme,
    settings: EnsembleSettings,
    votes: Float[Array, "V M B"],
    batch: Batch,
    memory: Memory,
    key: PRNGKeyArray,
    numbers: EnsembleNumbers,
) -> tuple[Float[Array, "M B"], Memory, dict[str, Float[Array, ""]]]:
    """votes, batch[B], what the scheme remembers, key -> weight[M, B] of each backup, memory, what is logged of it."""
    std = jnp.std(votes, axis=0)
    spread = std * (settings.ensemble_size > 1)  # an agent alone disagrees with nobody: its critics are one opinion
    discount = batch.discount
    if scheme.discounted:
        spread = spread * jnp.where(discount > 0, discount / jnp.where(numbers.gamma > 0, numbers.gamma, 1), 0)
    weight, memory = scheme.weigh(Evidence(spread, votes, batch, numbers.temperature), memory, key)
    if settings.terminal_weight == "one":
        weight = jnp.where(discount > 0, weight, 1)
    if settings.weight_normaliser == "mean":
        weight = weight / weight.mean(axis=1, keepdims=True)
    return weight, memory, summary(std, weight)


def build(
    make_learner: Callable[[Any], Learner], settings: EnsembleSettings, placement: Placement | None = None
) -> Sunrise:
    """From the learner that `make_learner(numbers.learner)` returns to the compiled functions of an ensemble of it.

    With a placement, what an update returns is where what it took was; without, the compiler may choose.
    """
    n = settings.ensemble_size
    scheme = scheme_of(resolve_weighting(settings))

    def init(key: PRNGKeyArray, numbers: Numbers) -> tuple[Ensemble, Tally]:
        one = make_learner(numbers.learner)
        names = (*one.metrics, *summary(jnp.zeros((1, 1)), jnp.ones((1, 1))))
        return new_ensemble(one.init, key, n, names, scheme.init())

    def change(
        ensemble: Ensemble, sample: Sample, key: PRNGKeyArray, numbers: Numbers
    ) -> tuple[Change, Float[Array, "B"]]:
        """What an update would do, and the priority of each row."""
        one = make_learner(numbers.learner)
        members, now = ensemble.members, jax.random.fold_in(key, ensemble.step)
        keys = member_keys(key, ensemble.step, n)
        batch = one.augment(sample.batch, jax.random.fold_in(now, VIEW))
        mask = sample.mask.T.astype(batch.reward.dtype)  # [N, B]
        backup = jax.vmap(one.bellman, (0, None, 0, 0))(members, batch, mask, keys)
        shared = settings.weight_votes == "shared" and scheme.uses_votes
        votes = voting.votes_on_what_follows(one, members, batch, backup, keys, shared)
        weight, memory, logged = weights_of(
            scheme, settings, votes, batch, ensemble.memory, jax.random.fold_in(now, n), numbers.ensemble
        )
        factor = jnp.broadcast_to(weight * sample.importance, mask.shape)
        new, info = jax.vmap(one.learn, (0, None, 0, 0, 0, None, 0))(
            members, batch, mask, backup, factor, ensemble.step, keys
        )
        memory = scheme.learned(memory, info.error if info.surprise is None else info.surprise)
        return Change(new, info.metrics | logged, memory), info.error.mean(axis=(0, 1))

    def update(
        ensemble: Ensemble, tally: Tally, sample: Sample, key: PRNGKeyArray, numbers: Numbers
    ) -> tuple[Ensemble, Tally, Report]:
        proposed, priority = change(ensemble, sample, key, numbers)
        ensemble, tally, finite = accept(ensemble, tally, proposed)
        return ensemble, tally, Report(finite, priority)

    def explore(
        members: State, obs: Observation, acting: Array, key: PRNGKeyArray, counter: Array, numbers: Numbers
    ) -> Choice:
        one, keys = make_learner(numbers.learner), member_keys(key, counter, n)
        return voting.explore(one, members, obs, acting, keys, numbers.ensemble.ucb_lambda, settings.exploration)

    def exploit(members: State, obs: Observation, numbers: Numbers) -> Array:
        return voting.exploit(make_learner(numbers.learner), members, obs)

    def uncertainty(members: State, obs: Observation, action: Array, numbers: Numbers) -> Array:
        return voting.uncertainty(make_learner(numbers.learner), members, obs, action)

    def observe(members: State, obs: Observation, numbers: Numbers) -> State:
        note = make_learner(numbers.learner).observe
        return members if note is None else jax.vmap(note, (0, None))(members, obs)

    def elapse(members: State, steps: Array, envs: Array, numbers: Numbers) -> State:
        pass_by = make_learner(numbers.learner).elapse
        return members if pass_by is None else jax.vmap(pass_by, (0, None, None))(members, steps, envs)

    def faults(ensemble: Ensemble, sample: Sample, key: PRNGKeyArray, numbers: Numbers) -> list[str]:
        refused, _ = jax.jit(change)(ensemble, sample, key, numbers)
        return not_finite(refused, make_learner(numbers.learner).metrics)

    there = None if placement is None else placement.members
    updated = None if placement is None else (placement.of_ensemble, placement.shared, placement.shared)
    return Sunrise(
        init=jax.jit(init),
        update=jax.jit(update, donate_argnums=(0, 1), out_shardings=updated),
        explore=jax.jit(explore),
        exploit=jax.jit(exploit),
        uncertainty=jax.jit(uncertainty),
        faults=faults,
        observe=jax.jit(observe, donate_argnums=0, out_shardings=there),
        elapse=jax.jit(elapse, donate_argnums=0, out_shardings=there),
    )
