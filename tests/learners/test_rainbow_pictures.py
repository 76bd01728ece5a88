"""DrQ's shifts and CURL's contrast around Rainbow, against loops and the equations written again."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.errors import SunriseError
from sunrise.networks.rainbow import perturb
from sunrise.networks.rainbow_pictures import moved_crop
from sunrise.run.building import ensemble_of
from sunrise.types import Batch, Sample
from tests.support import tiny
from tests.support.plain import KEY, member

FRAMES = gym.spaces.Box(0, 255, (2, 25, 30), np.uint8)
ROWS, ACTIONS = 4, 3


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def ensemble(space: gym.Space[Any] = FRAMES, members: int = 1, **switches: Any) -> Any:
    settings = {"net_arch": (6,), "n_atoms": 3, "ensemble_size": members, **switches}
    config = with_settings(algorithm("rainbow").defaults, settings)
    parts = algorithm("rainbow").fit(config, space, gym.spaces.Discrete(ACTIONS))
    functions, numbers = ensemble_of(parts, config)
    return functions, numbers, functions.init(jax.random.key(7), numbers), parts.make_learner(numbers.learner)


def pictures(rng: np.random.Generator, dtype: Any) -> Sample:
    obs, next_obs = (rng.integers(0, 256, (ROWS, *FRAMES.shape), np.uint8) for _ in range(2))
    reward, discount = rng.standard_normal(ROWS).astype(dtype), np.full(ROWS, 0.9, dtype)
    batch = Batch(obs, rng.integers(0, ACTIONS, ROWS).astype(np.int32), reward, discount, next_obs)
    return Sample(batch, np.ones((ROWS, 1), bool), rng.uniform(0.5, 1, ROWS).astype(dtype))


def normalised(x: Any) -> Any:
    return (x - x.mean(1)[:, None]) / jnp.sqrt(x.var(1)[:, None] + 1e-5)


def convolved(trunk: Any, frames: Any) -> Any:
    """5 x 5 convolutions of stride 5, by JAX's own."""
    x, channels = jnp.asarray(frames, float) / 255, frames.shape[1]
    for layer in trunk.layers:
        kernel = layer.weight.T.reshape(-1, channels, 5, 5)
        x = jax.lax.conv_general_dilated(x, kernel, (5, 5), "VALID") + layer.bias[:, None, None]
        x, channels = jnp.maximum(x, 0), kernel.shape[0]
    return x.reshape(x.shape[0], -1)


def code(trunk: Any, coder: Any, frames: Any) -> Any:
    hidden = jnp.maximum(normalised(convolved(trunk, frames) @ coder.hidden.weight + coder.hidden.bias), 0)
    return normalised(hidden @ coder.code.weight + coder.code.bias)


