"""The sequence buffer gives what a loop over lists gives, and every stack exactly as it was."""

from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunrise.errors import SunriseError
from sunrise.replay import memory
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore, PlainStore
from sunrise.replay.uniform import UniformReplay
from sunrise.rings import Rows
from sunrise.types import Batch, Collected
from tests.support.sequence_oracle import GAMMA, MEMBERS, Row, add, build, check, closed, fill, filled, stacks, vectors

setting = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31),
        "envs": st.integers(1, 3),
        "rows": st.integers(4, 15),
        "n": st.integers(1, 4),
        "steps": st.integers(6, 70),
        "prioritised": st.booleans(),
    }
)


@settings(max_examples=40, deadline=None)
@given(setting)
def test_windows_of_plain_observations_are_those_of_a_loop(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (3,), np.float32), "b": gym.spaces.Box(0, 9, (2,), np.int64)})
    replay = build(PlainStore(space, case["rows"] * case["envs"], case["envs"]), case["n"], case["prioritised"])
    lists = fill(replay, [vectors(rng, (3,)) for _ in range(case["envs"])], case["steps"], rng)
    expected = closed(lists, case["rows"], case["n"])
    if expected:
        assert check(replay, lists) == expected
    else:
        with pytest.raises(SunriseError, match="learning_starts"):
            replay.sample(1, 0)


@settings(max_examples=40, deadline=None)
@given(setting, st.integers(1, 4), st.sampled_from([(2, 3), (3, 2, 3)]), st.sampled_from([0, 0.3]))
def test_stacks_come_back_exactly_however_episodes_begin(
    case: dict[str, Any], depth: int, picture: tuple[int, ...], jumps: float
) -> None:
    rng = np.random.default_rng(case["seed"])
    space = gym.spaces.Box(0, 255, (depth, *picture), np.uint8)
    replay = build(FrameStore(space, case["rows"] * case["envs"], case["envs"]), case["n"], case["prioritised"])
    streams = [stacks(rng, (depth, *picture), jumps=jumps) for _ in range(case["envs"])]
    lists = fill(replay, streams, case["steps"], rng)
    expected = {(env, t) for env, t in closed(lists, case["rows"], case["n"]) if t >= replay.tail[env]}
    if expected:
        assert check(replay, lists) == expected


@pytest.mark.parametrize(("n", "depth", "ends", "jumps"), [(1, 1, 1.0, 0), (3, 2, 0.3, 1.0), (60, 3, 0.02, 1.0)])
@pytest.mark.parametrize("prioritised", [False, True])
def test_where_frames_run_out_only_the_oldest_transitions_go(
    n: int, depth: int, ends: float, jumps: float, prioritised: bool
) -> None:
    rng = np.random.default_rng(0)
    size = (depth, 2, 2)
    replay = build(FrameStore(gym.spaces.Box(0, 255, size, np.uint8), 120, 2), n, prioritised)
    streams = [stacks(rng, size, ends, jumps), stacks(rng, size)]
    rows: list[list[Row]] = [[], []]
    lost = 0
    for _ in range(12):
        rows = [old + new for old, new in zip(rows, fill(replay, streams, 13, rng), strict=True)]
        expected = {(env, t) for env, t in closed(rows, 60, n) if t >= replay.tail[env]}
        if expected:
            assert check(replay, rows) == expected
        lost = max(lost, sum(min(len(of_env), 60) for of_env in rows) - len(replay))
    assert lost > 0


@pytest.mark.parametrize("start", ["zeros", "repeated", "continued"])
def test_an_episode_of_ten_transitions_takes_eleven_frames(start: str) -> None:
    rng = np.random.default_rng(0)
    space = gym.spaces.Box(0, 255, (4, 2, 2), np.uint8)
    store = FrameStore(space, 500)
    replay = build(store)
    obs = np.zeros(space.shape, np.uint8)
    for episode in range(1, 4):
        new = rng.integers(256, size=(1, 2, 2), dtype=np.uint8)
        before = {"zeros": np.zeros((3, 2, 2), np.uint8), "repeated": new.repeat(3, 0), "continued": obs[1:]}[start]
        obs = np.concatenate([before, new])
        for t in range(10):
            next_obs = np.concatenate([obs[1:], rng.integers(256, size=(1, 2, 2), dtype=np.uint8)])
            add(replay, np.array([0]), [Row(obs, np.zeros(2), 0, GAMMA, next_obs, np.ones(MEMBERS, bool), t == 9)])
            obs = next_obs
        assert store.written[0] == 11 * episode


