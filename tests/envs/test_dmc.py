"""The DeepMind Control suite: the same episodes as dm_control's own, the same pictures, or nearly, without a driver."""

import hashlib
import math
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sunrise.config.tasks import DMC_SUITE, PAPER_TASKS, RendererName
from sunrise.envs import dmc, renderers
from sunrise.envs.display import no_display
from sunrise.errors import SunriseError
from sunrise.registration import register

pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
with dmc.quietly(), no_display():
    suite = pytest.importorskip("dm_control.suite", reason="needs the extra dmc")

register()


def make(env_id: str, **options: Any) -> gym.Env[Any, Any]:
    return gym.make(env_id, disable_env_checker=True, **options)


def inside(env: gym.Env[Any, Any]) -> dmc.DMCEnv:
    assert isinstance(env.unwrapped, dmc.DMCEnv)
    return env.unwrapped


def python(code: str, **environment: str) -> str:
    """Run code in a new process, which must say nothing on stderr."""
    environment = os.environ | environment
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.fixture
def gl() -> RendererName:
    """OpenGL, where this machine has any."""
    if (name := renderers.resolve("auto")) == "warp":
        pytest.skip("no OpenGL on this machine")
    return name


def test_every_task_of_the_suite_has_an_id_and_no_other() -> None:
    assert [(domain, task) for domain, tasks in DMC_SUITE.items() for task in tasks] == list(suite.ALL_TASKS)
    register()
    ids = {env_id for env_id in gym.registry if env_id.startswith("dmc/")}
    assert ids == {f"dmc/{domain}-{task}" for domain, task in suite.ALL_TASKS}
    assert set(PAPER_TASKS) <= ids


@pytest.mark.parametrize(("env_id", "repeat"), [(i, PAPER_TASKS[i].action_repeat) for i in PAPER_TASKS])
def test_an_episode_is_that_of_dm_control_stepped_by_hand(env_id: str, repeat: int) -> None:
    env = make(env_id, action_repeat=repeat)
    domain, task = env_id.removeprefix("dmc/").split("-")
    reference = suite.load(domain, task, task_kwargs={"random": 7})
    now, (obs, _) = reference.reset(), env.reset(seed=7)
    env.action_space.seed(1)
    steps, truncated = 0, False
    while not truncated:
        np.testing.assert_array_equal(obs, np.concatenate([np.ravel(part) for part in now.observation.values()]))
        action = env.action_space.sample()
        obs, reward, terminated, truncated, info = env.step(action)
        expected = 0.0
        for _ in range(repeat):
            now = reference.step(action)
            expected += now.reward
        assert (reward, info["simulator_steps"], terminated) == (expected, repeat, False)
        steps += 1
    assert steps == math.ceil(1000 / repeat)
    assert now.last()
    assert inside(env).action_repeat == repeat
    assert obs.dtype == np.float64
    assert env.action_space.dtype == np.float32


def test_a_repeat_stops_at_the_end_of_the_episode() -> None:
    env = make("dmc/cartpole-balance", action_repeat=3)
    env.reset(seed=1)
    *_, last = (env.step(np.zeros(1, np.float32)) for _ in range(334))
    _, reward, terminated, truncated, info = last
    assert (terminated, truncated, info["simulator_steps"]) == (False, True, 1)
    assert float(reward) <= 1


def test_only_discount_zero_is_termination() -> None:
    env = make("dmc/lqr-lqr_2_1")
    env.reset(seed=1)
    with inside(env).simulator.physics.reset_context():
        pass  # to rest at the origin, where this task is over
    _, _, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
    assert (terminated, truncated) == (True, False)
    assert np.isinf(env.action_space.high).all()  # type: ignore[attr-defined]


def test_lqr_is_one_system_and_its_episodes_end() -> None:
    one, other = make("dmc/lqr-lqr_6_2"), make("dmc/lqr-lqr_6_2", action_repeat=500)
    np.testing.assert_array_equal(one.reset(seed=4)[0], other.reset(seed=4)[0])
    stiffness = [inside(env).simulator.physics.model.jnt_stiffness for env in (one, other)]
    np.testing.assert_array_equal(*stiffness)
    assert [other.step(np.zeros(2, np.float32))[3] for _ in range(2)] == [False, True]


ELSEWHERE = """
import sys, hashlib, gymnasium as gym, numpy as np
from sunrise.registration import register
register()
assert not {"dm_control", "warp"} & set(sys.modules), "the extra is imported before it is used"
env = gym.make("dmc/reacher-easy", disable_env_checker=True)
env.reset(seed=1)
obs = [env.reset(seed=5)[0]] + [env.step(np.full(2, 0.3, np.float32))[0] for _ in range(50)] + [env.reset()[0]]
print(hashlib.sha256(np.concatenate(obs).tobytes()).hexdigest())
auto, warp = (gym.make("dmc/cartpole-swingup", pixels=True, render_size=16, disable_env_checker=True, renderer=name)
              for name in ("auto", "warp"))
print(auto.reset(seed=1)[0].shape == warp.reset(seed=1)[0].shape, auto.unwrapped.renderer_name)
"""


