"""Observations in parts: choices, pictures of any size and layout, and pictures with numbers beside them."""

from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation

from sunrise import CURL, RAD, SAC, DrQ, SunriseError
from sunrise.agents import Agent
from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.envs.answers import outside
from sunrise.envs.make import as_vector
from sunrise.envs.spaces import check_same, describe, restore
from sunrise.learners.curl import encode
from sunrise.learners.seeing import layout_of, take_apart
from sunrise.networks.augmentation import PictureShape, is_stack
from sunrise.networks.observations import Seen, taken
from sunrise.networks.pixel import together
from sunrise.networks.rainbow_pictures import as_channels, channels_shape
from sunrise.replay.mixed import MixedStore
from sunrise.replay.storage import PlainStore
from sunrise.run.collect import Collector
from sunrise.types import Batch, Learner
from tests.support import tiny
from tests.support.mixed_task import Mixed

FINITE = [
    gym.spaces.Discrete(4, start=-1),
    gym.spaces.MultiDiscrete([3, 2, 4]),
    gym.spaces.MultiDiscrete(np.asarray([[2, 3], [1, 4]]), start=np.asarray([[5, 0], [0, 1]])),
    gym.spaces.MultiBinary(5),
    gym.spaces.MultiBinary((2, 3)),
]
BOX = gym.spaces.Box(-1, 1, (2,), np.float32)
KEY = jax.random.key(3)


def pictures(*shape: int) -> gym.spaces.Box:
    return gym.spaces.Box(0, 255, shape, np.uint8)


# -- choices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", FINITE, ids=str)
def test_choices_are_seen_as_gymnasium_flattens_them(space: gym.Space[Any]) -> None:
    space.seed(3)
    some = [space.sample() for _ in range(20)]
    plain = np.stack([np.asarray(gym.spaces.flatten(space, one)) for one in some])
    np.testing.assert_array_equal(taken(np.stack(some), space), plain)


@pytest.mark.parametrize("space", FINITE, ids=str)
def test_a_space_of_choices_is_described_and_found_again(space: gym.Space[Any]) -> None:
    whole = gym.spaces.Dict({"a": space, "b": BOX})
    assert restore(describe(space)) == space
    assert restore(describe(whole)) == whole
    check_same(whole, whole, "observations")


def test_choices_from_other_sets_are_other_observations() -> None:
    with pytest.raises(SunriseError, match="the environment's observations are"):
        check_same(gym.spaces.MultiDiscrete([3, 2]), gym.spaces.MultiDiscrete([3, 3]), "observations")


def test_a_description_of_more_choices_than_memory_is_not_believed() -> None:
    for space in (gym.spaces.Discrete(2**30), gym.spaces.MultiDiscrete([2**30])):
        with pytest.raises(SunriseError, match="this is no description of a space"):
            restore(describe(space))


def test_a_value_that_is_no_option_takes_none_and_is_noticed() -> None:
    space, values = gym.spaces.MultiDiscrete([2, 3]), np.asarray([[1, 2], [2, 0], [0, -1]])
    np.testing.assert_array_equal(taken(values, space), [[0, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 0, 0]])
    assert outside(values, space).tolist() == [False, True, True]
    assert outside(np.asarray([0, 3, 4]), gym.spaces.Discrete(3, start=1)).tolist() == [True, False, True]
    assert outside(np.asarray([[0, 1], [2, 0]]), gym.spaces.MultiBinary(2)).tolist() == [False, True]


