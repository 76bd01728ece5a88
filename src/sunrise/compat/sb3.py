"""Stable-Baselines3's environments as ours, and ours as its. It is imported when it is there and asked for."""

import importlib.util
import sys
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sunrise.compat.infos import OTHERS
from sunrise.compat.vec_env import HandSteps
from sunrise.envs.make import AnyVectorEnv
from sunrise.envs.vector import SyncEnvs
from sunrise.errors import SunriseError

NO_NORMALISATION = (
    "VecNormalize is refused: its statistics would not be in our checkpoints. Take it off, and give "
    "normalise_observations=True or normalise_rewards=True to the model instead."
)


def is_vec_env(env: object) -> bool:
    """Whether it is one of Stable-Baselines3's; nobody has one who has not imported it."""
    loaded = sys.modules.get("stable_baselines3.common.vec_env")
    return loaded is not None and isinstance(env, loaded.VecEnv)


def is_installed() -> bool:
    """Whether it can be imported."""
    return "stable_baselines3" in sys.modules or importlib.util.find_spec("stable_baselines3") is not None


class FromVecEnv(VectorEnv[Any, Any, Any]):
    """One of Stable-Baselines3's vector environments as one of Gymnasium's, which resets itself in the same step."""

    def __init__(self, inside: Any) -> None:
        layer = inside
        while layer is not None:
            if type(layer).__name__ == "VecNormalize":
                raise SunriseError(NO_NORMALISATION)
            layer = getattr(layer, "venv", None)
        self.inside, self.num_envs = inside, inside.num_envs
        self.metadata = {**(getattr(inside, "metadata", None) or {}), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = inside.render_mode
        self.single_observation_space, self.single_action_space = inside.observation_space, inside.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode everywhere; of several seeds it takes the first, and counts on from it."""
        first = seed if seed is None or isinstance(seed, int) else seed[0]
        if first is not None:
            self.inside.seed(first)
        return plain(self.inside.reset()), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, dones, infos = self.inside.step(actions)
        done = np.asarray(dones, bool)
        truncated = done & [bool(info.get("TimeLimit.truncated", False)) for info in infos]
        final = np.full(self.num_envs, None, object)
        for e in np.flatnonzero(done):
            final[e] = plain(infos[e]["terminal_observation"])
        info = {OTHERS: infos, "final_obs": final, "_final_obs": done}
        return plain(obs), np.asarray(rewards), done & ~truncated, truncated, info

    def render(self) -> Any:
        return self.inside.render()

    def close_extras(self, **_: Any) -> None:
        self.inside.close()


def plain(obs: Any) -> Any:
    """An observation whose parts are in an ordinary dict."""
    return dict(obs) if isinstance(obs, dict) else obs


def as_vec_env(vector: AnyVectorEnv, monitor: bool) -> Any:
    """The environments of an agent as a `VecEnv`: the user's own, SB3's over the same environments, or our small one.

    With `monitor`, the environments are in SB3's Monitor where they are not yet.
    """
    if isinstance(vector, FromVecEnv):
        return vector.inside
    if isinstance(vector, SyncEnvs) and vector.remake:
        for env in vector.envs:
            let_draw(env)
    if not is_installed():
        return HandSteps(vector)
    if isinstance(vector, SyncEnvs):
        return dummy(vector, monitor)
    return wrapped(vector)


def let_draw(env: Any) -> None:
    """Let an environment that we made draw pictures when it is asked to: SB3 makes its own so."""
    inside = env.unwrapped
    if inside.render_mode is None and "rgb_array" in inside.metadata.get("render_modes", ()):
        inside.render_mode = "rgb_array"


def dummy(vector: SyncEnvs, monitor: bool) -> Any:
    """SB3's DummyVecEnv over the very environments that the agent learns in."""
    from stable_baselines3.common.env_util import is_wrapped
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    class OurEnvs(DummyVecEnv):  # type: ignore[misc]
        touched = False

        def reset(self) -> Any:
            self.touched = True
            return super().reset()

        def step_wait(self) -> Any:
            self.touched = True
            return super().step_wait()

    def of(env: Any) -> Any:
        return env if not monitor or is_wrapped(env, Monitor) else Monitor(env)

    return OurEnvs([lambda env=env: of(env) for env in vector.envs])


def wrapped(vector: AnyVectorEnv) -> Any:
    """Any other vector environment, each in a process of its own for instance, as a VecEnv."""
    from stable_baselines3.common.vec_env import VecEnv

    class OurEnvs(VecEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            self.hand = HandSteps(vector)
            self.render_mode = vector.render_mode
            self.num_envs, self.reset_infos = vector.num_envs, self.hand.reset_infos
            self.observation_space, self.action_space = self.hand.observation_space, self.hand.action_space
            self.metadata = vector.metadata

        @property
        def touched(self) -> bool:
            return self.hand.touched

        @touched.setter
        def touched(self, value: bool) -> None:
            self.hand.touched = value

        def reset(self) -> Any:
            return self.hand.reset()

        def step_async(self, actions: Any) -> None:
            self.hand.step_async(actions)

        def step_wait(self) -> Any:
            return self.hand.step_wait()

        def seed(self, seed: int | None = None) -> Any:
            return self.hand.seed(seed)

        def close(self) -> None:
            self.hand.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> Any:
            return self.hand.get_attr(attr_name, indices)

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            self.hand.set_attr(attr_name, value, indices)

        def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> Any:
            return self.hand.env_method(method_name, *method_args, indices=indices, **method_kwargs)

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
            return self.hand.env_is_wrapped(wrapper_class, indices)

        def get_images(self) -> Any:
            return self.hand.render()

    return OurEnvs()
