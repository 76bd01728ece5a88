"""Rainbow: each component against something written apart from it, and the ensemble against a loop over agents."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunrise.config.algorithms import algorithm
from sunrise.config.ensemble import EnsembleSettings, resolve_temperature
from sunrise.config.learners import RainbowSettings
from sunrise.config.settings import with_settings
from sunrise.ensemble import EnsembleNumbers, Numbers, Sunrise, build
from sunrise.errors import SunriseError
from sunrise.learners.adam import adam_step
from sunrise.learners.rainbow import RainbowState, project, rainbow, rainbow_numbers
from sunrise.networks.layers import Linear
from sunrise.networks.rainbow import (
    NoisyLinear,
    TiledConvolutions,
    linear,
    perturb,
    signed_root,
)
from sunrise.types import Batch, Learner, Sample
from tests.support import tiny
from tests.support.plain import KEY, member, member_key

N, ACTIONS, ATOMS = 3, 4, 7
STATES = gym.spaces.Box(-np.inf, np.inf, (tiny.OBS,), np.float32)
FRAMES = gym.spaces.Box(0, 255, (2, 27, 31), np.uint8)
TINY: dict[str, Any] = {"net_arch": (6,), "n_atoms": ATOMS, "v_min": -2.0, "v_max": 2.0}
ALL_OFF: dict[str, Any] = {"distributional": False, "dueling": False, "noisy": False, "double": False}


@pytest.fixture
def double() -> Iterator[None]:
    """In single precision Adam turns a difference of 1e-8 into a full step."""
    with jax.enable_x64(True):
        yield


def learner(space: gym.Space[Any] = STATES, **changes: Any) -> Learner:
    """One agent's functions, each compiled on its own."""
    return compiled(space is FRAMES, jnp.result_type(float) == jnp.float64, tuple({**TINY, **changes}.items()))


@cache
def compiled(frames: bool, double: bool, changes: tuple[tuple[str, Any], ...]) -> Learner:
    one = make(FRAMES if frames else STATES, **dict(changes))
    return one._replace(
        init=jax.jit(one.init),
        propose=jax.jit(one.propose),
        judge=jax.jit(one.judge),
        bellman=jax.jit(one.bellman),
        judge_next=jax.jit(one.judge_next),
        learn=jax.jit(one.learn),
    )


def make(space: gym.Space[Any], **changes: Any) -> Learner:
    own = RainbowSettings(**changes)
    return rainbow(space, ACTIONS, own, rainbow_numbers(own))


def ensemble(members: int, **changes: Any) -> tuple[Sunrise, Any, Any, Any]:
    names = EnsembleSettings.__dataclass_fields__
    outer = EnsembleSettings(members, **{name: value for name, value in changes.items() if name in names})
    own = RainbowSettings(**{**TINY, **{name: value for name, value in changes.items() if name not in names}})
    functions = build(lambda numbers: rainbow(STATES, ACTIONS, own, numbers), outer)
    numbers = jax.tree.map(
        lambda x: jnp.asarray(x, jnp.result_type(float)),
        Numbers(EnsembleNumbers(resolve_temperature(outer), outer.ucb_lambda, 0.99), rainbow_numbers(own)),
    )
    return functions, numbers, *functions.init(jax.random.key(7), numbers)


def batch(rng: np.random.Generator, dtype: Any = np.float32) -> Batch:
    return tiny.batch(rng, dtype=dtype)._replace(action=rng.integers(0, ACTIONS, tiny.ROWS))


def sample(rng: np.random.Generator, members: int, dtype: Any = np.float32) -> Sample:
    mask = rng.random((tiny.ROWS, members)) < 0.7
    return Sample(batch(rng, dtype), mask, rng.uniform(0.3, 1, tiny.ROWS).astype(dtype))


def copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


@pytest.fixture(scope="module")
def three() -> Any:
    return ensemble(N)