class Parts(gym.Env[Any, np.ndarray]):
    """A vector and three kinds of choices."""

    observation_space: gym.spaces.Dict[Any] = gym.spaces.Dict(
        {
            "a": gym.spaces.Box(-1, 1, (2,), np.float32),
            "b": gym.spaces.Discrete(3),
            "c": gym.spaces.MultiBinary(2),
            "d": gym.spaces.MultiDiscrete([2, 2]),
        }
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return self.observation_space.sample(), float(action[0]), False, self.t >= 8, {}


def test_learning_from_choices_is_learning_from_gymnasiums_flattened_ones() -> None:
    """Bit for bit: the same networks, fed by our own ones and zeros or by Gymnasium's."""
    small: dict[str, Any] = {"net_arch": (8,), "ensemble_size": 2, "batch_size": 4, "buffer_size": 100, "seed": 2}
    models = []
    for env in (Parts(), FlattenObservation(Parts())):
        model = SAC("MultiInputPolicy", env, learning_starts=10, eval_freq=0, **small)
        models.append(model.learn(25, progress_bar=False))
    assert tiny.same_bits(models[0].ensemble.members, models[1].ensemble.members)
    space = Parts.observation_space
    obs = space.sample()
    ours, theirs = models[0].predict(obs)[0], models[1].predict(gym.spaces.flatten(space, obs))[0]
    np.testing.assert_array_equal(ours, theirs)
    assert models[0].trainer is not None
    assert models[0].trainer.replay.state().rings["transitions"].arrays["obs.d"].dtype == np.int64  # kept as they came


# -- pictures of any size and layout -----------------------------------------------------------------------------------


def chooser(space: gym.Space[Any], **settings: Any) -> tuple[Learner, Any]:
    """One Rainbow agent for a space, and its first state."""
    changes = {"net_arch": (6,), "n_atoms": 3, **settings}
    config = with_settings(algorithm("rainbow").defaults, changes)
    parts = algorithm("rainbow").fit(config, space, gym.spaces.Discrete(3))
    learner = parts.make_learner(parts.numbers)
    return learner, jax.jit(learner.init)(jax.random.key(1))


def judged(learner: Learner, state: Any, obs: Any) -> np.ndarray:
    rows = len(jax.tree.leaves(obs)[0])
    return opinion(learner, state, obs, jnp.zeros(rows, int))


def opinion(learner: Learner, state: Any, obs: Any, action: Any) -> np.ndarray:
    """What the critics of one agent say, in one compiled call."""
    return np.asarray(jax.jit(lambda s, o, a: learner.judge(s, o, a, None))(state, obs, action))


def test_the_layout_of_pictures_changes_nothing_but_the_order_of_their_numbers() -> None:
    """Colours last, stacks of colours, and channels last that are many: all as channels first."""
    rng = np.random.default_rng(0)
    stacks = rng.integers(0, 256, (5, 2, 25, 27, 3), np.uint8)  # rows, frames, height, width, colours
    first = np.stack([stacks[:, s, :, :, c] for s in range(2) for c in range(3)], axis=1)
    learner, state = chooser(pictures(6, 25, 27))
    plain = judged(learner, state, first)
    for obs in (stacks, np.moveaxis(first, 1, -1)):
        other, same = chooser(pictures(*obs.shape[1:]))
        assert tiny.same_bits(same, state)
        np.testing.assert_array_equal(judged(other, same, obs), plain)
    assert [is_stack(pictures(*s)) for s in ((84, 84, 12), (84, 84, 4), (4, 84, 84), (9, 84, 84))] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("sides", "wanted"),
    [((84, 84), (84, 84)), ((64, 96), (75, 100)), ((48, 25), (50, 25)), ((10, 24), (10, 24)), ((3, 12), (5, 12))],
)
def test_pictures_of_any_size_are_seen_but_for_a_fifth_of_a_side(sides: Any, wanted: Any) -> None:
    """What the network is given, against a copy into black; and each pixel that is not cut off changes its answer."""
    shape, rng = PictureShape(1, sides[0], sides[1], 2), np.random.default_rng(1)
    assert channels_shape(shape) == (2, *wanted, 1)
    picture = rng.integers(1, 256, (1, *sides, 2), np.uint8)
    plain = np.zeros((1, 2, *wanted), np.uint8)
    top, left = ((w - s) // 2 for w, s in zip(wanted, sides, strict=True))
    for c in range(2):
        plain[0, c, top : top + sides[0], left : left + sides[1]] = picture[0, :, :, c]
    np.testing.assert_array_equal(as_channels(jnp.asarray(picture), shape), plain)
    learner, state = chooser(pictures(2, *sides) if sides[0] > 4 else pictures(*sides, 2))
    obs = np.moveaxis(picture, -1, 1) if sides[0] > 4 else picture
    gradient = jax.jit(jax.grad(lambda x: state.online.trunk(x).sum()))(jnp.asarray(plain, float))
    unseen = (np.asarray(gradient)[0] == 0).all(0)
    assert unseen.all(1).mean() <= 0.2
    assert unseen.all(0).mean() <= 0.2
    assert judged(learner, state, obs).shape == (1, 1)


def test_pictures_that_are_no_bytes_are_refused() -> None:
    for shape in ((4, 84, 84), (2, 9, 9, 3)):
        with pytest.raises(SunriseError, match="Rainbow takes pictures of uint8"):
            chooser(gym.spaces.Box(0, 1, shape, np.float32))


# -- pictures and numbers together -------------------------------------------------------------------------------------

SMALL = {"net_arch": (6,), "filters": 3, "feature_dim": 4, "conv_layers": 2}
SIGHTED: dict[str, dict[str, Any]] = {
    "rad": SMALL | {"crop_size": 11},
    "drq": SMALL | {"shift_pad": 1},
    "curl": SMALL | {"crop_size": 11},
}


@cache
def mixed_controller(name: str) -> tuple[Learner, Any]:
    """The same for the toy."""
    return controller(name, Mixed("last").observation_space)


def controller(name: str, space: gym.Space[Any]) -> tuple[Learner, Any]:
    """One agent that sees pictures, and its first state."""
    config = with_settings(algorithm(name).defaults, SIGHTED[name])
    parts = algorithm(name).fit(config, space, BOX)
    learner = parts.make_learner(parts.numbers)
    return learner, jax.jit(learner.init)(jax.random.key(1))


def mixed_batch(rows: int = 4) -> Batch:
    """Transitions of noise in the spaces of the toy, both sides of them."""
    space = Mixed("last").observation_space
    space.seed(5)
    obs, next_obs = (
        {name: np.stack([one[name] for one in some]) for name in space.spaces}
        for some in ([space.sample() for _ in range(rows)] for _ in range(2))
    )
    rng = np.random.default_rng(0)
    reward, discount = rng.standard_normal(rows).astype(np.float32), np.full(rows, 0.9, np.float32)
    return Batch(obs, rng.uniform(-1, 1, (rows, 2)).astype(np.float32), reward, discount, next_obs)


@pytest.mark.parametrize("name", SIGHTED)
def test_numbers_and_choices_stand_beside_what_the_encoder_makes_of_a_picture(name: str) -> None:
    """Against the parts put together by hand: convolutions, projection, and then the numbers as they are."""
    learner, state = mixed_controller(name)
    batch = mixed_batch()
    critic = (state.inner if name == "curl" else state).critic
    side = {"rad": (2, 13), "curl": (2, 13), "drq": (0, 15)}[name]
    middle = batch.obs["camera"][:, slice(*side), slice(*side)].astype(np.float32) / 255
    features = jax.jit(lambda eye, x: eye(x))(critic.encoder.convolutions.each[0], middle)
    z = np.asarray(features @ critic.encoder.projection.linear.weight + critic.encoder.projection.linear.bias)
    z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
    z = np.tanh(z) if name == "drq" else z
    mode = gym.spaces.MultiDiscrete([2, 3])
    hots = np.stack([np.asarray(gym.spaces.flatten(mode, one)) for one in batch.obs["mode"]])
    x = np.concatenate([z, batch.obs["arm"], hots, batch.action], axis=1)
    ours = opinion(learner, state, batch.obs, batch.action)
    for k in range(2):
        q = x
        for depth, layer in enumerate(critic.heads.layers):
            q = (q if depth == 0 else np.maximum(q, 0)) @ np.asarray(layer.weight[k]) + np.asarray(layer.bias[k])
        np.testing.assert_allclose(ours[k], q[:, 0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", SIGHTED)
def test_an_augmentation_touches_the_pictures_only(name: str) -> None:
    learner, _ = mixed_controller(name)
    batch = mixed_batch()
    seen = jax.jit(learner.augment)(batch, jax.random.key(2))
    for side, raw in ((seen.obs, batch.obs), (seen.next_obs, batch.next_obs)):
        assert isinstance(side, Seen)
        assert side.numbers is not None
        assert side.choices is not None
        for view in range(side.shape[0]):
            np.testing.assert_array_equal(side.numbers[view], raw["arm"])
            assert side.choices[view].sum() == 2 * len(raw["arm"])
            for row, picture in enumerate(np.asarray(side.pictures[0][view])):
                assert picture.dtype == np.uint8
                whole = raw["camera"][row]
                pad = 1 if name == "drq" else 0
                wide = np.pad(whole, ((pad, pad), (pad, pad), (0, 0)), mode="edge")
                height = picture.shape[1]
                corners = range(wide.shape[0] - height + 1)
                cuts = [wide[i : i + height, j : j + height] for i in corners for j in corners]
                assert any(np.array_equal(picture[0], cut) for cut in cuts)


def test_a_dict_of_one_picture_is_the_picture() -> None:
    """The general case contains the special one: the same first weights, and the same opinions."""
    alone, batch = pictures(15, 15, 3), mixed_batch()
    one, state = controller("drq", alone)
    other, same = controller("drq", gym.spaces.Dict({"camera": alone}))
    assert tiny.same_bits(jax.tree.leaves(state), jax.tree.leaves(same))
    np.testing.assert_array_equal(
        opinion(one, state, batch.obs["camera"], batch.action),
        opinion(other, same, {"camera": batch.obs["camera"]}, batch.action),
    )


def test_two_pictures_have_an_encoder_each() -> None:
    space = gym.spaces.Dict({"left": pictures(15, 15, 3), "right": pictures(2, 17, 19), "v": BOX})
    learner, state = controller("rad", space)
    eyes = state.critic.encoder.convolutions.each
    assert [eye.kernels[0].shape for eye in eyes] == [(3, 3, 3, 3), (3, 3, 2, 3)]
    space.seed(1)
    obs = {name: leaf[None] for name, leaf in space.sample().items()}
    judge = jax.jit(lambda obs: learner.judge(state, obs, jnp.zeros((1, 2)), None))
    for name in space.spaces:
        changed = obs | {name: 1 - obs[name] if name == "v" else 255 - obs[name]}
        assert not np.array_equal(judge(changed), judge(obs))
    chosen, own = chooser(space)
    assert len(own.online.trunk.each) == 2
    assert judged(chosen, own, obs).shape == (1, 1)


def test_what_stands_beside_pictures_does_not_help_to_tell_them_apart() -> None:
    """CURL's loss, of RAD's kind and of Rainbow's, is of pictures alone."""
    batch = mixed_batch()
    moved = batch._replace(obs=batch.obs | {"arm": batch.obs["arm"] * 7 + 3})
    learner, state = mixed_controller("curl")
    view = jax.jit(lambda one: encode(state.inner.critic.encoder, together(learner.augment(one, KEY).obs[:1])))
    np.testing.assert_array_equal(view(batch), view(moved))
    chosen, seen = chooser(Mixed("last").observation_space, contrastive=True)

    @jax.jit
    def told(one: Batch) -> Any:
        changed = chosen.augment(one, KEY)
        backup = chosen.bellman(seen, changed, jnp.ones(4), KEY)
        return chosen.learn(seen, changed, jnp.ones(4), backup, jnp.ones(4), jnp.asarray(0), KEY)[1].metrics

    one, other = (told(some._replace(action=np.zeros(4, np.int32))) for some in (batch, moved))
    assert one["contrastive_loss"] == other["contrastive_loss"]
    assert one["q_mean"] != other["q_mean"]


def test_numbers_beside_pictures_are_normalised_and_nothing_else_is() -> None:
    space, batch = Mixed("last").observation_space, mixed_batch()
    learner, state = chooser(space, normalise_observations=True)
    assert learner.observe is not None
    noted = jax.jit(learner.observe)(state, batch.obs)
    np.testing.assert_allclose(noted.moments.mean, batch.obs["arm"].mean(0), rtol=1e-3)
    np.testing.assert_allclose(noted.moments.variance, batch.obs["arm"].var(0), rtol=1e-3)
    plain, _ = chooser(space)
    scaled = (batch.obs["arm"] - noted.moments.mean) / np.sqrt(noted.moments.variance + 1e-8)
    ours, theirs = judged(learner, noted, batch.obs), judged(plain, state.inner, batch.obs | {"arm": scaled})
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for alone in (pictures(15, 15, 3), gym.spaces.MultiDiscrete([3])):
        with pytest.raises(SunriseError, match="normalise_observations is for numbers"):
            chooser(alone, normalise_observations=True)


def test_replay_gives_a_dict_back_as_it_was_and_keeps_its_frames_once() -> None:
    """Beside a store that keeps everything twice, over episodes that wrap around the rings."""
    for layout in ("stack", "last"):
        env = Mixed(layout)
        store = MixedStore(("camera",), 0, env.observation_space, 40, 2)
        plain = PlainStore(env.observation_space, 40, 2)
        envs = as_vector(partial(Mixed, layout), 2)
        source = Collector(envs, 1, 1, np.random.default_rng(0), 0.9, "bootstrap")
        for t in range(33):
            got = source.step(np.zeros(2, int), np.zeros(2, int), t)
            slot = got.env * 20 + t % 20
            follows = [one.write(got.env, slot, got.batch.obs, got.batch.next_obs) for one in (store, plain)]
            np.testing.assert_array_equal(follows[0], follows[1])
        slots = np.asarray([s for s in range(40) if not store.lost(s)])
        assert len(slots) >= 34
        for read in ("obs", "next_obs"):
            ours, theirs = (getattr(one, read)(slots) for one in (store, plain))
            assert tiny.same_bits(ours, theirs)
            assert ours["camera"].dtype == np.uint8
        frames = store.rings()["camera.frames.0"].written
        assert frames <= 33 + 33 // 7 + 1  # one a transition, and the first of each episode
        assert store.nbytes < 0.75 * plain.nbytes


def test_the_parts_of_an_observation_are_taken_by_name() -> None:
    space = Mixed().observation_space
    layout = layout_of(space, pictures=True)
    assert (list(layout.pictures), list(layout.numbers), list(layout.choices)) == (["camera"], ["arm"], ["mode"])
    assert (layout.measured, layout.beside) == (2, 7)
    obs = {name: leaf[None] for name, leaf in space.sample().items()}
    seen = take_apart(layout)(dict(reversed(obs.items())))
    np.testing.assert_array_equal(seen.pictures[0][0, :, :, :, 0], obs["camera"][0])
    np.testing.assert_array_equal(seen.numbers, obs["arm"])


@pytest.mark.slow
@pytest.mark.parametrize("agent", [RAD, DrQ, CURL])
def test_pictures_and_numbers_are_learned_from_together(agent: type[Agent], tmp_path: Path) -> None:
    """Through the whole loop, saved and loaded; replay keeps the camera's frames once."""
    settings = SIGHTED[agent.algo] | {"net_arch": (8,), "ensemble_size": 2, "batch_size": 4, "buffer_size": 100}
    env = partial(Mixed, "last", finite=False)
    more: dict[str, Any] = {
        "normalise_observations": True,
        "normalise_rewards": True,
        "learning_starts": 10,
        "eval_freq": 0,
    }
    model = agent("MultiInputPolicy", env, **settings, **more)
    before = jax.tree.map(np.array, model.ensemble.members)
    model.learn(25, progress_bar=False)
    assert not tiny.same_bits(before, model.ensemble.members)
    assert model.trainer is not None
    assert model.trainer.replay.state().rings["camera.frames.0"].arrays["frame"].dtype == np.uint8
    obs, action = env().reset(seed=1)[0], np.zeros(1, np.float32)
    assert model.uncertainty(obs, action) > 0
    model.save(tmp_path / "model")
    again = agent.load(tmp_path / "model", env=env)
    np.testing.assert_array_equal(again.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
