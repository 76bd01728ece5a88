"""Stronger base learners: each switch equals an independently written oracle, and off it changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise import SAC
from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.resolve import defaults_for
from sunrise.config.settings import flatten_config, with_settings
from sunrise.errors import SunriseError
from sunrise.learners.critics import Use
from sunrise.networks.simba import simba
from tests.support import tiny
from tests.support.plain import KEY, member
from tests.support.plain_redq import PlainManyTD3, PlainREDQ, forward
from tests.support.plain_simba import PlainSimba

REDQ: dict[str, Any] = {
    "n_critics": 4,
    "critic_subset": 2,
    "actor_value": "mean",
    "policy_delay": 3,
    "update_order": "together",
}
DROQ: dict[str, Any] = {**REDQ, "n_critics": 2, "layer_norm": True, "dropout": 0.3}


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("switches", [REDQ, DROQ], ids=["redq", "droq"])
def test_one_member_equals_an_independently_written_redq_or_droq(double: None, switches: dict[str, Any]) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=1, **switches)
    plain = PlainREDQ(member(ensemble.members, 0), 3, 2, switches.get("dropout", 0.0))
    rng = np.random.default_rng(1)
    for step in range(4):
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, report = functions.update(ensemble, tally, sample, KEY, numbers)
        assert bool(report.finite)
    state = member(ensemble.members, 0)
    tiny.assert_trees_close([member(state.critics, k) for k in range(plain.count)], plain.critics, 1e-9)
    tiny.assert_trees_close([member(state.targets, k) for k in range(plain.count)], plain.targets, 1e-9)
    tiny.assert_trees_close(state.actor, plain.actor, 1e-9)
    tiny.assert_trees_close(state.log_alpha, plain.log_alpha, 1e-9)


def test_one_td3_member_with_many_normalised_critics_equals_an_independently_written_one(double: None) -> None:
    switches = {"n_critics": 3, "critic_subset": 2, "actor_value": "mean", "layer_norm": True}
    functions, numbers, ensemble, tally = tiny.ensemble("td3", ensemble_size=1, **switches)
    plain = PlainManyTD3(member(ensemble.members, 0), 2)
    rng = np.random.default_rng(2)
    for step in range(5):
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    state = member(ensemble.members, 0)
    tiny.assert_trees_close([member(state.critics, k) for k in range(3)], plain.critics, 1e-9)
    tiny.assert_trees_close([member(state.slow.target_critics, k) for k in range(3)], plain.targets, 1e-9)
    tiny.assert_trees_close(state.slow.actor, plain.actor, 1e-9)


def test_every_critic_of_every_member_votes_and_judges_without_dropout_when_nothing_is_random() -> None:
    functions, numbers, ensemble, _ = tiny.ensemble(ensemble_size=2, **{**DROQ, "n_critics": 3})
    rng = np.random.default_rng(3)
    obs, action = rng.standard_normal((4, tiny.OBS)), np.tanh(rng.standard_normal((4, tiny.ACTION)))
    found = functions.uncertainty(ensemble.members, obs.astype(np.float32), action.astype(np.float32), numbers)
    rows = np.concatenate([obs, action], 1)
    nets = [member(member(ensemble.members.critics, i), k) for i in range(2) for k in range(3)]
    votes = np.stack([forward(net, jnp.asarray(rows, jnp.float32), None, 0.0)[:, 0] for net in nets])
    np.testing.assert_allclose(found, votes.std(axis=0), rtol=1e-4)


def test_no_two_uses_of_a_key_are_one() -> None:
    """In this JAX `fold_in(key, i)` is `split(key, n)[i]`: a use must lie beyond every split."""
    key = jax.random.key(3)
    keys = [*jax.random.split(key, 64), *(jax.random.fold_in(key, use) for use in Use)]
    words = {tuple(np.asarray(jax.random.key_data(k)).tolist()) for k in keys}
    assert len(words) == 64 + len(Use)


def test_an_actor_that_waits_cannot_be_in_the_target() -> None:
    for switch in ({"alpha_in_target": "after"}, {"update_order": "actor"}):
        with pytest.raises(SunriseError, match="policy_delay is 20"):
            tiny.ensemble(policy_delay=20, **switch)


def test_presets_are_the_settings_of_their_sources_and_yield_to_the_task() -> None:
    redq = flatten_config(defaults_for(ALGORITHMS["sac"], "Hopper-v5", "redq"))
    assert (redq["n_critics"], redq["critic_subset"], redq["gradient_steps"], redq["policy_delay"]) == (10, 2, 20, 20)
    assert (redq["actor_value"], redq["init"], redq["learning_starts"]) == ("mean", "xavier", 5000)
    assert redq["target_entropy"] == -1.0  # MBPO's for this task; elsewhere minus the number of actions
    droq = flatten_config(defaults_for(ALGORITHMS["sac"], "dmc/cheetah-run", "droq"))
    assert (droq["n_critics"], droq["layer_norm"], droq["dropout"], droq["target_entropy"]) == (2, True, 0.01, "auto")
    assert (droq["action_repeat"], droq["ent_coef"]) == (4, "auto")  # the task's own, but for what DroQ says itself
    assert redq["ensemble_size"] == droq["ensemble_size"] == 5
    assert defaults_for(ALGORITHMS["sac"], "Hopper-v5", "ours") == defaults_for(ALGORITHMS["sac"], "Hopper-v5")


@pytest.mark.parametrize(
    ("algo", "preset", "words"),
    [
        ("sac", "drog", "no preset 'drog' for sac, only ours, authors, redq, droq, simba.*Did you mean droq"),
        ("td3", "redq", "no preset 'redq' for td3, only ours, authors"),
        ("rad", "authors", "published no code for rad"),
    ],
)
def test_an_unknown_preset_is_refused_with_the_nearest_right_one(algo: str, preset: str, words: str) -> None:
    with pytest.raises(SunriseError, match=words):
        defaults_for(ALGORITHMS[algo], "", preset)


SIMBA: dict[str, Any] = {
    **ALGORITHMS["sac"].presets["simba"].settings,
    "simba_actor": (4, 1),
    "simba_critic": (6, 2),
}


def test_one_member_equals_an_independently_written_simba(double: None) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=1, **SIMBA)
    assert functions.observe is not None
    plain = PlainSimba(member(ensemble.members, 0))
    rng = np.random.default_rng(1)
    for step in range(3):
        seen = 3 + 2 * rng.standard_normal((2, tiny.OBS))  # of two environments, far from 0
        plain.statistics.seen.append(seen)
        ensemble = ensemble._replace(members=functions.observe(ensemble.members, seen, numbers))
        sample = tiny.sample(rng, 1, dtype=np.float64)
        plain.update(sample, step)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    state = member(ensemble.members, 0).inner
    tiny.assert_trees_close([member(state.critics, k) for k in range(2)], plain.critics, 1e-9)
    tiny.assert_trees_close([member(state.targets, k) for k in range(2)], plain.targets, 1e-9)
    tiny.assert_trees_close(state.actor, plain.actor, 1e-9)
    tiny.assert_trees_close(state.log_alpha, plain.log_alpha, 1e-9)


def test_simba_starts_orthogonal_outside_and_as_he_does_inside(double: None) -> None:
    net = simba(jax.random.key(1), 3, (32, 2), (2, 2))
    np.testing.assert_allclose(net.embed.weight @ net.embed.weight.T, np.eye(3), atol=1e-9)
    for head in np.split(np.asarray(net.head.weight), 2, axis=1):
        np.testing.assert_allclose(head.T @ head, np.eye(2), atol=1e-9)
    for block in net.blocks:
        for layer, inputs in ((block.wide, 32), (block.narrow, 128)):
            assert float(jnp.std(layer.weight)) == pytest.approx((2 / inputs) ** 0.5, rel=0.05)
            assert float(jnp.abs(layer.weight).max()) <= 2 * (2 / inputs) ** 0.5 / 0.8796
    assert not np.allclose(net.blocks[0].wide.weight, net.blocks[1].wide.weight)


def test_the_vectorised_update_equals_a_loop_over_agents(double: None) -> None:
    """With the weights off, so that members have nothing in common but the batch."""
    switches = {**DROQ, "n_critics": 3}
    functions, numbers, ensemble, tally = tiny.ensemble(ensemble_size=2, weighting="none", **switches)
    config = with_settings(ALGORITHMS["sac"].defaults, {"net_arch": (6, 6), **switches})
    parts = ALGORITHMS["sac"].fit(config, *tiny.spaces())
    one = parts.make_learner(parts.numbers)
    bellman, learn = jax.jit(one.bellman), jax.jit(one.learn)
    states = [member(ensemble.members, i) for i in range(2)]
    rng = np.random.default_rng(6)
    for step in range(4):
        sample = jax.tree.map(jnp.asarray, tiny.sample(rng, 2, dtype=np.float64))
        for i in range(2):
            mask, key = jnp.asarray(sample.mask[:, i], float), jax.random.fold_in(jax.random.fold_in(KEY, step), i)
            backup = bellman(states[i], sample.batch, mask, key)
            states[i], _ = learn(states[i], sample.batch, mask, backup, jnp.ones(tiny.ROWS), jnp.asarray(step), key)
        ensemble, tally, _ = functions.update(ensemble, tally, sample, KEY, numbers)
    for i in range(2):
        tiny.assert_trees_close(member(ensemble.members, i), states[i], 1e-9)


def test_the_statistics_of_the_observations_are_counted_once_each_and_saved_with_the_agent(tmp_path: Path) -> None:
    small: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 100}
    model = SAC("MlpPolicy", "Pendulum-v1", normalise_observations=True, learning_starts=20, eval_freq=0, **small)
    model.learn(30, progress_bar=False, log_interval=None)
    assert model.trainer is not None
    moments = model.ensemble.members.moments
    seen = model.trainer.replay.rings()["transitions"].arrays["obs"][:30]
    np.testing.assert_allclose(moments.mean, [seen.mean(axis=0)] * 2, rtol=1e-4)
    np.testing.assert_allclose(moments.variance, [seen.var(axis=0)] * 2, rtol=1e-3)
    np.testing.assert_allclose(moments.total, 30, rtol=1e-4)
    model.save(tmp_path / "model")
    again = SAC.load(tmp_path / "model")
    assert tiny.same_bits(again.ensemble.members, model.ensemble.members)
    obs = np.asarray([0.1, 0.9, 3.0], np.float32)
    assert np.array_equal(again.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