# -- the parts ---------------------------------------------------------------------------------------------------------


def slow_projection(atoms: np.ndarray, reward: float, discount: float, probability: np.ndarray) -> np.ndarray:
    """Algorithm 1 of C51, atom by atom."""
    low, high, gap = atoms[0], atoms[-1], atoms[1] - atoms[0]
    goal = np.zeros(len(atoms))
    for atom, mass in zip(atoms, probability, strict=True):
        place = min((min(max(reward + discount * atom, low), high) - low) / gap, len(atoms) - 1)
        below, above = int(np.floor(place)), int(np.ceil(place))
        if below == above:
            goal[below] += mass
        else:
            goal[below] += mass * (above - place)
            goal[above] += mass * (place - below)
    return goal


PROJECT = jax.jit(project)


@settings(max_examples=60, deadline=None)
@given(
    reward=st.lists(st.floats(-30, 30), min_size=3, max_size=3),
    discount=st.lists(st.sampled_from([0.0, 0.5, 0.99**20, 1.0]), min_size=3, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_projection_is_c51s(reward: list[float], discount: list[float], seed: int) -> None:
    atoms = np.linspace(-10, 10, 11)
    probability = np.random.default_rng(seed).dirichlet(np.ones(11), 3)
    with jax.enable_x64(True):
        goal = np.asarray(PROJECT(*map(jnp.asarray, (atoms, np.array(reward), np.array(discount), probability))))
    for row in range(3):
        np.testing.assert_allclose(
            goal[row], slow_projection(atoms, reward[row], discount[row], probability[row]), atol=1e-10
        )
    np.testing.assert_allclose(goal.sum(axis=1), 1, atol=1e-10)


def test_a_terminal_transition_is_projected_to_its_reward() -> None:
    atoms = jnp.linspace(-1.0, 1.0, 5)
    goal = project(atoms, jnp.asarray([0.25]), jnp.zeros(1), jnp.full((1, 5), 0.2))
    np.testing.assert_allclose(goal, [[0, 0, 0.5, 0.5, 0]], atol=1e-6)


def test_noisy_layers_have_the_mean_and_variance_of_the_formula() -> None:
    """f(ε) has mean 0 and variance E|ε| = √(2/π); two of them multiplied, 2/π."""
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal((2, 3)), rng.uniform(0.5, 1, (2, 3))
    layer = NoisyLinear(*(jnp.asarray(x, jnp.float32) for x in (mean, mean[0], std, std[0])))
    drawn = jax.jit(jax.vmap(lambda key: perturb(layer, key)))(jax.random.split(KEY, 40_000))
    assert isinstance(drawn, Linear)
    np.testing.assert_allclose(drawn.weight.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(drawn.weight.var(axis=0), std**2 * 2 / np.pi, rtol=0.05)
    np.testing.assert_allclose(drawn.bias.var(axis=0), std[0] ** 2 * np.sqrt(2 / np.pi), rtol=0.05)
    np.testing.assert_allclose(signed_root(jnp.asarray([4.0, -9.0, 0.0])), [2, -3, 0])


def test_noise_is_factorised_and_its_first_deviations_are_those_of_the_paper() -> None:
    network = learner().init(KEY).online
    drawn = jax.jit(perturb)(network, KEY)
    for noisy, plain in zip(network.advantage + network.value, drawn.advantage + drawn.value, strict=True):
        assert isinstance(noisy, NoisyLinear)
        i, o = noisy.weight.shape
        np.testing.assert_allclose(noisy.weight_std, 0.1 * i**-0.5, rtol=1e-6)
        np.testing.assert_allclose(noisy.bias_std, 0.1 * o**-0.5, rtol=1e-6)
        assert float(jnp.abs(noisy.weight).max()) <= i**-0.5
        noise = np.asarray((plain.weight - noisy.weight) / noisy.weight_std)
        assert np.linalg.matrix_rank(noise, tol=1e-3) == 1
        np.testing.assert_allclose(noise / noise[:1], np.broadcast_to(noise[:, :1] / noise[0, 0], (i, o)), rtol=5e-3)


@pytest.mark.parametrize("size", [(25, 54), (84, 84)])
def test_convolutions_as_matrix_products_are_convolutions(double: None, size: tuple[int, int]) -> None:
    """In value and in gradient, also where the picture is not a multiple of 25."""
    layers = TiledConvolutions((linear(KEY, 25 * 3, 4), linear(jax.random.key(1), 25 * 4, 6)))
    frames = jnp.asarray(np.random.default_rng(0).integers(0, 256, (2, 3, *size), np.uint8))

    def ours(network: TiledConvolutions) -> Any:
        return network(frames)

    def theirs(network: TiledConvolutions) -> Any:
        x = frames.astype(float) / 255
        for layer, channels in zip(network.layers, (3, 4), strict=True):
            kernel = layer.weight.reshape(channels, 5, 5, -1)
            x = jax.lax.conv_general_dilated(x, kernel, (5, 5), "VALID", dimension_numbers=("NCHW", "IHWO", "NCHW"))
            x = jnp.maximum(x + layer.bias[:, None, None], 0)
        return x.reshape(len(frames), -1)

    def loss(network: TiledConvolutions, f: Any) -> Any:
        return jnp.sum(jnp.sin(f(network)))

    assert ours(layers).shape == (2, 6 * (size[0] // 25) * (size[1] // 25))
    tiny.assert_trees_close(ours(layers), theirs(layers), 1e-12)
    gradient = jax.jit(jax.grad(loss), static_argnums=1)
    tiny.assert_trees_close(gradient(layers, ours), gradient(layers, theirs), 1e-12)


def test_the_dueling_mean_over_actions_is_the_value_stream() -> None:
    network = learner(noisy=False).init(KEY).online
    obs = jax.random.normal(KEY, (5, tiny.OBS))
    hidden = jax.nn.relu(network.trunk(obs) @ network.value[0].weight + network.value[0].bias)
    value = hidden @ network.value[1].weight + network.value[1].bias
    np.testing.assert_allclose(network(obs, ACTIONS).mean(axis=1), value, atol=1e-6)


def test_the_paper_s_network_has_the_paper_s_sizes() -> None:
    space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    own = RainbowSettings()
    state = jax.eval_shape(rainbow(space, 6, own, rainbow_numbers(own)).init, KEY)
    shapes = {leaf.shape for leaf in jax.tree.leaves(state.online) if leaf.ndim == 2}
    assert shapes == {(100, 32), (800, 64), (576, 256), (256, 51), (256, 306)}


def test_our_adam_is_adam(double: None) -> None:
    own = rainbow_numbers(RainbowSettings())
    state = learner().init(KEY)
    adam = optax.adam(own.learning_rate, eps=own.adam_eps)
    plain, memory = state.online, adam.init(state.online)
    online, *moments = state.online, state.first, state.second
    ours, theirs = jax.jit(adam_step), jax.jit(adam.update)
    for step in range(5):
        gradient = jax.tree.map(lambda p, s=step: jnp.cos(p * 50 + s), plain)
        online, *moments = ours(online, *moments, gradient, 0.5, step, own.learning_rate, own.adam_eps)
        change, memory = theirs(jax.tree.map(lambda g: 0.5 * g, gradient), memory)
        plain = optax.apply_updates(plain, change)
        tiny.assert_trees_close(online, plain, 1e-12)


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Box(0, 255, (4, 4, 84, 84), np.uint8),
        gym.spaces.Box(0, 255, (84, 84, 4), np.uint8),
        gym.spaces.Box(0, 1, (4, 84, 84), np.float32),
    ],
)
def test_a_network_for_pictures_that_are_in_no_form_for_it_is_refused(space: gym.Space[Any]) -> None:
    """`fitting` brings them into that form."""
    with pytest.raises(SunriseError, match="Rainbow takes"):
        make(space)


@pytest.mark.parametrize("changes", [{"net_arch": ()}, {"n_atoms": 1}])
def test_impossible_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SunriseError, match="needs"):
        learner(**changes)


# -- one agent ---------------------------------------------------------------------------------------------------------


def learn_once(one: Learner, state: Any, rows: Batch, step: int = 0, mask: Any = None, weight: Any = None) -> Any:
    ones = jnp.ones(tiny.ROWS, rows.reward.dtype)
    mask, weight = ones if mask is None else mask, ones if weight is None else weight
    backup = one.bellman(state, rows, mask, KEY)
    return one.learn(state, rows, mask, backup, weight, jnp.asarray(step), KEY)


def test_the_target_by_hand(double: None) -> None:
    """The network of this step's noise chooses; the target network with a noise of its own gives the distribution."""
    one = learner()
    state = one.init(KEY)
    state = state._replace(target=learner().init(jax.random.key(1)).online)
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(0), np.float64))
    backup = one.bellman(state, rows, jnp.ones(tiny.ROWS), KEY)
    k_online, k_target = jax.random.split(KEY)
    atoms = np.linspace(-2, 2, ATOMS)
    online, target = (
        np.asarray(jax.nn.softmax(perturb(network, key)(rows.next_obs, ACTIONS)))
        for network, key in ((state.online, k_online), (state.target, k_target))
    )
    differ = False
    for row in range(tiny.ROWS):
        best = int(np.argmax(online[row] @ atoms))
        differ |= best != int(np.argmax(target[row] @ atoms))
        goal = slow_projection(atoms, float(rows.reward[row]), float(rows.discount[row]), target[row, best])
        np.testing.assert_allclose(backup.target[row], goal, atol=1e-10)
        assert backup.votes[0, row] == pytest.approx(target[row, best] @ atoms)
    assert differ
    highest = (target @ atoms).max(axis=1)
    np.testing.assert_allclose(one.judge_next(state, rows, backup.action, KEY)[0], highest, atol=1e-10)
    by_max = learner(weight_value="max").bellman(state, rows, jnp.ones(tiny.ROWS), KEY)
    np.testing.assert_allclose(by_max.votes[0], highest, atol=1e-10)
    single = learner(double=False).bellman(state, rows, jnp.ones(tiny.ROWS), KEY)
    np.testing.assert_array_equal(single.action, (target @ atoms).argmax(axis=1))


