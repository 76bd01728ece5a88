"""One compiled update of all members equals a plain loop over agents, and the paper's equations."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.ensemble import Ensemble
from sunrise.types import Learner, Sample
from tests.support import tiny
from tests.support.plain import KEY, PlainDisCor, PlainSAC, PlainTD3, member

N = 3


AUTHORS: dict[str, Any] = {
    "init": "rlkit",
    "target_init": "random",
    "loss_normaliser": "mask",
    "weight_action": "fresh",
    "alpha_in_target": "after",
}


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def numpy_weight(votes: np.ndarray, temperature: float) -> np.ndarray:
    std = np.sqrt(((votes - votes.mean(0)) ** 2).mean(0))
    return np.asarray(1 / (1 + np.exp(std * temperature)) + 0.5)


@cache
def single_agent(algo: str, authors: bool) -> Learner:
    """One agent's functions, each compiled on its own."""
    config = with_settings(algorithm(algo).defaults, {"net_arch": (6, 6), **(AUTHORS if authors else {})})
    parts = algorithm(algo).fit(config, *tiny.spaces())
    one = parts.make_learner(parts.numbers)
    return one._replace(bellman=jax.jit(one.bellman), judge_next=jax.jit(one.judge_next), learn=jax.jit(one.learn))


def loop_update(states: list[Any], sample: Sample, step: int, algo: str, votes_by: str, authors: bool) -> list[Any]:
    """The oracle: N separate agents, one after the other; only the weight sees all of them."""
    one = single_agent(algo, authors)
    sample = jax.tree.map(jnp.asarray, sample)
    keys = [jax.random.fold_in(jax.random.fold_in(KEY, step), i) for i in range(len(states))]
    masks = [jnp.asarray(sample.mask[:, i], float) for i in range(len(states))]
    backups = [one.bellman(s, sample.batch, m, k) for s, m, k in zip(states, masks, keys, strict=True)]
    new = []
    for i, state in enumerate(states):
        if votes_by == "own":
            votes = np.concatenate([np.asarray(b.votes) for b in backups])
        else:
            opinions = [
                one.judge_next(s, sample.batch, backups[i].action, k) for s, k in zip(states, keys, strict=True)
            ]
            votes = np.concatenate([np.asarray(o) for o in opinions])
        weight = jnp.asarray(numpy_weight(votes, 20.0))
        new.append(one.learn(state, sample.batch, masks[i], backups[i], weight, jnp.asarray(step), keys[i])[0])
    return new


@pytest.mark.parametrize("weight_votes", ["own", "shared"])
@pytest.mark.parametrize("algo", ["sac", "authors", "td3", "discor"])
def test_the_vectorised_update_equals_a_loop_over_agents(double: None, algo: str, weight_votes: str) -> None:
    authors = algo == "authors"
    algo = "sac" if authors else algo
    switches = AUTHORS if authors else {}
    functions, numbers, ensemble, tally = tiny.ensemble(algo, ensemble_size=N, weight_votes=weight_votes, **switches)
    rng = np.random.default_rng(0)
    states = [member(ensemble.members, i) for i in range(N)]
    for step in range(20):
        sample = tiny.sample(rng, N, dtype=np.float64)
        states = loop_update(states, sample, step, algo, weight_votes, authors)
        ensemble, tally, report = functions.update(ensemble, tally, sample, KEY, numbers)
        assert bool(report.finite)
    for i in range(N):
        tiny.assert_trees_close(member(ensemble.members, i), states[i], 1e-9)


@pytest.mark.parametrize("switches", [{}, AUTHORS], ids=["ours", "authors"])
def test_one_member_equals_an_independently_written_sac(double: None, switches: dict[str, Any]) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=1, **switches)
    plain = PlainSAC(member(ensemble.members, 0), bool(switches))
    rng = np.random.default_rng(1)
    for step in range(5):
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    state = member(ensemble.members, 0)
    tiny.assert_trees_close(state.actor, plain.actor, 1e-9)
    tiny.assert_trees_close([member(state.critics, k) for k in range(2)], plain.critics, 1e-9)
    tiny.assert_trees_close([member(state.targets, k) for k in range(2)], plain.targets, 1e-9)
    tiny.assert_trees_close(state.log_alpha, plain.log_alpha, 1e-9)


