"""The paper's five Gym tasks are the ones its scores were measured on.

The numbers here are written out anew, not read from the table that the environments are made of.
"""

import gc
import importlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

from sunrise.registration import register

register()

FIXED_LENGTH = ["Cheetah", "Walker", "Hopper", "Ant"]
NAMES = [*FIXED_LENGTH, "SlimHumanoid"]
ON_THE_FLOOR = {"Cheetah": 1, "Walker": 1, "Hopper": 1, "Ant": 2, "SlimHumanoid": 2}
START = {
    "Cheetah": [0, 0, 0] + 6 * [0],
    "Walker": [0, 1.25, 0] + 6 * [0],
    "Hopper": [0, 1.25, 0] + 3 * [0],
    "Ant": [0, 0, 0.75, 1, 0, 0, 0] + 8 * [0],
    "SlimHumanoid": [0, 0, 1.4, 1, 0, 0, 0] + 17 * [0],
}
GYMNASIUM: dict[str, tuple[str, dict[str, Any]]] = {
    "Cheetah": ("HalfCheetah-v5", {}),
    "Walker": ("Walker2d-v5", {"xml_file": "walker2d.xml"}),
    "Hopper": ("Hopper-v5", {}),
    "Ant": ("Ant-v5", {}),
    "SlimHumanoid": ("Humanoid-v5", {}),
}
REWARD: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "Cheetah": lambda q, v, a: v[0] - 0.1 * (a @ a),
    "Walker": lambda q, v, a: v[0] - 3 * (q[1] - 1.3) ** 2 - 0.1 * (a @ a) + 1,
    "Hopper": lambda q, v, a: v[0] - 3 * (q[1] - 1.3) ** 2 - 0.1 * (a @ a) + 1,
    "Ant": lambda q, v, a: v[0] - 3 * (q[2] - 0.57) ** 2 - 0.1 * (a @ a) + 1,
    "SlimHumanoid": lambda q, v, a: 50 / 3 * v[0] - 0.1 * (a @ a) + (5 if 1 <= q[2] <= 2 else 0),
}
TERMS = ["velocity", "height", "control", "alive"]

every_task = pytest.mark.parametrize("name", NAMES)


def make(name: str, **options: Any) -> gym.Env[Any, Any]:
    return gym.make(f"sunrise/{name}-v0", **options)


def engine(env: gym.Env[Any, Any]) -> Any:
    """What Gymnasium's MuJoCo tasks and ours share: a model, data, and a way to set the state."""
    return env.unwrapped