def test_loss_and_error_by_hand(double: None) -> None:
    """The loss is the mean over rows of weight · mask · cross-entropy; the error is the cross-entropy alone."""
    one = learner()
    state = one.init(KEY)
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(1), np.float64))
    mask = jnp.asarray([1.0, 0, 1, 1, 0, 1, 1, 1])
    weight = jnp.linspace(0.2, 1, tiny.ROWS)
    _, info = learn_once(one, state, rows, mask=mask, weight=weight)
    goal = one.bellman(state, rows, mask, KEY).target
    logits = perturb(state.online, jax.random.split(KEY)[0])(rows.obs, ACTIONS)
    error = np.array(
        [-(goal[r] * np.log(np.asarray(jax.nn.softmax(logits[r, rows.action[r]])))).sum() for r in range(tiny.ROWS)]
    )
    np.testing.assert_allclose(info.error, error[None], atol=1e-10)
    assert float(info.metrics["critic_loss"]) == pytest.approx(float((mask * weight * error).sum()) / tiny.ROWS)


def test_long_gradients_are_scaled_to_the_bound(double: None) -> None:
    """Adam's first memory after one step is a tenth of the gradient it was given."""
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(2), np.float64))
    own = RainbowSettings(**TINY)
    state, ones = learner().init(KEY), jnp.ones(tiny.ROWS)
    backup = learner().bellman(state, rows, ones, KEY)

    @jax.jit
    def bounded(bound: Any) -> Any:
        one = rainbow(STATES, ACTIONS, own, rainbow_numbers(own)._replace(max_grad_norm=bound))
        return one.learn(state, rows, ones, backup, ones, jnp.asarray(0), KEY)

    for bound in (0.0, 1e-3, 1e3):
        new, info = bounded(bound)
        norm = float(info.metrics["gradient_norm"])
        assert norm > 1e-3
        assert 10 * float(optax.tree.norm(new.first)) == pytest.approx(1e-3 if bound == 1e-3 else norm)


