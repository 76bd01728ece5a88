"""`examples/sunrise_sac.py`, which a reader of the paper reads first, does what the library does."""

import ast
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from tests.support import tiny
from tests.support.example import EXAMPLES, example
from tests.support.plain import KEY

N = 3
one_file = example("sunrise_sac")
ARGS = one_file.Args(ensemble_size=N, hidden=(6, 6), ucb_lambda=1.0)


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def layers(network: Any) -> Any:
    """A network of the library as the file has it."""
    return [(layer.weight, layer.bias) for layer in network.layers]


def parameters(agents: Any) -> Any:
    """What is learned by agents of the library, as the file has it."""
    return layers(agents.actor), layers(agents.critics), layers(agents.targets), agents.log_alpha


def test_its_agents_before_and_after_several_updates_and_their_actions_are_those_of_the_library(double: None) -> None:
    functions, numbers, ensemble, tally = tiny.ensemble("sac", ensemble_size=N)
    agents = one_file.new_agents(ARGS, jax.random.key(7), tiny.OBS, tiny.ACTION)
    start = jax.device_get(parameters(ensemble.members))
    tiny.assert_trees_close(start, tuple(agents[:4]), 1e-12)
    rng = np.random.default_rng(0)
    for step in range(6):
        sample = tiny.sample(rng, N, dtype=np.float64)
        ensemble, tally, report = functions.update(ensemble, tally, sample, KEY, numbers)
        agents, metrics = one_file.update(ARGS, agents, one_file.Batch(*sample.batch), sample.mask, KEY, step)
        assert bool(report.finite)
    assert max(jax.tree.leaves(jax.tree.map(lambda a, b: np.abs(a - b).max(), start, agents[:4]))) > 1e-3
    tiny.assert_trees_close(parameters(ensemble.members), tuple(agents[:4]), 1e-12)
    assert 0.5 < float(metrics["weight"]) < 1

    obs = rng.standard_normal((1, tiny.OBS))
    for counter in range(8):
        choice = functions.explore(ensemble.members, obs, np.zeros(1, np.int32), KEY, np.int32(counter), numbers)
        action = one_file.explore(ARGS, agents, obs[0], KEY, counter)
        np.testing.assert_allclose(action, choice.action[0], atol=1e-12)
    best = functions.exploit(ensemble.members, obs, numbers)[0]
    np.testing.assert_allclose(one_file.exploit(agents, obs[0]), best, atol=1e-12)


def test_it_trains_and_evaluates_with_masks_of_its_own_and_imports_nothing_of_the_package() -> None:
    tree = ast.parse((EXAMPLES / "sunrise_sac.py").read_text())
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in names if str(name).startswith("sunrise")]
    small = one_file.Args(
        total_timesteps=60, learning_starts=40, ensemble_size=2, hidden=(8, 8), batch_size=8, eval_freq=50,
        eval_episodes=1, bootstrap_prob=0.5,
    )  # fmt: skip
    rows = one_file.train(small)
    assert [row["timesteps"] for row in rows] == [50, 60]
    assert all(-2000 < row["mean_return"] < 0 for row in rows)
    replay = one_file.Replay(small, 3, 1, np.random.default_rng(0))
    for t in range(1000):
        replay.add(np.full(3, t), 0.5, t, 0.99, np.full(3, t + 1))
    batch, masks = replay.sample(5000)
    assert masks.mean() == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(batch.next_obs[:, 0], batch.reward + 1)
    assert np.array_equal(masks, replay.masks[batch.reward.astype(int)])  # the mask that was stored, not a new one
