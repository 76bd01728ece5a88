"""Learners of pictures: who trains what, and whole updates against independently written ones."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.ensemble import Ensemble
from sunrise.experiments.flops import matmul_flops
from sunrise.learners.policies import squash
from sunrise.run.building import ensemble_of
from sunrise.types import Batch, Learner, Sample
from tests.support import tiny
from tests.support.plain import KEY, member, member_key
from tests.support.plain_pixels import Contrastive, Method, Plain, contrast, crops, fresh, plain, update
from tests.unit.test_update import numpy_weight

ROWS, SIZE, CROP = 6, 13, 11
SMALL: dict[str, Any] = {"net_arch": (6, 5), "filters": 3, "conv_layers": 2, "feature_dim": 4}
OBS = gym.spaces.Box(0, 255, (2, SIZE, SIZE, 1), np.uint8)
ACTION = gym.spaces.Box(-1, 1, (2,), np.float32)


def small(algo: str, **settings: Any) -> Any:
    changes = SMALL | ({} if algo == "drq" else {"crop_size": CROP}) | settings
    return with_settings(algorithm(algo).defaults, changes)


def ensemble(algo: str, **settings: Any) -> Any:
    config = small(algo, **settings)
    functions, numbers = ensemble_of(algorithm(algo).fit(config, OBS, ACTION), config)
    return (functions, numbers, *functions.init(jax.random.key(7), numbers))


def biased(state: Ensemble) -> Ensemble:
    """Away from biases of 0: where a unit gets exactly 0, ReLU's slope is a matter of taste."""
    members: Any = getattr(state.members, "inner", state.members)
    nets = {name: jax.tree.map(lambda x: x + 0.03, getattr(members, name)) for name in ("critic", "target", "actor")}
    moved = members._replace(**nets)
    return Ensemble(state.members._replace(inner=moved) if members is not state.members else moved, state.step)


def learner(algo: str, **settings: Any) -> Learner:
    parts = algorithm(algo).fit(small(algo, **settings), OBS, ACTION)
    return parts.make_learner(parts.numbers)


def sample(rng: np.random.Generator, members: int, dtype: Any = np.float32, prob: float = 0.7) -> Sample:
    batch = Batch(
        obs=rng.integers(0, 256, (ROWS, *OBS.shape), dtype=np.uint8),
        action=np.tanh(rng.standard_normal((ROWS, 2))).astype(dtype),
        reward=rng.standard_normal(ROWS).astype(dtype),
        discount=np.where(rng.random(ROWS) < 0.2, 0.0, 0.99).astype(dtype),
        next_obs=rng.integers(0, 256, (ROWS, *OBS.shape), dtype=np.uint8),
    )
    return Sample(batch, rng.random((ROWS, members)) < prob, np.ones(ROWS, dtype))


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def view_keys(step: int) -> tuple[Any, Any]:
    """The keys of the views of an update: of no member's."""
    k_obs, k_next = jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, step), 2**32 - 1))
    return k_obs, k_next


def cropped(pictures: np.ndarray, key: Any, view: int) -> np.ndarray:
    return crops(jax.random.fold_in(key, view), pictures, CROP)


def shifted(pictures: np.ndarray, key: Any, view: int) -> np.ndarray:
    wider = np.pad(pictures, ((0, 0), (0, 0), (4, 4), (4, 4), (0, 0)), mode="edge")
    return crops(jax.random.fold_in(key, view), wider, SIZE)


def assert_same_agent(state: Any, other: Plain) -> None:
    for name in ("critic", "target", "actor", "log_alpha"):
        tiny.assert_trees_close(getattr(state, name), getattr(other, name), 1e-9)