def test_the_target_network_is_copied_at_the_interval_and_else_stays() -> None:
    one = learner(target_update_interval=3)
    state = one.init(KEY)
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(3)))
    for step in range(7):
        before = state.target
        state, _ = learn_once(one, state, rows, step)
        assert tiny.same_bits(state.target, state.online if step in (2, 5) else before)
        assert not tiny.same_bits(before, state.online)


def test_the_first_copy_comes_at_its_timestep_though_learning_begins_late() -> None:
    """Learning begins after 1,600 timesteps and a copy is due at 2,000: after 400 updates, as in the reference."""
    config = with_settings(algorithm("rainbow").defaults, TINY)
    parts = algorithm("rainbow").fit(config, STATES, gym.spaces.Discrete(ACTIONS))
    one = parts.make_learner(parts.numbers)
    state = one.init(KEY)
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(3)))
    copied = [step for step in (398, 399, 400, 1999, 2399) if is_copied(learn_once(one, state, rows, step)[0])]
    assert copied == [399, 2399]


def is_copied(state: RainbowState) -> bool:
    return tiny.same_bits(state.target, state.online)


def test_evaluation_has_no_noise_and_exploration_has() -> None:
    one = learner(noisy_std=5.0)
    state = one.init(KEY)
    obs, action = jnp.ones((1, tiny.OBS)), jnp.zeros(1, int)
    mean = jnp.zeros_like
    quiet = state._replace(
        online=jax.tree.map(
            lambda node: (
                NoisyLinear(node.weight, node.bias, mean(node.weight), mean(node.bias))
                if isinstance(node, NoisyLinear)
                else node
            ),
            state.online,
            is_leaf=lambda node: isinstance(node, NoisyLinear),
        )
    )
    exact = one.judge(state, obs, action, None)
    np.testing.assert_array_equal(exact, one.judge(quiet, obs, action, KEY))
    assert not np.allclose(exact, one.judge(state, obs, action, KEY))
    keys = jax.random.split(KEY, 100)
    proposals = jax.jit(jax.vmap(lambda k: one.propose(state, obs, k)[0]))(keys)
    assert len(np.unique(proposals)) > 1
    assert np.unique(jax.vmap(lambda k: one.propose(quiet, obs, k)[0])(keys)) == one.propose(state, obs, None)