@pytest.fixture(scope="module")
def elsewhere() -> list[str]:
    """What a new process printed on stdout: a digest of two episodes, and what its renderers were."""
    return python(ELSEWHERE).splitlines()


def test_a_seed_makes_the_same_episodes_in_a_new_process(elsewhere: list[str]) -> None:
    env = make("dmc/reacher-easy")
    obs = [env.reset(seed=5)[0]] + [env.step(np.full(2, 0.3, np.float32))[0] for _ in range(50)] + [env.reset()[0]]
    assert elsewhere[0] == hashlib.sha256(np.concatenate(obs).tobytes()).hexdigest()
    assert not np.array_equal(obs[0], env.reset(seed=6)[0])
    assert not np.array_equal(make("dmc/reacher-easy").reset()[0], make("dmc/reacher-easy").reset()[0])


def test_renderers_say_nothing_even_if_nobody_closes_them(elsewhere: list[str]) -> None:
    assert elsewhere[1:] == [f"True {renderers.resolve('auto')}"]


@pytest.mark.parametrize("options", [{}, {"pixels": True, "render_size": 24, "renderer": "warp", "video_size": 24}])
def test_gymnasium_finds_nothing_wrong(options: dict[str, Any]) -> None:
    env = make("dmc/cartpole-swingup", render_mode="rgb_array" if options else None, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*observation space m.* value is -?infinity")  # as states are
        check_env(env.unwrapped)


def test_frames_are_stacked_newest_last_and_the_first_fills_the_stack() -> None:
    env = make("dmc/cartpole-swingup", pixels=True, render_size=32, renderer="warp", action_repeat=8, frame_stack=4)
    first, _ = env.reset(seed=1)
    assert (first.shape, first.dtype) == ((4, 32, 32, 3), np.uint8)
    assert (first == first[0]).all()
    second = env.step(np.ones(1, np.float32))[0]
    third = env.step(np.ones(1, np.float32))[0]
    np.testing.assert_array_equal(second, np.stack([*first[1:], second[-1]]))
    np.testing.assert_array_equal(third, np.stack([*second[1:], third[-1]]))
    assert (third[-1] != third[-2]).any()
    again, _ = env.reset()
    assert (again == again[0]).all()


REFERENCE = """
import sys, numpy as np
from dm_control import suite
from absl import logging
logging.set_verbosity("error")
for domain, task in (("cartpole", "swingup"), ("cheetah", "run")):
    env = suite.load(domain, task, task_kwargs={"random": 3})
    env.reset()
    for _ in range(20):
        env.step(np.full(env.action_spec().shape, 0.7, np.float32))
    np.save(f"{sys.argv[1]}/{domain}-{task}.npy", env.physics.render(height=100, width=100, camera_id=0))
    env.physics.free()
"""


def test_opengl_gives_dm_controls_picture_and_warp_nearly(gl: RendererName, tmp_path: Path) -> None:
    python(f"import sys\nsys.argv = ['', {str(tmp_path)!r}]\n{REFERENCE}", MUJOCO_GL=gl)
    for env_id in ("dmc/cartpole-swingup", "dmc/cheetah-run"):
        newest = {}
        for renderer in (gl, "warp"):
            env = make(env_id, pixels=True, renderer=renderer, action_repeat=20)
            env.reset(seed=3)
            obs = env.step(np.full(env.action_space.shape or (), 0.7, np.float32))[0]
            newest[inside(env).renderer_name] = obs[-1].astype(int)
            env.close()
        reference = np.load(tmp_path / f"{env_id.removeprefix('dmc/')}.npy").astype(int)
        np.testing.assert_array_equal(newest[gl], reference)
        assert 0 < np.abs(newest["warp"] - reference).mean() < 8


def test_warp_draws_limbs_where_they_are_and_not_where_they_were() -> None:
    env = make("dmc/cartpole-swingup", pixels=True, renderer="warp", render_size=64)
    env.reset(seed=1)
    physics = inside(env).simulator.physics
    visible = []
    for position in (0.0, 1.2):
        with physics.reset_context():
            physics.named.data.qpos["slider"] = position
        red, _, blue = inside(env).picture(64).astype(int).transpose(2, 0, 1)
        columns = (red > blue + 20).any(0)
        visible.append(columns.sum())
        assert columns.any()
        assert (columns.nonzero()[0].mean() > 40) == (position > 1)
    assert abs(visible[0] - visible[1]) <= 2


def test_quality_can_be_traded_for_speed(gl: RendererName) -> None:
    best, fast = (
        make("dmc/cartpole-swingup", pixels=True, renderer=gl, anti_aliasing=samples, shadow_size=shadow)
        for samples, shadow in ((None, None), (0, 0))
    )
    difference = np.abs(best.reset(seed=1)[0].astype(int) - fast.reset(seed=1)[0])
    assert 0 < difference.mean() < 8


def test_a_state_environment_can_be_filmed_at_any_size() -> None:
    env = make("dmc/cartpole-swingup", render_mode="rgb_array", renderer="warp", video_size=80, action_repeat=4)
    env.reset(seed=1)
    picture: Any = env.render()
    assert (picture.shape, picture.dtype) == ((80, 80, 3), np.uint8)
    assert env.metadata["render_fps"] == 25


def test_without_a_driver_auto_is_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderers, "works", lambda name: False)
    assert renderers.resolve("auto") == "warp"
    with pytest.raises(SunriseError, match="apt install libosmesa6"):
        renderers.resolve("osmesa")
    assert make("dmc/cartpole-swingup").unwrapped.renderer_name is None  # type: ignore[attr-defined]