# -- whole updates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor_critic", ["after", pytest.param("before", marks=pytest.mark.slow)])
def test_one_rad_member_equals_an_independently_written_rad(double: None, actor_critic: str) -> None:
    """The actor steps on the stepped critic, as in RAD's own code, or on the one before."""
    functions, numbers, state, tally = ensemble("rad", ensemble_size=1, actor_critic=actor_critic)
    state = biased(state)
    other = plain(member(state.members, 0))
    rng = np.random.default_rng(1)
    for step in range(4):
        now = sample(rng, 1, np.float64)
        k_obs, k_next = view_keys(step)
        views = [cropped(now.batch.obs, k_obs, 0)], [cropped(now.batch.next_obs, k_next, 0)]
        other = update(
            other, now, *views, member_key(step), due=step % 2 == 0, method=Method(actor_critic=actor_critic)
        )
        state, tally, _ = functions.update(state, tally, now, KEY, numbers)
    assert_same_agent(member(state.members, 0), other)


def test_one_drq_member_equals_an_independently_written_drq(double: None) -> None:
    functions, numbers, state, tally = ensemble("drq", ensemble_size=1)
    state = biased(state)
    other = plain(member(state.members, 0))
    method = Method(tanh=True, encoder_tau=0.01, alpha_rate=1e-3, alpha_beta=0.9)
    rng = np.random.default_rng(2)
    for step in range(4):
        now = sample(rng, 1, np.float64)
        both = zip((now.batch.obs, now.batch.next_obs), view_keys(step), strict=True)
        views = [[shifted(pictures, key, m) for m in range(2)] for pictures, key in both]
        other = update(other, now, *views, member_key(step), due=step % 2 == 0, method=method)
        state, tally, _ = functions.update(state, tally, now, KEY, numbers)
    assert_same_agent(member(state.members, 0), other)


def test_one_curl_member_equals_an_independently_written_curl_with_its_two_adams(double: None) -> None:
    functions, numbers, state, tally = ensemble("curl", ensemble_size=1)
    state = biased(state)
    start = member(state.members, 0)
    assert 0 <= float(start.similarity.min()) < float(start.similarity.max()) < 1
    other, eyes = plain(start.inner), start.inner.critic.encoder
    own = Contrastive(start.similarity, fresh((eyes, start.similarity)), fresh(eyes))
    rng = np.random.default_rng(3)
    for step in range(4):
        now = sample(rng, 1, np.float64)
        k_obs, k_next = view_keys(step)
        anchor, positive = (cropped(now.batch.obs, k_obs, view) for view in range(2))
        views = [anchor], [cropped(now.batch.next_obs, k_next, 0)]
        other = update(other, now, *views, member_key(step), due=step % 2 == 0, method=Method())
        other, own = contrast(other, own, anchor, positive)
        state, tally, _ = functions.update(state, tally, now, KEY, numbers)
    end = member(state.members, 0)
    assert_same_agent(end.inner, other)
    tiny.assert_trees_close(end.similarity, own.similarity, 1e-9)


def test_the_update_of_all_equals_a_loop_over_agents_that_see_one_view(double: None) -> None:
    """The weight is that of the augmented next observations; members share neither networks nor keys."""
    functions, numbers, state, tally = ensemble("rad", ensemble_size=2)
    one = learner("rad")
    bellman, learn, augment = jax.jit(one.bellman), jax.jit(one.learn), jax.jit(one.augment)
    states = [member(state.members, i) for i in range(2)]
    rng = np.random.default_rng(4)
    for step in range(3):
        now = sample(rng, 2, np.float64)
        keys = [jax.random.fold_in(jax.random.fold_in(KEY, step), i) for i in range(2)]
        batch = augment(now.batch, jax.random.fold_in(jax.random.fold_in(KEY, step), 2**32 - 1))
        masks = [jnp.asarray(now.mask[:, i], float) for i in range(2)]
        backups = [bellman(*each) for each in zip(states, [batch] * 2, masks, keys, strict=True)]
        weight = jnp.asarray(numpy_weight(np.concatenate([np.asarray(b.votes) for b in backups]), 10.0))
        states = [
            learn(states[i], batch, masks[i], backups[i], weight, jnp.asarray(step), keys[i])[0] for i in range(2)
        ]
        state, tally, _ = functions.update(state, tally, now, KEY, numbers)
    for i in range(2):
        tiny.assert_trees_close(member(state.members, i), states[i], 1e-9)
    kernels = state.members.critic.encoder.convolutions.kernels[0]
    assert not np.allclose(kernels[0], kernels[1])