@pytest.mark.parametrize("off", ["distributional", "dueling", "noisy", "double"])
def test_each_component_can_be_switched_off(off: str) -> None:
    changes: dict[str, Any] = {off: False}
    one = learner(**changes)
    state = one.init(KEY)
    rows = jax.tree.map(jnp.asarray, batch(np.random.default_rng(4)))
    new, info = learn_once(one, state, rows)
    assert set(info.metrics) == set(one.metrics)
    assert np.isfinite(list(info.metrics.values())).all()
    assert not tiny.same_bits(new.online, state.online)
    assert (new.online.value == ()) == (off == "dueling")
    noisy = [isinstance(layer, NoisyLinear) for layer in new.online.advantage]
    assert noisy == [off != "noisy"] * 2
    outputs = new.online.advantage[-1].weight.shape[1]
    assert outputs == (ACTIONS if off == "distributional" else ACTIONS * ATOMS)


def test_frames_are_learned_from() -> None:
    one = learner(FRAMES)
    rng = np.random.default_rng(5)
    rows = batch(rng)
    frames = [jnp.asarray(rng.integers(0, 256, (tiny.ROWS, 2, 27, 31), np.uint8)) for _ in range(2)]
    rows = jax.tree.map(jnp.asarray, rows._replace(obs=frames[0], next_obs=frames[1]))
    state = one.init(KEY)
    new, info = learn_once(one, state, rows)
    assert np.isfinite(info.error).all()
    for old_layer, new_layer in zip(state.online.trunk.layers, new.online.trunk.layers, strict=True):
        assert not tiny.same_bits(old_layer.weight, new_layer.weight)


