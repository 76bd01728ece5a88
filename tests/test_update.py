"""One compiled update of all members equals a plain loop over agents, and the paper's equations."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.ensemble import Ensemble
from sunrise.learners.sac import SACSettings, SACState, sac, sac_numbers
from sunrise.networks import MLP
from sunrise.types import Learner, Sample
from tests import tiny

KEY = jax.random.key(11)
N = 3


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def member(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


def numpy_weight(votes: np.ndarray, temperature: float) -> np.ndarray:
    std = np.sqrt(((votes - votes.mean(0)) ** 2).mean(0))
    return np.asarray(1 / (1 + np.exp(std * temperature)) + 0.5)


@cache
def single_agent(settings: SACSettings) -> Learner:
    """One agent's functions, each compiled on its own."""
    one = sac(tiny.OBS, tiny.ACTION, settings, sac_numbers(settings, tiny.ACTION))
    return one._replace(bellman=jax.jit(one.bellman), judge_next=jax.jit(one.judge_next), learn=jax.jit(one.learn))


def loop_update(states: list[SACState], sample: Sample, step: int, settings: SACSettings, votes_by: str) -> list[Any]:
    """The oracle: N separate agents, one after the other; only the weight sees all of them."""
    one = single_agent(settings)
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
def test_the_vectorised_update_equals_a_loop_over_agents(double: None, weight_votes: str) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=N, weight_votes=weight_votes)
    rng = np.random.default_rng(0)
    states = [member(ensemble.members, i) for i in range(N)]
    for step in range(20):
        sample = tiny.sample(rng, N, dtype=np.float64)
        states = loop_update(states, sample, step, SACSettings(net_arch=(6, 6)), weight_votes)
        ensemble, tally, report = functions.update(ensemble, tally, sample, KEY, numbers)
        assert bool(report.finite)
    for i in range(N):
        tiny.assert_trees_close(member(ensemble.members, i), states[i], 1e-9)


AUTHORS: dict[str, Any] = {
    "init": "rlkit",
    "target_init": "random",
    "loss_normaliser": "mask",
    "weight_action": "fresh",
    "alpha_in_target": "after",
}


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


class PlainSAC:
    """SAC written from its paper with none of our code but the containers: two critics by name, Adam by hand."""

    def __init__(self, start: SACState, authors: bool) -> None:
        self.actor, self.log_alpha, self.authors = start.actor, start.log_alpha, authors
        self.critics = [member(start.critics, k) for k in range(2)]
        self.targets = [member(start.targets, k) for k in range(2)]
        parts = (self.actor, *self.critics, self.log_alpha)
        self.moments = [jax.tree.map(lambda x: (jnp.zeros_like(x), jnp.zeros_like(x)), part) for part in parts]
        self.count = 0

    @staticmethod
    def forward(net: MLP, x: Any) -> Any:
        for layer in net.layers[:-1]:
            x = jnp.maximum(jnp.einsum("bi,io->bo", x, layer.weight) + layer.bias, 0)
        return jnp.einsum("bi,io->bo", x, net.layers[-1].weight) + net.layers[-1].bias

    def q(self, net: MLP, obs: Any, action: Any) -> Any:
        return self.forward(net, jnp.concatenate([obs, action], 1))[:, 0]

    def policy(self, actor: MLP, obs: Any, key: Any) -> tuple[Any, Any]:
        out = self.forward(actor, obs)
        mean, log_std = out[:, : tiny.ACTION], jnp.clip(out[:, tiny.ACTION :], -20, 2)
        noise = jax.random.normal(key, mean.shape)
        before = mean + jnp.exp(log_std) * noise
        action = jnp.tanh(before)
        density = jax.scipy.stats.norm.logpdf(before, mean, jnp.exp(log_std)) - jnp.log(1 - action**2 + 1e-6)
        return action, density.sum(1)

    def adam(self, which: int, value: Any, gradient: Any) -> Any:
        t, lr = self.count, 3e-4

        def one(x: Any, g: Any, m: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any]]:
            first, second = 0.9 * m[0] + 0.1 * g, 0.999 * m[1] + 0.001 * g**2
            return x - lr * (first / (1 - 0.9**t)) / (jnp.sqrt(second / (1 - 0.999**t)) + 1e-8), (first, second)

        leaves, tree = jax.tree.flatten(value)
        moments = jax.tree.leaves(self.moments[which], is_leaf=lambda x: isinstance(x, tuple) and len(x) == 2)
        moved = [one(x, g, m) for x, g, m in zip(leaves, jax.tree.leaves(gradient), moments, strict=True)]
        self.moments[which] = [m for _, m in moved]
        return jax.tree.unflatten(tree, [x for x, _ in moved])

    def update(self, sample: Sample, step: int) -> None:
        self.count += 1
        b, mask = jax.tree.map(jnp.asarray, sample.batch), jnp.asarray(sample.mask[:, 0], float)
        rows = mask.sum() + 1 if self.authors else len(mask)
        k_now, k_next, _ = jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, step), 0), 3)
        log_prob_now = self.policy(self.actor, b.obs, k_now)[1]
        alpha_gradient = -(mask * (log_prob_now - tiny.ACTION)).sum() / rows
        old_log_alpha = self.log_alpha
        self.log_alpha = self.adam(3, self.log_alpha, alpha_gradient)
        alpha = jnp.exp(self.log_alpha if self.authors else old_log_alpha)
        next_action, next_log_prob = self.policy(self.actor, b.next_obs, k_next)
        values = [self.q(t, b.next_obs, next_action) for t in self.targets]
        target = b.reward + b.discount * (jnp.minimum(*values) - alpha * next_log_prob)
        for k in range(2):
            gradient = jax.grad(lambda c: (mask * (self.q(c, b.obs, b.action) - target) ** 2).sum() / rows)(
                self.critics[k]
            )
            self.critics[k] = self.adam(1 + k, self.critics[k], gradient)

        def actor_loss(actor: MLP) -> Any:
            action, log_prob = self.policy(actor, b.obs, k_now)
            worst = jnp.minimum(*[self.q(c, b.obs, action) for c in self.critics])
            return (mask * (alpha * log_prob - worst)).sum() / rows

        self.actor = self.adam(0, self.actor, jax.grad(actor_loss)(self.actor))
        for k in range(2):
            self.targets[k] = jax.tree.map(lambda t, c: 0.995 * t + 0.005 * c, self.targets[k], self.critics[k])


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
        changed = (numbers[0]._replace(temperature=jnp.asarray(temperature)), numbers[1])
        after, _, _ = functions.update(copy(state), copy(tally), sample, KEY, changed)
        return member(after.members, 0)

    assert tiny.same_bits(member_0(ensemble, 0.0), member_0(moved, 0.0))
    assert not tiny.same_bits(member_0(ensemble, 20.0).critics, member_0(moved, 20.0).critics)
    assert tiny.same_bits(member_0(ensemble, 20.0).log_alpha, member_0(moved, 20.0).log_alpha)  # never weighted


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
        changed = (numbers[0]._replace(temperature=jnp.asarray(temperature)), numbers[1])
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
    assert "critic_loss" in names
    assert "critics.layers.0.weight of member 2" in names
