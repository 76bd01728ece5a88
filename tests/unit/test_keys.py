"""No random number is drawn twice by accident.

In this JAX `split(key, n)[i]` and `fold_in(key, i)` are the same key, so a key that is split may not be folded with a
small number too. Every learner's functions are traced here, and every use of every key is written down.
"""

from collections import defaultdict
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from sunrise.config.algorithms import ALGORITHMS, algorithm
from sunrise.config.settings import flatten_config, with_settings
from sunrise.types import Batch
from tests.support import tiny

STATES, BOX = tiny.spaces()
PICTURES = gym.spaces.Box(0, 255, (2, 16, 16, 3), np.uint8)
TINY = {"net_arch": (4,), "filters": 2, "conv_layers": 2, "feature_dim": 4, "crop_size": 14, "n_atoms": 3}
SWITCHES: dict[str, dict[str, Any]] = {
    "sac": {"weight_action": "fresh", "alpha_in_target": "after", "n_critics": 3},
    "td3": {"n_critics": 3},
}


def bits(key: Any) -> Any:
    """What tells keys apart."""
    return jax.random.key_data(key).tobytes()


class Watch:
    """Who was made of whom, by which way, and which keys were drawn from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ways: dict[bytes, set[str]] = defaultdict(set)
        self.children: dict[bytes, set[tuple[bytes, str]]] = defaultdict(set)
        for name in ("split", "fold_in", "normal", "uniform", "randint"):
            monkeypatch.setattr(jax.random, name, self.watched(name, getattr(jax.random, name)))

    def watched(self, name: str, function: Any) -> Any:
        def call(key: Any, *arguments: Any, **more: Any) -> Any:
            with jax.ensure_compile_time_eval():  # keys are numbers while all else is only traced
                self.ways[bits(key)].add(name if name in ("split", "fold_in") else "draw")
                if name not in ("split", "fold_in"):
                    return function(key, *arguments, **more)
                made = list(function(key, *arguments)) if name == "split" else [function(key, *arguments)]
                for child in made:
                    self.children[bits(child)].add((bits(key), name))
            return made if name == "split" else made[0]

        return call


@pytest.mark.parametrize("algo", sorted(ALGORITHMS))
def test_no_key_is_made_by_two_ways_or_drawn_from_and_split(algo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = algorithm(algo).defaults
    wanted = {**TINY, **SWITCHES.get(algo, {})}
    known = {name: value for name, value in wanted.items() if name in flatten_config(config)}
    config = with_settings(config, known)
    pictures = algo in ("rad", "drq", "curl")
    actions = gym.spaces.Discrete(3) if algo in ("rainbow", "dqn") else BOX
    parts = algorithm(algo).fit(config, PICTURES if pictures else STATES, actions)
    one = parts.make_learner(parts.numbers)
    batch = picture_batch() if pictures else tiny.batch(np.random.default_rng(0))
    if algo in ("rainbow", "dqn"):
        batch = batch._replace(action=np.zeros(tiny.ROWS, np.int32))
    batch = jax.tree.map(jax.numpy.asarray, batch)
    mask = jax.numpy.ones(tiny.ROWS)
    state = jax.eval_shape(one.init, jax.random.key(0))
    watch, member, view = Watch(monkeypatch), jax.random.key(1), jax.random.key(2)

    def update(state: Any, batch: Batch) -> Any:
        seen = one.augment(batch, view)
        backup = one.bellman(state, seen, mask, member)
        one.judge_next(state, seen, backup.action, member)
        return one.learn(state, seen, mask, backup, mask, jax.numpy.asarray(1), member)

    jax.eval_shape(update, state, batch)
    for key, ways in watch.ways.items():
        assert "draw" not in ways or len(ways) == 1, (key, ways)
    for child, parents in watch.children.items():
        assert len(parents) == 1, (child, parents)
    assert watch.ways or algo == "random"


def picture_batch() -> Batch:
    rng = np.random.default_rng(0)
    small = tiny.sample(rng, 1).batch
    shape = (tiny.ROWS, *PICTURES.shape)
    return small._replace(obs=rng.integers(0, 255, shape, np.uint8), next_obs=rng.integers(0, 255, shape, np.uint8))


def test_the_watch_notices_the_collision_that_once_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fold_in(key, 1)` beside `split(key, 3)`: the same key by two ways."""
    watch = Watch(monkeypatch)
    key = jax.random.key(5)
    parts = jax.random.split(key, 3)
    assert bits(parts[1]) == bits(jax.random.fold_in(key, 1))
    assert watch.ways[bits(key)] == {"split", "fold_in"}
    assert len(watch.children[bits(parts[1])]) == 2