def test_episodes_of_twenty_steps_need_no_more_frames_than_there_are() -> None:
    rng = np.random.default_rng(0)
    space = gym.spaces.Box(0, 255, (4, 2, 2), np.uint8)
    replay = build(FrameStore(space, 200), n=3)
    stream = stacks(rng, space.shape, ends=0)
    for t in range(900):
        obs, next_obs, _ = next(stream)
        ended = t % 20 == 19
        add(replay, np.array([0]), [Row(obs, np.zeros(2), 0, GAMMA, next_obs, np.ones(MEMBERS, bool), ended)])
        if ended:
            stream = stacks(rng, space.shape, ends=0)
    assert len(replay) == 200


def test_a_window_ends_where_somebody_reset_the_environment() -> None:
    rng = np.random.default_rng(0)
    box = gym.spaces.Box(0, 255, (2, 2, 2), np.uint8)
    for store in (PlainStore(box, 50), FrameStore(box, 50)):
        replay = build(store, n=3)
        rows: list[Row] = []
        for steps in (6, 1):  # two streams; the first is left in the middle of its episode
            stream = stacks(rng, box.shape, ends=0)
            for _ in range(steps):
                obs, next_obs, _ = next(stream)
                rows.append(Row(obs, np.zeros(2), rng.normal(), GAMMA, next_obs, np.ones(MEMBERS, bool), False))
                add(replay, np.array([0]), rows[-1:])
        rows[5] = rows[5]._replace(ended=True)
        assert check(replay, [rows]) == {(0, t) for t in range(6)}


def test_one_step_drawn_uniformly_is_the_uniform_buffer() -> None:
    rng = np.random.default_rng(3)
    space = gym.spaces.Box(-1, 1, (4,), np.float32)
    uniform = UniformReplay(64, space, (2,), np.dtype(np.float32), MEMBERS, np.random.default_rng(9))
    sequence = build(PlainStore(space, 64), seed=9)
    for _ in range(64):
        obs, next_obs = rng.normal(size=(2, 1, 4)).astype(np.float32)
        discount = np.array([GAMMA if rng.random() < 0.8 else 0], np.float32)
        batch = Batch(obs, rng.normal(size=(1, 2)), rng.normal(size=1).astype(np.float32), discount, next_obs)
        mask = rng.random((1, MEMBERS)) < 0.5
        for replay in (uniform, sequence):
            replay.add(Collected(batch, np.array([0]), discount == 0, []), mask)
    jax.tree.map(np.testing.assert_array_equal, uniform.sample(100, 0), sequence.sample(100, 0))


def arrays_of(replay: SequenceReplay) -> dict[str, np.ndarray]:
    """Everything that changes, by name, as views."""
    rings = {f"{n}/{key}": array for n, ring in replay.rings().items() for key, array in ring.arrays.items()}
    return rings | replay.counters()


@pytest.mark.parametrize("prioritised", [False, True])
def test_what_is_sampled_is_fresh(prioritised: bool) -> None:
    replay = filled(prioritised)
    kept = list(arrays_of(replay).values())
    before = [array.copy() for array in kept]
    for array in jax.tree.leaves(replay.sample(32, 0)[0]):
        assert not any(np.shares_memory(array, mine) for mine in kept)
        array[...] = 1
    for array, copy in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("prioritised", [False, True])