NO_OPENGL = """
import ctypes, ctypes.util

start, find = ctypes.CDLL.__init__, ctypes.util.find_library

def refuse(self, name, *args, **kwargs):
    if name and any(word in str(name) for word in ("libGL", "libEGL", "libOpenGL", "libOSMesa")):
        raise OSError(f"{name}: cannot open shared object file")
    start(self, name, *args, **kwargs)

ctypes.CDLL.__init__ = refuse
ctypes.util.find_library = lambda name: None if name in ("GL", "EGL", "OpenGL", "OSMesa") else find(name)
"""
PICTURE = """
import gymnasium as gym
import sunrise
from sunrise.agents.video import make_seen
env = gym.make("dmc/cartpole-swingup", disable_env_checker=True, pixels=True, render_size=16)
print(env.unwrapped.renderer_name, env.reset(seed=0)[0].std() > 10)
try:
    make_seen("Hopper-v5", {})
except sunrise.SunriseError as error:
    print(error)
"""


@pytest.mark.parametrize("backend", ["", "egl"])
def test_a_machine_without_any_opengl_library_trains_and_draws(tmp_path: Path, backend: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_OPENGL)  # in every process that is started from there
    shown, sentence = python(PICTURE, PYTHONPATH=str(tmp_path), MUJOCO_GL=backend, DISPLAY="").splitlines()
    assert shown == "warp True"
    assert sentence.startswith("a film of Hopper-v5 needs OpenGL: `apt install libegl1")


def test_terrain_needs_no_driver() -> None:
    env = make("dmc/quadruped-escape")
    env.reset(seed=1)
    assert not env.step(np.zeros(12, np.float32))[3]


def test_a_target_that_could_not_be_seen_is_refused() -> None:
    env = make("dmc/finger-turn_easy", pixels=True, renderer="warp")
    with pytest.raises(SunriseError, match="target of this task"):
        env.reset(seed=1)


def test_a_renderer_that_another_thread_collects_is_freed_by_its_own(gl: RendererName) -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><camera/><geom size='.1'/></worldbody></mujoco>")
    data, view = mujoco.MjData(model), renderers.View(0, 16)
    kept = [renderers.make_renderer(gl, model, data, view) for _ in range(2)]
    picture = kept[1].frame()
    kept[0].frame()  # the first is current in this thread
    thread = threading.Thread(target=kept.pop, args=(0,))  # an error there would fail this test
    thread.start()
    thread.join()
    assert len(renderers.LEFT) == 1
    np.testing.assert_array_equal(kept[0].frame(), picture)
    new = renderers.make_renderer(gl, model, data, view)
    assert renderers.LEFT == []
    np.testing.assert_array_equal(new.frame(), picture)


def test_opengl_in_a_fork_is_refused_and_does_not_hang(gl: RendererName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderers, "GL_PROCESSES", {os.getpid() + 1})
    with pytest.raises(SunriseError, match="forked"):
        make("dmc/cartpole-swingup", pixels=True, renderer=gl).reset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"renderer": "elg", "pixels": True}, "Did you mean egl"),
        ({"camera": 9}, "cameras 0 to 1"),
        ({"action_repeat": 0}, "action_repeat is 0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SunriseError, match=message):
        make("dmc/cartpole-swingup", **options)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(SunriseError, match=r"the extra `dmc`.*pip install .*dm-control.*mujoco-warp"):
        make("dmc/cartpole-swingup")
    with pytest.raises(SunriseError, match=r"the extra `dmc`.*pip install"):
        renderers.import_warp.__wrapped__()