# -- who trains what ---------------------------------------------------------------------------------------------------


class Trial:
    """One agent's `learn`, compiled once, on one batch."""

    def __init__(self) -> None:
        one = learner("rad")
        self.start = jax.jit(one.init)(jax.random.key(1))
        # A target of its own, or its first step would end where it began.
        self.start = self.start._replace(target=jax.tree.map(lambda x: x + 0.1, self.start.target))
        now = sample(np.random.default_rng(5), 1)
        self.batch = one.augment(now.batch, KEY)
        self.mask = jnp.ones(ROWS)
        self.backup = jax.jit(one.bellman)(self.start, self.batch, self.mask, KEY)
        self.learn = jax.jit(one.learn)

    def after(self, step: int, weight: float = 1.0, mask: float = 1.0) -> Any:
        """The agent after a step."""
        w, m = jnp.full(ROWS, weight), jnp.full(ROWS, mask)
        return self.learn(self.start, self.batch, m, self.backup, w, jnp.asarray(step), KEY)[0]


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial()


def moved(one: Any, other: Any) -> bool:
    """Whether every leaf differs."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(not np.array_equal(a, b) for a, b in pairs)


def test_the_critics_loss_trains_convolutions_projection_and_heads(trial: Trial) -> None:
    assert moved(trial.after(1).critic, trial.start.critic)


def test_the_actors_loss_trains_its_own_projection_and_policy_and_no_convolution(trial: Trial) -> None:
    after = trial.after(0, weight=0.0)  # the critic's loss is nothing, the actor is not weighted
    assert moved(after.actor, trial.start.actor)
    assert tiny.same_bits(after.critic, trial.start.critic)
    assert not np.array_equal(after.log_alpha, trial.start.log_alpha)


def test_actor_entropy_weight_and_targets_move_every_second_update_from_the_first_on(trial: Trial) -> None:
    for step, waits in ((0, False), (1, True), (2, False), (3, True)):
        after = trial.after(step)
        for name in ("actor", "target", "log_alpha", "actor_opt", "alpha_opt"):
            assert tiny.same_bits(getattr(after, name), getattr(trial.start, name)) == waits


def test_only_the_updates_in_which_the_actor_moves_pay_for_the_stepped_critic() -> None:
    """Products counted in the update of two members: a predicate of each member's own would make all updates pay."""

    def products(actor_critic: str) -> list[int]:
        config = small("rad", ensemble_size=2, actor_critic=actor_critic)
        functions, numbers = ensemble_of(algorithm("rad").fit(config, OBS, ACTION), config)
        start = jax.eval_shape(functions.init, KEY, numbers)
        arguments = (*start, sample(np.random.default_rng(0), 2), KEY, numbers)
        return [matmul_flops(functions.update, *arguments, branch=branch) for branch in (min, max)]

    (waits, moves), (plain_waits, plain_moves) = products("after"), products("before")
    assert waits == plain_waits
    assert plain_waits < plain_moves < moves


def test_drqs_log_probability_is_that_of_the_squashed_gaussian_however_far_out() -> None:
    """−2 log cosh x is log(1 − tanh² x), and in the sum of two dimensions nothing is cut off at log(1e-6)."""
    mean, log_std = jnp.array([[9.0, -0.5]]), jnp.array([[-1.0, 0.3]])
    noise = np.asarray(jax.random.normal(KEY, (1, 2)), np.float64)
    raw = np.asarray(mean) + np.exp(np.asarray(log_std)) * noise
    density = -0.5 * noise**2 - np.asarray(log_std) - 0.5 * np.log(2 * np.pi) + 2 * np.log(np.cosh(raw))
    action, log_prob = squash(mean, log_std, KEY, exact=True)
    np.testing.assert_allclose(log_prob, density.sum(1), rtol=1e-5)
    np.testing.assert_allclose(action, np.tanh(raw), rtol=1e-6)
    cut_off = squash(mean, log_std, KEY)
    np.testing.assert_array_equal(cut_off[0], action)
    assert float(log_prob[0] - cut_off[1][0]) > 1