def test_one_td3_member_equals_an_independently_written_td3(double: None) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble("td3", ensemble_size=1)
    plain = PlainTD3(member(ensemble.members, 0))
    rng = np.random.default_rng(2)
    for step in range(5):
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    state = member(ensemble.members, 0)
    tiny.assert_trees_close([member(state.critics, k) for k in range(2)], plain.critics, 1e-9)
    tiny.assert_trees_close(state.slow.actor, plain.actor, 1e-9)
    tiny.assert_trees_close(state.slow.target_actor, plain.target_actor, 1e-9)
    tiny.assert_trees_close([member(state.slow.target_critics, k) for k in range(2)], plain.targets, 1e-9)


def test_one_discor_member_equals_an_independently_written_discor(double: None) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble("discor", ensemble_size=1)
    plain = PlainDisCor(member(ensemble.members, 0))
    assert [layer.weight.shape[1:] for layer in member(ensemble.members.errors, 0).layers] == [
        (5, 6),
        (6, 6),
        (6, 6),
        (6, 1),
    ]  # one layer more than the critics
    rng = np.random.default_rng(3)
    for step in range(5):
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    state = member(ensemble.members, 0)
    tiny.assert_trees_close([member(state.inner.critics, k) for k in range(2)], plain.sac.critics, 1e-9)
    tiny.assert_trees_close(state.inner.actor, plain.sac.actor, 1e-9)
    tiny.assert_trees_close([member(state.errors, k) for k in range(2)], plain.errors, 1e-9)
    tiny.assert_trees_close([member(state.targets, k) for k in range(2)], plain.targets, 1e-9)
    tiny.assert_trees_close(list(state.temperature), plain.temperatures, 1e-9)


def test_member_i_is_the_same_agent_whatever_the_size_of_the_ensemble(double: None) -> None:
    """With the weights off, members have nothing in common but the batch."""
    rng = np.random.default_rng(2)
    samples = [tiny.sample(rng, 5, dtype=np.float64) for _ in range(5)]
    ends = {}
    for size in (1, 2, 5):
        functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=size, weighting="none")
        for sample in samples:
            cut = sample._replace(mask=sample.mask[:, :size])
            ensemble, tally, _ = functions.update(ensemble, tally, cut, KEY, numbers)
        ends[size] = ensemble.members
    tiny.assert_trees_close(member(ends[1], 0), member(ends[5], 0), 1e-12)
    tiny.assert_trees_close(member(ends[2], 1), member(ends[5], 1), 1e-12)


@pytest.fixture(scope="module")
def three() -> Any:
    return tiny.ensemble(ensemble_size=N)


def copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def test_a_member_whose_mask_is_zero_does_not_move(three: Any) -> None:
    functions, numbers, ensemble, tally = three
    sample = tiny.sample(np.random.default_rng(3), N)
    mask = np.array(sample.mask)
    mask[:, 1] = False
    mask[:, [0, 2]] = True
    after, _, _ = functions.update(copy(ensemble), copy(tally), sample._replace(mask=mask), KEY, numbers)
    learned = ("actor", "critics", "targets", "log_alpha")
    for name in learned:
        assert tiny.same_bits(member(getattr(after.members, name), 1), member(getattr(ensemble.members, name), 1))
        assert not tiny.same_bits(member(getattr(after.members, name), 0), member(getattr(ensemble.members, name), 0))