def state(env: gym.Env[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    return engine(env).data.qpos.copy(), engine(env).data.qvel.copy()


def push(env: gym.Env[Any, Any], action: float = 0.0) -> np.ndarray:
    """The same action on every joint."""
    return np.full(env.action_space.shape or (), action, np.float32)


def put_root(env: gym.Env[Any, Any], name: str, height: float, forward: float = 0.0, up: float = 0.0) -> None:
    """The initial pose at a height, with a velocity of the root and nothing else."""
    floor = ON_THE_FLOOR[name]
    qpos, qvel = np.array(START[name], float), np.zeros_like(state(env)[1])
    qpos[floor], qvel[0], qvel[floor] = height, forward, up
    engine(env).set_state(qpos, qvel)


@pytest.mark.parametrize(
    ("name", "observation", "action", "bound", "seconds"),
    [
        ("Cheetah", 17, 6, 1.0, 0.05),
        ("Walker", 17, 6, 1.0, 0.008),
        ("Hopper", 11, 3, 1.0, 0.008),
        ("Ant", 27, 8, 1.0, 0.05),
        ("SlimHumanoid", 45, 17, 0.4, 0.015),
    ],
)
def test_spaces_and_control_rate_are_those_of_the_paper(
    name: str, observation: int, action: int, bound: float, seconds: float
) -> None:
    env = make(name)
    assert env.observation_space == gym.spaces.Box(-np.inf, np.inf, (observation,), np.float64)
    assert env.action_space == gym.spaces.Box(-np.float32(bound), np.float32(bound), (action,), np.float32)
    assert engine(env).dt == pytest.approx(seconds)
    assert env.metadata["render_fps"] == round(1 / seconds)


@every_task
def test_an_observation_is_all_but_the_place_on_the_floor_with_velocities_unclipped(name: str) -> None:
    env = make(name)
    obs, _ = env.reset(seed=0)
    qpos, qvel = state(env)
    np.testing.assert_array_equal(obs, np.concatenate([qpos[ON_THE_FLOOR[name] :], qvel]))
    engine(env).set_state(qpos, qvel + 30)
    obs = env.step(push(env))[0]
    qpos, qvel = state(env)
    np.testing.assert_array_equal(obs, np.concatenate([qpos[ON_THE_FLOOR[name] :], qvel]))
    assert np.abs(qvel).max() > 10


@every_task
def test_the_reward_is_of_the_state_before_the_step_and_the_action(name: str) -> None:
    env = make(name)
    env.reset(seed=1)
    env.action_space.seed(2)
    for _ in range(30):
        before, action = state(env), env.action_space.sample()
        _, reward, terminated, _, info = env.step(action)
        wide = action.astype(np.float64)
        assert reward == pytest.approx(REWARD[name](*before, wide), abs=1e-12)
        assert reward == pytest.approx(sum(info[f"reward_{term}"] for term in TERMS), abs=1e-12)
        assert abs(float(reward) - REWARD[name](*state(env), wide)) > 1e-6, "before and after cannot be told apart"
        if terminated:
            env.reset()


@pytest.mark.parametrize(
    ("name", "height", "forward", "action", "expected"),
    [
        ("Cheetah", 0.3, 2.0, 0.5, (2, 0, -0.15, 0)),
        ("Walker", 1.0, 2.0, 0.5, (2, -0.27, -0.15, 1)),
        ("Walker", 0.2, -1.0, 1.0, (-1, -3.63, -0.6, 1)),
        ("Hopper", 1.0, 2.0, 0.5, (2, -0.27, -0.075, 1)),
        ("Ant", 0.77, 2.0, 0.5, (2, -0.12, -0.2, 1)),
        ("SlimHumanoid", 1.4, 0.3, 0.2, (5, 0, -0.068, 5)),
        ("SlimHumanoid", 1.0, 0.3, 0.4, (5, 0, -0.272, 5)),
        ("SlimHumanoid", 0.99, 0.3, 0.2, (5, 0, -0.068, 0)),
        ("SlimHumanoid", 2.01, -0.3, 0.2, (-5, 0, -0.068, 0)),
    ],
)
def test_the_terms_of_the_reward_are_the_ones_computed_by_hand(
    name: str, height: float, forward: float, action: float, expected: tuple[float, ...]
) -> None:
    env = make(name)
    env.reset(seed=0)
    put_root(env, name, height, forward)
    _, reward, _, _, info = env.step(push(env, action))
    assert [info[f"reward_{term}"] for term in TERMS] == pytest.approx(expected, abs=1e-6)
    assert reward == pytest.approx(sum(expected), abs=1e-6)


@pytest.mark.parametrize("name", FIXED_LENGTH)
def test_an_episode_is_a_thousand_steps_however_the_robot_lies(name: str) -> None:
    env = make(name)
    env.reset(seed=3)
    env.action_space.seed(4)
    lowest = np.inf
    for step in range(1, 1001):
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        lowest = min(lowest, obs[0])
        assert (terminated, truncated) == (False, step == 1000)
    assert lowest < 0.7, "the robot never left Gym's range of healthy heights, so the test shows nothing"


@pytest.mark.parametrize("name", FIXED_LENGTH)
@pytest.mark.parametrize("height", [-0.3, 0.1, 5.0])
def test_no_height_ends_an_episode_of_fixed_length(name: str, height: float) -> None:
    env = make(name)
    env.reset(seed=0)
    put_root(env, name, height)
    assert env.step(push(env))[2] is False


@pytest.mark.parametrize(
    ("height", "up", "terminated"), [(1.4, 0, False), (1.003, -1, True), (1.003, 1, False), (1.997, 1, True)]
)
def test_slim_humanoid_ends_when_it_leaves_one_to_two_metres_and_is_paid_for_that_step(
    height: float, up: float, terminated: bool
) -> None:
    env = make("SlimHumanoid")
    env.reset(seed=0)
    put_root(env, "SlimHumanoid", height, up=up)
    lying, velocity = state(env)
    lying[3:7] = np.sqrt(0.5), 0, np.sqrt(0.5), 0  # in the air: upright, the floor would push it up
    engine(env).set_state(lying, velocity)
    obs, _, ended, truncated, info = env.step(push(env))
    assert (ended, truncated, info["reward_alive"]) == (terminated, False, 5)
    assert terminated == (not 1 <= obs[0] <= 2)


def test_a_slim_humanoid_that_stays_up_is_truncated_after_a_thousand_steps() -> None:
    env = make("SlimHumanoid")
    env.reset(seed=0)
    for step in range(1, 1001):
        put_root(env, "SlimHumanoid", 1.4)
        _, _, terminated, truncated, _ = env.step(push(env))
        assert (terminated, truncated) == (False, step == 1000)


@pytest.mark.parametrize(
    ("name", "scale", "velocities"),
    [
        ("Cheetah", 0.1, "normal"),
        ("Walker", 0.005, "uniform"),
        ("Hopper", 0.005, "uniform"),
        ("Ant", 0.1, "normal"),
        ("SlimHumanoid", 0.01, "uniform"),
    ],
)
def test_initial_states_have_the_noise_of_the_benchmark(name: str, scale: float, velocities: str) -> None:
    env = make(name)
    env.reset(seed=5)
    states = [(env.reset(), state(env))[1] for _ in range(300)]
    position = np.array([qpos for qpos, _ in states]) - START[name]
    velocity = np.array([qvel for _, qvel in states])
    rotation = [3, 4, 5, 6] if ON_THE_FLOOR[name] == 2 else []
    place = [] if name == "SlimHumanoid" else list(range(ON_THE_FLOOR[name]))
    assert not position[:, place].any()
    free = np.delete(position, [*place, *rotation], axis=1)
    uniform = stats.uniform(-1, 2)
    kinds = {"uniform": uniform, "normal": stats.norm()}
    assert stats.kstest(free.ravel() / scale, uniform.cdf).pvalue > 0.01
    assert stats.kstest(velocity.ravel() / scale, kinds[velocities].cdf).pvalue > 0.01
    noise = np.concatenate([free, velocity], axis=1)
    assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.25, "coordinates are not independent"


@every_task
def test_start_and_physics_are_gymnasiums_but_for_the_place_and_the_length_of_the_quaternion(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the engine logs a deprecation of Gymnasium's Cheetah into the working directory
    env_id, options = GYMNASIUM[name]
    env, theirs = make(name), gym.make(env_id, **options)
    env.reset(seed=6)
    theirs.reset(seed=6)
    qpos, qvel = state(theirs)
    if name != "SlimHumanoid":
        qpos[: ON_THE_FLOOR[name]] = 0
    if ON_THE_FLOOR[name] == 2:
        assert abs(np.linalg.norm(qpos[3:7]) - 1) > 1e-4, "the engine normalises rotations itself again"
        qpos[3:7] /= np.linalg.norm(qpos[3:7])
    np.testing.assert_allclose(state(env)[0], qpos, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(state(env)[1], qvel)
    engine(theirs).set_state(*state(env))
    env.action_space.seed(7)
    for _ in range(20):
        action = env.action_space.sample()
        env.step(action)
        theirs.step(action)
    np.testing.assert_allclose(np.concatenate(state(env)), np.concatenate(state(theirs)), rtol=0, atol=1e-6)


def test_the_walkers_feet_have_the_frictions_of_the_classic_model() -> None:
    model = engine(make("Walker")).model
    assert [model.geom(foot).friction[0] for foot in ("foot_geom", "foot_left_geom")] == [0.9, 1.9]


@every_task
def test_a_seed_fixes_this_episode_and_the_next_ones(name: str) -> None:
    def run(seed: int) -> np.ndarray:
        env = make(name)
        env.action_space.seed(0)
        seen = [env.reset(seed=seed)[0]]
        for _ in range(2):
            for _ in range(8):
                obs, reward, *_ = env.step(env.action_space.sample())
                seen += [np.append(obs, float(reward))]
            seen += [env.reset()[0]]
        return np.concatenate(seen)

    np.testing.assert_array_equal(run(8), run(8))
    assert not np.allclose(run(8), run(9))


@every_task
def test_gymnasiums_checker_finds_nothing_but_that_a_state_has_no_bounds(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(make(name, disable_env_checker=True).unwrapped, skip_render_check=True)
    assert [str(w.message) for w in caught if "infinity" not in str(w.message)] == []


def test_registering_again_changes_nothing() -> None:
    before = dict(gym.registry)
    register()
    assert gym.registry == before
    assert {f"sunrise/{name}-v0" for name in NAMES} <= before.keys()


def test_a_cheetah_weighs_fourteen_kilograms_and_leaves_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert engine(make("Cheetah")).model.body_mass.sum() == pytest.approx(14)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


@pytest.fixture
def gl(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GL library that works, or the test is skipped; what goes wrong after that is ours."""
    backend = os.environ.get("MUJOCO_GL", "egl")
    monkeypatch.setenv("MUJOCO_GL", backend)
    try:
        context = importlib.import_module(f"mujoco.{backend}").GLContext(8, 8)
        context.make_current()
        context.free()
    except Exception as error:
        pytest.skip(f"no GL library for MUJOCO_GL={backend} on this machine: {error!r}")


@pytest.mark.usefixtures("gl")
@every_task
def test_a_picture_shows_the_robot_wherever_it_has_run(name: str) -> None:
    env = make(name, render_mode="rgb_array", width=96, height=64)
    env.reset(seed=0)
    qpos, qvel = state(env)

    joints = 7 if ON_THE_FLOOR[name] == 2 else 3

    def picture(forward: float = 0.0, bend: float = 0.0) -> np.ndarray:
        moved = qpos.copy()
        moved[0] += forward
        moved[joints:] += bend
        engine(env).set_state(moved, qvel)
        return np.asarray(env.render(), float)

    here = picture()
    assert here.shape == (64, 96, 3)
    # Eight metres are a whole number of tiles of each floor: what changes is the light, or the robot is not in view.
    moved, bent = np.abs(picture(forward=8.0) - here).mean(), np.abs(picture(bend=0.5) - here).mean()
    assert bent > 4
    assert moved < bent / 4
    env.close()
    env.close()


@pytest.mark.usefixtures("gl")
def test_environments_draw_each_its_own_picture_and_outlive_one_another() -> None:
    one, other = (make(name, render_mode="rgb_array", width=64, height=64) for name in ("Hopper", "Ant"))
    one.reset(seed=0)
    other.reset(seed=0)
    hopper, ant = np.asarray(one.render()), np.asarray(other.render())
    assert hopper.std() > 10
    np.testing.assert_array_equal(one.render(), hopper)
    np.testing.assert_array_equal(other.render(), ant)
    one.close()
    np.testing.assert_array_equal(other.render(), ant)
    del one
    gc.collect()
    np.testing.assert_array_equal(other.render(), ant)
    other.close()