class PlainDQN:
    """DQN with ReLU layers, Huber loss, Adam and a copied target, from its paper."""

    def __init__(self, start: RainbowState) -> None:
        net: Any = start.online
        self.online = [net.trunk.layer, *net.advantage]
        self.target, self.step = self.online, 0
        self.adam = optax.adam(1e-4, eps=1.5e-4)
        self.memory = self.adam.init(self.online)

    @staticmethod
    def forward(layers: Any, x: Any) -> Any:
        for depth, layer in enumerate(layers):
            x = jnp.einsum("bi,io->bo", x, layer.weight) + layer.bias
            x = jnp.maximum(x, 0) if depth < len(layers) - 1 else x
        return x

    def update(self, drawn: Sample, interval: int) -> Any:
        b, mask = jax.tree.map(jnp.asarray, drawn.batch), jnp.asarray(drawn.mask[:, 0], float)
        goal = b.reward + b.discount * self.forward(self.target, b.next_obs).max(1)

        def loss(layers: Any) -> tuple[Any, Any]:
            q = self.forward(layers, b.obs)[jnp.arange(len(mask)), b.action]
            error = jnp.abs(q - goal)
            huber = jnp.where(error < 1, 0.5 * error**2, error - 0.5)
            return (mask * drawn.importance * huber).sum() / len(mask), error

        gradient, error = jax.grad(loss, has_aux=True)(self.online)
        change, self.memory = jax.jit(self.adam.update)(gradient, self.memory)
        self.online = optax.apply_updates(self.online, change)
        self.step += 1
        if self.step % interval == 0:
            self.target = self.online
        return error


def test_with_everything_off_it_equals_an_independently_written_dqn(double: None) -> None:
    functions, numbers, state, tally = ensemble(1, **ALL_OFF, target_update_interval=3, max_grad_norm=0.0)
    plain = PlainDQN(member(state.members, 0))
    rng = np.random.default_rng(6)
    for _ in range(8):
        drawn = sample(rng, 1, np.float64)
        error = plain.update(drawn, 3)
        state, tally, report = functions.update(state, tally, drawn, KEY, numbers)
        np.testing.assert_allclose(report.priority, error, atol=1e-9)
    for name, layers in (("online", plain.online), ("target", plain.target)):
        net = getattr(member(state.members, 0), name)
        tiny.assert_trees_close([net.trunk.layer, *net.advantage], layers, 1e-9)


# -- the ensemble ------------------------------------------------------------------------------------------------------


def loop_update(states: list[Any], drawn: Sample, step: int, votes_by: str) -> tuple[list[Any], Any]:
    """The oracle: N separate agents, one after the other; only the weight sees all of them."""
    one = learner(target_update_interval=4)
    rows = jax.tree.map(jnp.asarray, drawn.batch)
    keys = [jax.random.fold_in(jax.random.fold_in(KEY, step), i) for i in range(len(states))]
    masks = [jnp.asarray(drawn.mask[:, i], float) for i in range(len(states))]
    backups = [one.bellman(s, rows, m, k) for s, m, k in zip(states, masks, keys, strict=True)]
    if votes_by == "own":
        votes = np.concatenate([b.votes for b in backups])
    else:
        votes = np.concatenate(
            [one.judge_next(s, rows, backups[0].action, k) for s, k in zip(states, keys, strict=True)]
        )
    weight = jnp.asarray((1 / (1 + np.exp(votes.std(axis=0) * 20)) + 0.5) * drawn.importance)
    results = [
        one.learn(s, rows, m, b, weight, jnp.asarray(step), k)
        for s, m, b, k in zip(states, masks, backups, keys, strict=True)
    ]
    return [state for state, _ in results], np.mean([info.error[0] for _, info in results], axis=0)