def test_a_buffer_loaded_from_its_arrays_goes_on_the_same(prioritised: bool) -> None:
    replay, other = filled(prioritised, seed=1), filled(prioritised, seed=2)
    rings = replay.rings()
    rows = {f"{n}/{key}": array for n, ring in rings.items() for key, array in ring.since(ring.oldest).items()}
    spans = {name: (ring.oldest, ring.written) for name, ring in rings.items()}
    other.restore(replay.state(), [Rows("all", spans, rows)])
    for seed in (3, 4):
        samples = [each.sample(40, 7) for each in (replay, other)]
        jax.tree.map(np.testing.assert_array_equal, *samples)
        for each in (replay, other):
            each.reprioritise(samples[0][1], np.random.default_rng(seed).random(40))
            rng = np.random.default_rng(seed)
            fill(each, [stacks(rng, (3, 2, 2)) for _ in range(2)], 20, rng)


@pytest.mark.parametrize(("shape", "limit"), [((4, 84, 84), 0.8e9), ((3, 100, 100, 3), 3.5e9)])
def test_a_hundred_thousand_stacks_take_the_memory_of_their_frames(
    shape: tuple[int, ...], limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(memory, "require", lambda needed, *_, **__: asked.append(needed))
    replay = build(FrameStore(gym.spaces.Box(0, 255, shape, np.uint8), 100_000), 20, True)
    assert asked == [replay.store.nbytes, replay.nbytes]
    assert replay.nbytes < limit


def test_nbytes_is_what_the_arrays_take() -> None:
    space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (3,)), "b": gym.spaces.Box(0, 9, (), np.int64)})
    for replay in (filled(True), filled(False), build(PlainStore(space, 101, 2), 4, True)):
        arrays = arrays_of(replay)
        black = replay.store.frames[-1].nbytes if isinstance(replay.store, FrameStore) else 0
        inner = 0 if replay.tree is None else replay.tree.nodes.nbytes - arrays["priority"].nbytes
        assert replay.nbytes == sum(array.nbytes for array in arrays.values()) + black + inner


def test_what_does_not_fit_is_refused_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    with pytest.raises(SunriseError, match="lower buffer_size"):
        FrameStore(space, 10**9)
    with pytest.raises(SunriseError, match="lower buffer_size"):
        PlainStore(space, 10**9)


def test_wrong_settings_are_refused() -> None:
    box = gym.spaces.Box(0, 255, (4, 2, 2), np.uint8)
    with pytest.raises(SunriseError, match="n_step"):
        build(PlainStore(box, 6, 2), n=4)
    with pytest.raises(SunriseError, match="importance_until"):
        build(PlainStore(box, 6), prioritised=True, importance_from=5, importance_until=5)
    with pytest.raises(SunriseError, match="uint8"):
        FrameStore(gym.spaces.Box(0, 1, (4, 2, 2), np.float32), 10)
    with pytest.raises(SunriseError, match="each of 3 environments"):
        PlainStore(box, 2, 3)


def test_stacks_of_a_real_game_come_back_through_the_collector() -> None:
    pytest.importorskip("ale_py")
    from sunrise.envs.atari import make_atari
    from sunrise.envs.vector import SyncEnvs
    from sunrise.run.collect import Collector

    env = SyncEnvs([lambda: make_atari("ALE/Breakout-v5")])
    rng = np.random.default_rng(0)
    collector = Collector(env, 1, MEMBERS, rng, GAMMA, "bootstrap")
    store = FrameStore(env.single_observation_space, 100)
    replay = SequenceReplay(store, (), np.dtype(np.int64), MEMBERS, rng, GAMMA, 5)
    rows: list[Row] = []
    ends = 0
    for t in range(250):
        action = rng.integers(4, size=1)
        collected = collector.step(action, action, t)
        mask = rng.random((1, MEMBERS)) < 0.5
        replay.add(collected, mask)
        batch = jax.tree.map(lambda x: x[0], collected.batch)
        rows.append(Row(**batch._asdict(), mask=mask[0], ended=bool(collected.ended[0])))
        ends += len(collected.episodes)
    env.close()
    assert ends > 3
    assert check(replay, [rows]) == closed([rows], 100, 5)
    assert store.written[0] < 250 + 2 * ends
