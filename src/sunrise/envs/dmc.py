"""The DeepMind Control suite as Gymnasium environments, `dmc/<domain>-<task>`, from state or from pixels."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np

from sunrise.config.tasks import RendererChoice
from sunrise.envs.display import no_display
from sunrise.envs.renderers import Renderer, View, make_renderer, resolve
from sunrise.errors import MissingExtraError, SunriseError


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without dm_control's warnings."""
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def load(domain: str, task: str) -> Any:
    """dm_control's own environment, with its observation in one flat array."""
    try:
        with quietly(), no_display():
            from dm_control import suite

            # lqr draws its springs when it is built: let every environment be the same system.
            settings: dict[str, Any] = {"random": 0}
            if domain == "lqr":
                settings["time_limit"] = 30.0  # 1000 steps, as everywhere else; its own is infinite
            env = suite.load(domain, task, settings, environment_kwargs={"flat_observation": True})
    except ModuleNotFoundError:
        raise MissingExtraError(f"the environment dmc/{domain}-{task}", "dmc") from None
    env.task.random.seed(None)
    if env.physics.model.nhfield:
        # A task with terrain opens an OpenGL context at each reset, only to upload the terrain to it.
        env.physics.__class__ = type("Physics", (type(env.physics),), {"contexts": None})
    return env


class DMCEnv(gym.Env[np.ndarray, np.ndarray]):
    """One task of the suite. An agent's step is `action_repeat` steps of the simulator under one action."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        domain: str,
        task: str,
        pixels: bool = False,
        camera: int = 0,
        render_size: int = 100,
        video_size: int = 256,
        action_repeat: int = 1,
        frame_stack: int = 3,
        renderer: RendererChoice = "auto",
        anti_aliasing: int | None = None,
        shadow_size: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        at_least_one = {"action_repeat": action_repeat, "frame_stack": frame_stack}
        for name, value in (at_least_one | {"render_size": render_size, "video_size": video_size}).items():
            if value < 1:
                raise SunriseError(f"{name} is {value}, but must be at least 1.")
        self.simulator = load(domain, task)
        cameras = self.simulator.physics.model.ncam
        if not 0 <= camera < cameras:
            raise SunriseError(f"camera is {camera}, but dmc/{domain}-{task} has cameras 0 to {cameras - 1}.")
        self.pixels, self.action_repeat, self.render_mode = pixels, action_repeat, render_mode
        self.view, self.video_size = View(camera, render_size, anti_aliasing, shadow_size), video_size
        self.renderer_name = resolve(renderer) if pixels or render_mode else None
        """What makes the pictures; None where there are none."""
        self.renderers: dict[int, Renderer] = {}
        fps = round(1 / (self.simulator.control_timestep() * action_repeat))
        self.metadata = self.metadata | {"render_fps": max(1, fps)}

        action = self.simulator.action_spec()
        low, high = (
            np.where(np.abs(b) < mujoco.mjMAXVAL, b, np.copysign(np.inf, b)) for b in (action.minimum, action.maximum)
        )
        self.action_space = gym.spaces.Box(low.astype(np.float32), high.astype(np.float32))
        if pixels:
            self.frames = np.zeros((frame_stack, render_size, render_size, 3), np.uint8)
            self.observation_space = gym.spaces.Box(0, 255, self.frames.shape, np.uint8)
        else:
            shape = self.simulator.observation_spec()["observations"].shape
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float64)

    def picture(self, size: int) -> np.ndarray:
        """The present state, drawn. A renderer is made on first use: OpenGL does not survive a fork."""
        assert self.renderer_name is not None
        if size not in self.renderers:
            physics, view = self.simulator.physics, self.view._replace(size=size)
            self.renderers[size] = make_renderer(self.renderer_name, physics.model.ptr, physics.data.ptr, view)
        return self.renderers[size].frame()

    def observe(self, state: np.ndarray, first: bool) -> np.ndarray:
        """The state, or the newest frames, the newest last; the first frame of an episode fills the stack."""
        if not self.pixels:
            return np.asarray(state, np.float64)
        frame = self.picture(self.view.size)[None]
        self.frames = np.repeat(frame, len(self.frames), 0) if first else np.concatenate([self.frames[1:], frame])
        return self.frames

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.simulator.task.random.seed(seed % 2**32)
        if self.simulator.physics.model.nhfield:
            self.close()  # the terrain is new, and renderers copy it when they are made
        start = self.simulator.reset()
        return self.observe(start.observation["observations"], first=True), {"simulator_steps": 0}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """`info["simulator_steps"]` is how many this step took: fewer than `action_repeat` where the episode ended."""
        reward, steps, last = 0.0, 0, False
        while steps < self.action_repeat and not last:
            now = self.simulator.step(action)
            reward, steps, last = reward + now.reward, steps + 1, now.last()
        # dm_control ends an episode with discount 0 where the task is over, and with 1 where time is.
        terminated = last and now.discount == 0
        observation = self.observe(now.observation["observations"], first=False)
        return observation, reward, terminated, last and not terminated, {"simulator_steps": steps}

    def render(self) -> np.ndarray | None:
        return self.picture(self.video_size) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        while self.renderers:
            self.renderers.popitem()[1].close()