def test_the_contrast_is_learned_as_in_its_equations(double: None) -> None:
    """The change that CURL makes to an update is that of its own loss: what is left of the gradient is Rainbow's."""
    functions, numbers, (state, tally), one = ensemble(contrastive=True, contrastive_weight=0.5, adam_eps=1e-2)
    start = member(state.members, 0)
    drawn = pictures(np.random.default_rng(1), np.float64)
    view_key = jax.random.fold_in(jax.random.fold_in(KEY, 0), 2**32 - 1)
    seen = one.augment(jax.tree.map(jnp.asarray, drawn.batch), view_key)
    assert np.array_equal(seen.obs[0], drawn.batch.obs)  # Rainbow itself sees what there was
    assert not np.array_equal(seen.obs[1], seen.obs[2])

    def contrastive(network: Any) -> Any:
        anchor = code(network.trunk, network.contrast.coder, seen.obs[1])
        positive = code(start.slow[0], start.slow[1], seen.obs[2])
        scores = 0.1 * anchor @ network.contrast.similarity @ positive.T
        chances = [jnp.exp(scores[i, i]) / jnp.exp(scores[i]).sum() for i in range(ROWS)]
        return sum(-jnp.log(chance) for chance in chances) / ROWS

    key = jax.random.fold_in(jax.random.fold_in(KEY, 0), 0)
    plain = ensemble()[3]  # Rainbow without the contrast, which the suite holds elsewhere
    own = start._replace(online=without(start.online), target=without(start.target))
    batch = jax.tree.map(jnp.asarray, drawn.batch)
    backup = jax.jit(plain.bellman)(own, batch, jnp.ones(ROWS), key)
    k_online, _ = jax.random.split(key)

    def rainbow_loss(network: Any) -> Any:
        logits = perturb(network, k_online)(batch.obs, ACTIONS)[jnp.arange(ROWS), batch.action]
        entropy = -(backup.target * jax.nn.log_softmax(logits)).sum(1)
        return (drawn.importance * (entropy + 0.5 * contrastive(network))).mean(), entropy

    gradient, entropy = jax.jit(jax.grad(rainbow_loss, has_aux=True))(start.online)
    length = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda g: g * jnp.minimum(1, 10 / length), gradient)
    moved = jax.tree.map(lambda p, g: p - 1e-4 * g / (jnp.abs(g) + 1e-2), start.online, gradient)  # Adam's first step
    state, tally, report = functions.update(state, tally, drawn, KEY, numbers)
    after = member(state.members, 0)
    tiny.assert_trees_close(after.online, moved, 1e-9)
    followed = jax.tree.map(lambda s, n: 0.999 * s + 0.001 * n, start.slow, (moved.trunk, moved.contrast.coder))
    tiny.assert_trees_close(after.slow, followed, 1e-9)
    told = jax.jit(contrastive)(start.online)
    np.testing.assert_allclose(report.priority, entropy + 0.5 * told, rtol=1e-9)
    np.testing.assert_allclose(tally.sums["contrastive_loss"], told, rtol=1e-9)


def without(network: Any) -> Any:
    return type(network)(network.trunk, network.advantage, network.value)


def test_shifted_pictures_are_the_pictures_moved_by_up_to_four_pixels_and_all_frames_of_a_row_alike() -> None:
    one = ensemble(augmentation="shift")[3]
    drawn = pictures(np.random.default_rng(2), np.float32).batch
    seen = one.augment(drawn, jax.random.key(3))
    offsets = set()
    for before, after in ((drawn.obs, seen.obs), (drawn.next_obs, seen.next_obs)):
        assert after.shape == before.shape
        padded = np.pad(before, ((0, 0), (0, 0), (4, 4), (4, 4)), mode="edge")
        for row in range(ROWS):
            found = [
                (i, j)
                for i in range(9)
                for j in range(9)
                if np.array_equal(after[row], padded[row, :, i : i + 25, j : j + 30])
            ]
            assert len(found) == 1
            offsets |= set(found)
    assert len(offsets) > 4  # rows are moved differently, and so are an observation and the next one


def test_a_view_of_the_contrast_is_a_crop_that_was_moved() -> None:
    before = np.random.default_rng(4).integers(0, 256, (ROWS, 2, 7, 8), np.uint8)
    after = np.asarray(moved_crop(jax.random.key(1), jnp.asarray(before)[..., None], 2))[..., 0]
    found = set()
    for row in range(ROWS):
        for i, j in np.ndindex(3, 3):
            small = np.pad(before[row, :, i : i + 5, j : j + 6], ((0, 0), (2, 2), (2, 2)), mode="edge")
            places = [
                p for p in np.ndindex(3, 3) if np.array_equal(small[:, p[0] : p[0] + 7, p[1] : p[1] + 8], after[row])
            ]
            found |= {(row, i, j, *place) for place in places}
    assert {key[0] for key in found} == set(range(ROWS))
    assert len({key[1:] for key in found}) > 1


@pytest.mark.parametrize("switch", [{"augmentation": "shift"}, {"contrastive": True}], ids=["shift", "contrastive"])
def test_observations_that_are_no_pictures_are_refused(switch: dict[str, Any]) -> None:
    with pytest.raises(SunriseError, match="are for pictures, but these observations are none"):
        ensemble(tiny.spaces()[0], **switch)