@pytest.mark.parametrize("weight_votes", ["own", "shared"])
def test_the_vectorised_update_equals_a_loop_over_agents(double: None, weight_votes: str) -> None:
    functions, numbers, state, tally = ensemble(N, weight_votes=weight_votes, target_update_interval=4)
    rng = np.random.default_rng(0)
    states = [member(state.members, i) for i in range(N)]
    for step in range(10):
        drawn = sample(rng, N, np.float64)
        states, priority = loop_update(states, drawn, step, weight_votes)
        state, tally, report = functions.update(state, tally, drawn, KEY, numbers)
        assert bool(report.finite)
        np.testing.assert_allclose(report.priority, priority, atol=1e-9)
    for i in range(N):
        tiny.assert_trees_close(member(state.members, i), states[i], 1e-9)


def test_a_member_whose_mask_is_zero_does_not_move(three: Any) -> None:
    functions, numbers, state, tally = three
    drawn = sample(np.random.default_rng(7), N)
    mask = np.ones_like(drawn.mask)
    mask[:, 1] = False
    after, _, _ = functions.update(copy(state), copy(tally), drawn._replace(mask=mask), KEY, numbers)
    assert tiny.same_bits(member(after.members, 1), member(state.members, 1))
    assert not tiny.same_bits(member(after.members, 0).online, member(state.members, 0).online)


def test_an_update_that_is_not_finite_is_refused_and_named(three: Any) -> None:
    functions, numbers, state, tally = three
    drawn = sample(np.random.default_rng(8), N)
    bad = drawn._replace(importance=np.full_like(drawn.importance, np.nan))
    after, _, report = functions.update(copy(state), copy(tally), bad, KEY, numbers)
    assert not bool(report.finite)
    assert tiny.same_bits(after, state)
    assert "gradient_norm of member 0" in functions.faults(state, bad, KEY, numbers)


def test_evaluation_takes_the_action_of_the_highest_mean_value(three: Any) -> None:
    functions, numbers, state, _ = three
    obs = np.random.default_rng(9).standard_normal((20, tiny.OBS)).astype(np.float32)
    values = []
    for i in range(N):
        logits = perturb(member(state.members, i).online, None)(jnp.asarray(obs), ACTIONS)
        values.append(np.asarray(jax.nn.softmax(logits)) @ np.linspace(-2, 2, ATOMS))
    np.testing.assert_array_equal(functions.exploit(state.members, obs, numbers), np.mean(values, 0).argmax(1))


def test_exploration_ranks_every_action_by_the_noisy_networks(three: Any) -> None:
    functions, numbers, state, _ = three
    obs = np.random.default_rng(10).standard_normal((20, tiny.OBS)).astype(np.float32)
    choice = functions.explore(state.members, obs, np.zeros(20, np.int32), KEY, np.int32(0), numbers)
    values = []
    for i in range(N):
        key = member_key(0) if i == 0 else jax.random.fold_in(jax.random.fold_in(KEY, 0), i)
        logits = perturb(member(state.members, i).online, key)(jnp.asarray(obs), ACTIONS)
        values.append(np.asarray(jax.nn.softmax(logits)) @ np.linspace(-2, 2, ATOMS))
    scores = np.mean(values, 0) + np.std(values, 0)
    np.testing.assert_array_equal(choice.action, scores.argmax(1))
    np.testing.assert_array_equal(choice.candidate, choice.action)