def test_members_meet_only_in_the_weight(three: Any) -> None:
    """Perturbing member 2 changes member 0 through the weight, and not at all at temperature 0."""
    functions, numbers, ensemble, tally = three
    sample = tiny.sample(np.random.default_rng(4), N, prob=1.0)
    other = copy(ensemble.members)
    bump = jax.tree.map(lambda x: x.at[2].add(0.5), other.targets)
    moved = Ensemble(other._replace(targets=bump), ensemble.step)

    def member_0(state: Ensemble, temperature: float) -> Any:
        changed = numbers._replace(ensemble=numbers.ensemble._replace(temperature=jnp.asarray(temperature)))
        after, _, _ = functions.update(copy(state), copy(tally), sample, KEY, changed)
        return member(after.members, 0)

    assert tiny.same_bits(member_0(ensemble, 0.0), member_0(moved, 0.0))
    assert not tiny.same_bits(member_0(ensemble, 20.0).critics, member_0(moved, 20.0).critics)
    assert tiny.same_bits(member_0(ensemble, 20.0).log_alpha, member_0(moved, 20.0).log_alpha)  # never weighted


def test_a_fresh_sample_for_the_weight_is_another_action_than_the_backups() -> None:
    """The same votes would make the same weight."""
    weights = []
    for action in ("backup", "fresh"):
        functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=N, weight_action=action)
        sample = tiny.sample(np.random.default_rng(9), N)
        _, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
        weights.append(float(tally.sums["disagreement_mean"]))
    assert weights[0] != weights[1]


def test_random_weights_are_uniform_between_a_half_and_one_for_all_members_alike() -> None:
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=2, weighting="random")
    rng = np.random.default_rng(5)
    for _ in range(200):
        ensemble, tally, _ = functions.update(ensemble, tally, tiny.sample(rng, 2), KEY, numbers)
    means = {name: float(total / tally.updates) for name, total in tally.sums.items()}
    assert means["weight_mean"] == pytest.approx(0.75, abs=0.01)
    assert 0.5 <= means["weight_p05"] < 0.6
    assert 0.9 < means["weight_p95"] <= 1.0


def test_the_stored_mask_is_what_the_update_uses(three: Any) -> None:
    """Rows that no member may see can hold anything."""
    functions, numbers, ensemble, tally = three
    sample = tiny.sample(np.random.default_rng(6), N)
    mask = np.array(sample.mask)
    mask[0] = False
    wild = np.array(sample.batch.reward)
    wild[0] = 1e3
    results = [
        functions.update(
            copy(ensemble), copy(tally), sample._replace(mask=mask, batch=sample.batch._replace(reward=r)), KEY, numbers
        )[0]
        for r in (sample.batch.reward, wild)
    ]
    assert tiny.same_bits(*results)


def test_nothing_is_compiled_after_the_first_update(three: Any) -> None:
    functions, numbers, ensemble, tally = three
    ensemble, tally = copy(ensemble), copy(tally)
    rng = np.random.default_rng(7)
    ensemble, tally, _ = functions.update(ensemble, tally, tiny.sample(rng, N), KEY, numbers)
    compiled = functions.update._cache_size()
    for temperature in (1.0, 5.0, 10.0):
        changed = numbers._replace(ensemble=numbers.ensemble._replace(temperature=jnp.asarray(temperature)))
        ensemble, tally, _ = functions.update(ensemble, tally, tiny.sample(rng, N), KEY, changed)
    assert functions.update._cache_size() == compiled


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_update_that_is_not_finite_is_refused_and_named(three: Any, value: float) -> None:
    functions, numbers, ensemble, tally = three
    sample = tiny.sample(np.random.default_rng(8), N, prob=1.0)
    reward = np.array(sample.batch.reward)
    reward[3] = value
    bad = sample._replace(batch=sample.batch._replace(reward=reward))
    after, tally_after, report = functions.update(copy(ensemble), copy(tally), bad, KEY, numbers)
    assert not bool(report.finite)
    assert tiny.same_bits(after, ensemble)
    assert tiny.same_bits(tally_after, tally)
    names = functions.faults(ensemble, bad, KEY, numbers)
    assert names[0] == "critic_loss of member 0"
    assert "critics.layers.0.weight of member 2" in names