def test_the_target_encoder_moves_faster_than_the_target_heads(trial: Trial) -> None:
    after = trial.after(0)
    for part, tau in (("encoder", 0.05), ("heads", 0.01)):
        leaves = [jax.tree.leaves(getattr(x, part)) for x in (after.target, trial.start.target, after.critic)]
        for new, old, goal in zip(*leaves, strict=True):
            np.testing.assert_allclose(new - old, tau * (goal - old), atol=1e-6)


def test_a_mask_of_zeros_moves_nothing(trial: Trial) -> None:
    after = trial.after(0, mask=0.0)
    for name in ("critic", "actor", "log_alpha"):
        assert tiny.same_bits(getattr(after, name), getattr(trial.start, name))


def test_members_share_no_convolution() -> None:
    """Another member with other eyes changes nothing, where the weight does not see it."""
    functions, numbers, state, tally = ensemble("rad", ensemble_size=2, weighting="none")
    now = sample(np.random.default_rng(6), 2)

    def first(members: Any) -> Any:
        fresh = jax.tree.map(jnp.copy, (Ensemble(members, state.step), tally))
        return member(functions.update(*fresh, now, KEY, numbers)[0].members, 0)

    eyes = jax.tree.map(lambda x: x.at[1].add(0.3), state.members.critic.encoder)
    critic = type(state.members.critic)(eyes, state.members.critic.heads)
    assert tiny.same_bits(first(state.members), first(state.members._replace(critic=critic)))
    reward = np.array(now.batch.reward)
    reward[2] = np.nan
    bad = now._replace(batch=now.batch._replace(reward=reward), mask=np.ones_like(now.mask))
    kept = jax.tree.map(jnp.copy, state)
    after, _, report = functions.update(state, tally, bad, KEY, numbers)
    assert not bool(report.finite)
    assert tiny.same_bits(after, kept)


# -- acting and starting -----------------------------------------------------------------------------------------------


def test_acting_looks_at_the_centre_without_randomness() -> None:
    one = learner("rad")
    state = jax.jit(one.init)(jax.random.key(2))
    obs = sample(np.random.default_rng(7), 1).batch.obs
    act = jax.jit(lambda state, obs: (one.propose(state, obs, None), one.judge(state, obs, jnp.zeros((ROWS, 2)), None)))
    border = obs.copy()
    border[:, :, 0] = 0
    border[:, :, :, -1] = 255
    assert tiny.same_bits(act(state, obs), act(state, border))
    border[:, :, SIZE // 2] = 255
    assert not tiny.same_bits(act(state, obs), act(state, border))


def test_drqs_first_kernels_are_orthogonal_as_a_whole() -> None:
    state = jax.jit(learner("drq").init)(jax.random.key(3))
    for kernel in state.critic.encoder.convolutions.kernels:
        matrix = np.asarray(kernel).reshape(-1, kernel.shape[-1])
        np.testing.assert_allclose(matrix.T @ matrix, 2 * np.eye(matrix.shape[1]), atol=1e-5)
        assert np.count_nonzero(kernel) == kernel.size


def test_first_weights_are_orthogonal_and_the_target_is_a_copy() -> None:
    state = jax.jit(learner("rad").init)(jax.random.key(3))
    for kernel in state.critic.encoder.convolutions.kernels:
        centre = np.asarray(kernel[1, 1])
        small_side = centre.T @ centre if centre.shape[0] >= centre.shape[1] else centre @ centre.T
        np.testing.assert_allclose(small_side, 2 * np.eye(len(small_side)), atol=1e-5)
        assert np.count_nonzero(kernel) == np.count_nonzero(centre)
    for weight in (state.actor.projection.linear.weight, state.critic.encoder.projection.linear.weight):
        np.testing.assert_allclose(weight.T @ weight, np.eye(4), atol=1e-5)
    assert not np.allclose(state.critic.heads.layers[0].weight[0], state.critic.heads.layers[0].weight[1])
    assert not any(np.any(layer.bias) for layer in (*state.critic.heads.layers, *state.actor.policy.layers))
    assert tiny.same_bits(state.critic, state.target)
    assert float(jnp.exp(state.log_alpha)) == pytest.approx(0.1)
