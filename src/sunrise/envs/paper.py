"""The paper's five Gym tasks: MuJoCo models of Gymnasium with the rewards of the model-based RL benchmark (MBBL).

They have the bodies of Gym's locomotion tasks but not their definitions: the reward is a function of the state
*before* the step and of the action, velocities are seen unclipped, and only SlimHumanoid ends early. One table says
how the five differ, one class reads it. `docs/environments.md` tells what differs from the authors' engine.
"""

from math import inf
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from jaxtyping import Float

CONTROL_COST = 0.1
"""What a unit of squared action costs, in all five."""


class Task(NamedTuple):
    """What makes a task: a model, where it starts, what it is paid for, when it ends."""

    xml_file: str
    """The model, one of those that Gymnasium ships."""
    frame_skip: int
    """Simulation steps that an action lasts."""
    hidden: int
    """How many leading positions the agent does not see: x, and y where the body moves in space. Height comes next."""
    noise: float
    """Scale of the noise on every position and velocity of the initial state."""
    velocity_noise: Literal["uniform", "normal"] = "uniform"
    """Positions are always perturbed uniformly in ±noise."""
    at_origin: bool = True
    """Whether the hidden positions start at exactly zero."""
    velocity_weight: float = 1.0
    """Reward for a unit of forward velocity of the root."""
    height_weight: float = 0.0
    """Cost of a unit of squared distance from `height_target`."""
    height_target: float = 0.0
    alive: float = 0.0
    """Reward for starting the step with a healthy height."""
    healthy: tuple[float, float] = (-inf, inf)
    """Heights outside of this range end the episode."""


TASKS: dict[str, Task] = {
    "Cheetah": Task("half_cheetah.xml", 5, hidden=1, noise=0.1, velocity_noise="normal"),
    # Not walker2d_v5.xml, the default of Walker2d-v5, which gives the right foot more friction than the classic model.
    "Walker": Task("walker2d.xml", 4, hidden=1, noise=0.005, height_weight=3.0, height_target=1.3, alive=1.0),
    "Hopper": Task("hopper.xml", 4, hidden=1, noise=0.005, height_weight=3.0, height_target=1.3, alive=1.0),
    "Ant": Task(
        "ant.xml", 5, hidden=2, noise=0.1, velocity_noise="normal", height_weight=3.0, height_target=0.57, alive=1.0
    ),
    # MBBL divides by the step of 0.015 s although qvel is a velocity already; the published scores are in this unit.
    "SlimHumanoid": Task(
        "humanoid.xml",
        5,
        hidden=2,
        noise=0.01,
        at_origin=False,
        velocity_weight=0.25 / 0.015,
        alive=5.0,
        healthy=(1.0, 2.0),
    ),
}


class PaperEnv(MujocoEnv):
    """One of the five tasks, by its name in `TASKS`.

    Not a wrapper around one of Gymnasium's tasks, so that `env.unwrapped` is the task itself; what they share is the
    model and the way to the engine.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
        camera_name: str = "track",
    ) -> None:
        self.task = TASKS[task]
        super().__init__(
            self.task.xml_file,
            self.task.frame_skip,
            observation_space=None,
            render_mode=render_mode,
            width=width,
            height=height,
            camera_name=camera_name,
        )
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.dt)}
        size = self.model.nq - self.task.hidden + self.model.nv
        self.observation_space = gym.spaces.Box(-inf, inf, (size,), np.float64)

    def _initialize_simulation(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Compile the model, and set the total mass that Cheetah's file asks for afterwards.

        The engine deprecates the file's own way: each Cheetah would leave a MUJOCO_LOG.TXT in the working directory.
        """
        spec = mujoco.MjSpec.from_file(self.fullpath)
        total_mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1
        model = spec.compile()
        if total_mass > 0:
            mujoco.mj_setTotalmass(model, total_mass)
            mujoco.mj_setConst(model, mujoco.MjData(model))
        picture = model.vis.global_
        picture.offwidth, picture.offheight = max(picture.offwidth, self.width), max(picture.offheight, self.height)
        return model, mujoco.MjData(model)

    def reset_model(self) -> Float[np.ndarray, "O"]:
        """Draw an initial state."""
        task, random = self.task, self.np_random
        qpos = self.init_qpos + random.uniform(-task.noise, task.noise, self.model.nq)
        if task.velocity_noise == "normal":
            qvel = self.init_qvel + task.noise * random.standard_normal(self.model.nv)
        else:
            qvel = self.init_qvel + random.uniform(-task.noise, task.noise, self.model.nv)
        if task.at_origin:
            qpos[: task.hidden] = 0.0
        # The classic engine normalised rotations where it read them; today's leaves the noise in the first observation.
        mujoco.mj_normalizeQuat(self.model, qpos)
        self.set_state(qpos, qvel)  # type: ignore[no-untyped-call]
        return self.observe()

    def step(
        self, action: Float[np.ndarray, "A"]
    ) -> tuple[Float[np.ndarray, "O"], np.float64, bool, bool, dict[str, np.float64]]:
        """Pay for the state and the action, then simulate. The info holds the terms of the reward."""
        terms = self.reward_terms(action)
        self.do_simulation(action, self.frame_skip)
        if self.render_mode == "human":
            self.render()
        return self.observe(), sum(terms.values(), np.float64()), not self.healthy(), False, terms

    def reward_terms(self, action: Float[np.ndarray, "A"]) -> dict[str, np.float64]:
        """What the present state and this action are paid; the reward is their sum."""
        task = self.task
        return {
            "reward_velocity": task.velocity_weight * self.data.qvel[0],
            "reward_height": -task.height_weight * np.square(self.altitude() - task.height_target),
            "reward_control": -CONTROL_COST * np.square(action, dtype=np.float64).sum(),
            "reward_alive": np.float64(task.alive * self.healthy()),
        }

    def observe(self) -> Float[np.ndarray, "O"]:
        """All that moves, but for where on the floor it is."""
        return np.concatenate([self.data.qpos[self.task.hidden :], self.data.qvel])

    def altitude(self) -> float:
        """The root's vertical coordinate: above the floor, but for Cheetah, whose model counts from where it starts."""
        return float(self.data.qpos[self.task.hidden])

    def healthy(self) -> bool:
        """Whether the root is at a height that lets the episode go on."""
        low, high = self.task.healthy
        return low <= self.altitude() <= high

    def render(self) -> Any:
        """Draw in this environment's own GL context; Gymnasium draws in the one that was used last, whosever it is."""
        if self.mujoco_renderer.viewer is not None:
            self.mujoco_renderer.viewer.make_context_current()
        return super().render()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Free the GL buffers while their own context is current.

        Gymnasium leaves them to the garbage collector, which frees, and so blanks, those of another environment.
        """
        viewer, self.mujoco_renderer.viewer = self.mujoco_renderer.viewer, None
        if viewer is not None:
            viewer.make_context_current()
            viewer.con.free()
        super().close()  # type: ignore[no-untyped-call]
