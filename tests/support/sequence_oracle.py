"""Streams of transitions, and what a loop over lists of them says a sequence buffer must give."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np

from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore, Store
from sunrise.types import Batch, Collected

GAMMA = 0.9
MEMBERS = 3


class Row(NamedTuple):
    """One transition in the oracle's lists."""

    obs: Any
    action: np.ndarray
    reward: float
    discount: float
    next_obs: Any
    mask: np.ndarray
    ended: bool


class Window(NamedTuple):
    """What the oracle expects of the window that starts with a transition."""

    reward: float
    discount: float
    next_obs: Any


def naive_window(rows: list[Row], t: int, n: int) -> Window | None:
    """The n-step window by a loop; None while it is open."""
    total = 0.0
    for k in range(1, n + 1):
        if t + k > len(rows):
            return None
        last = rows[t + k - 1]
        total += GAMMA ** (k - 1) * last.reward
        if last.ended or k == n:
            return Window(total, GAMMA**k * (last.discount > 0), last.next_obs)
    raise AssertionError


def vectors(rng: np.random.Generator, size: tuple[int, ...]) -> Iterator[tuple[Any, Any, bool]]:
    """Episodes of dicts of vectors: before, after, ended."""

    def observation() -> dict[str, np.ndarray]:
        return {"a": rng.normal(size=size).astype(np.float32), "b": rng.integers(9, size=2)}

    obs = observation()
    while True:
        next_obs, ended = observation(), bool(rng.random() < 0.25)
        yield obs, next_obs, ended
        obs = observation() if ended else next_obs


def stacks(
    rng: np.random.Generator, size: tuple[int, ...], ends: float = 0.25, jumps: float = 0
) -> Iterator[tuple[Any, Any, bool]]:
    """Episodes of stacks that begin in each way there is, with black and repeated frames among the others."""
    picture = size[1:]

    def frame() -> np.ndarray:
        return rng.integers(256, size=picture, dtype=np.uint8) * rng.integers(2, dtype=np.uint8)

    def first(last: np.ndarray) -> np.ndarray:
        new = frame()
        before = (np.zeros_like(last[1:]), np.broadcast_to(new, last[1:].shape), last[1:], rng.permutation(last)[1:])
        return np.concatenate([before[rng.integers(4)], new[None]])

    def moved_on(last: np.ndarray) -> np.ndarray:
        if rng.random() < jumps:  # not a stack at all
            return np.stack([frame() for _ in last])
        new = last[-1] if rng.random() < 0.2 else frame()
        return np.concatenate([last[1:], new[None]])

    obs = first(np.zeros(size, np.uint8))
    while True:
        next_obs, ended = moved_on(obs), bool(rng.random() < ends)
        yield obs, next_obs, ended
        obs = first(next_obs) if ended else next_obs


def fill(replay: SequenceReplay, streams: list[Any], steps: int, rng: np.random.Generator) -> list[list[Row]]:
    """Add to the buffer what the streams give, now and then not of all environments, and keep lists of it."""
    lists: list[list[Row]] = [[] for _ in streams]
    for _ in range(steps):
        env = np.flatnonzero(rng.random(len(streams)) < 0.9)
        for e in env:
            obs, next_obs, ended = next(streams[e])
            terminated = ended and rng.random() < 0.5
            action, mask = rng.normal(size=2).astype(np.float32), rng.random(MEMBERS) < 0.5
            lists[e].append(Row(obs, action, rng.normal(), 0.0 if terminated else GAMMA, next_obs, mask, ended))
        add(replay, env, [lists[e][-1] for e in env])
    return lists


def add(replay: SequenceReplay, env: np.ndarray, rows: list[Row]) -> None:
    if not rows:
        return
    obs, action, reward, discount, next_obs, mask, ended = (
        jax.tree.map(lambda *x: np.stack(x), *column) for column in zip(*rows, strict=True)
    )
    batch = Batch(obs, action, reward.astype(np.float32), discount.astype(np.float32), next_obs)
    replay.add(Collected(batch, env, ended, []), mask)


def build(store: Store, n: int = 1, prioritised: bool = False, seed: int = 0, **options: Any) -> SequenceReplay:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(np.float32)
    return SequenceReplay(store, (2,), dtype, MEMBERS, rng, GAMMA, n, prioritised=prioritised, **options)


def check(replay: SequenceReplay, lists: list[list[Row]]) -> set[tuple[int, int]]:
    """Sample until everything was seen, compare each row with the oracle, and say which transitions came."""
    rows, n = replay.store.rows, replay.n_step
    sample, index = replay.sample(1000, 0)
    drawn = set()
    for b, slot in enumerate(index.tolist()):
        env, place = divmod(slot, rows)
        t = len(lists[env]) - 1 - (len(lists[env]) - 1 - place) % rows
        assert t >= 0
        first, window = lists[env][t], naive_window(lists[env], t, n)
        assert window is not None, "a window was drawn that is still open"
        if (env, t) in drawn:
            continue
        drawn.add((env, t))
        got = jax.tree.map(lambda x, b=b: x[b], sample.batch)
        jax.tree.map(np.testing.assert_array_equal, got.obs, first.obs)
        jax.tree.map(np.testing.assert_array_equal, got.next_obs, window.next_obs)
        np.testing.assert_array_equal(got.action, first.action)
        np.testing.assert_array_equal(sample.mask[b], first.mask)
        np.testing.assert_allclose(got.reward, window.reward, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got.discount, window.discount, rtol=1e-6)
    return drawn


def closed(lists: list[list[Row]], rows: int, n: int) -> set[tuple[int, int]]:
    """Every transition of the rings whose window is closed."""
    held = {(e, t) for e, of_env in enumerate(lists) for t in range(max(0, len(of_env) - rows), len(of_env))}
    return {(e, t) for e, t in held if naive_window(lists[e], t, n) is not None}


def filled(prioritised: bool = True, seed: int = 0, **options: Any) -> SequenceReplay:
    """A buffer of frames that has gone round more than once."""
    space = gym.spaces.Box(0, 255, (3, 2, 2), np.uint8)
    replay = build(FrameStore(space, 60, 2), 3, prioritised, seed, **options)
    rng = np.random.default_rng(seed)
    fill(replay, [stacks(rng, space.shape) for _ in range(2)], 80, rng)
    return replay
