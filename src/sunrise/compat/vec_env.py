"""An agent's environments to be stepped by hand, with the methods of Stable-Baselines3's `VecEnv`; it is not needed."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sunrise.compat.infos import with_ends
from sunrise.envs.autoreset import last_observations
from sunrise.envs.make import AnyVectorEnv
from sunrise.envs.vector import FAILED
from sunrise.errors import EnvironmentFailedError, SunriseError
from sunrise.types import Episode, Seen


class HandSteps:
    """`reset() -> obs`, `step(actions) -> obs, rewards, dones, infos`; an episode that is over is begun anew."""

    def __init__(self, env: AnyVectorEnv) -> None:
        self.env = env
        self.num_envs, self.metadata, self.render_mode = env.num_envs, env.metadata, env.render_mode
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self.mode == AutoresetMode.NEXT_STEP:
            raise SunriseError(
                "these environments begin an episode one step late (AutoresetMode.NEXT_STEP), which SB3's interface "
                "cannot show: step them by their own methods, or make them with SAME_STEP or DISABLED."
            )
        self.touched = False
        """Whether anybody has stepped it: then the agent does not know where the environments are."""
        self._seeds: list[int] | None = None
        self._actions: Any = None
        self._began = time.time()
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self.total, self.length = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds of the next reset: that one and those after it."""
        self._seeds = None if seed is None else [seed + e for e in range(self.num_envs)]
        return self._seeds or [None] * self.num_envs

    def reset(self) -> Any:
        """The first observations of new episodes."""
        self.touched, seeds, self._seeds = True, self._seeds, None
        obs, info = self.env.reset(seed=seeds)  # type: ignore[arg-type]
        refuse_failed(info)
        self.total[:], self.length[:] = 0, 0
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of what is to be done."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Do it."""
        self.touched = True
        raw, reward, terminated, truncated, info = self.env.step(self._actions)
        refuse_failed(info)
        done = terminated | truncated
        self.total += reward
        self.length += 1
        ended = [Episode(int(e), float(self.total[e]), int(self.length[e])) for e in np.flatnonzero(done)]
        last, obs = raw, raw
        if done.any():
            self.total[done], self.length[done] = 0, 0
            if self.mode == AutoresetMode.SAME_STEP:
                last = last_observations(raw, done, info)
            else:
                obs, begun = self.env.reset(options={"reset_mask": done})
                refuse_failed(begun)
        seen = Seen(self._actions, reward, terminated, truncated, info, last, obs)
        return obs, np.asarray(reward, np.float32), done, with_ends(seen, ended, time.time() - self._began)

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One step of every environment."""
        self.step_async(actions)
        return self.step_wait()

    def render(self, mode: str | None = None) -> Any:
        """What the environments draw."""
        return self.env.render()

    def close(self) -> None:
        """Close the environments."""
        self.env.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        """An attribute of each environment."""
        inside: Any = self.env.unwrapped
        values = inside.get_attr(name)
        return [values[e] for e in chosen(indices, self.num_envs)]

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of every environment."""
        if chosen(indices, self.num_envs) != list(range(self.num_envs)):
            raise SunriseError("set_attr is for all environments here, not for some of them.")
        inside: Any = self.env.unwrapped
        inside.set_attr(name, value)

    def env_method(self, name: str, *arguments: Any, indices: Any = None, **keywords: Any) -> list[Any]:
        """What a method of each environment answers."""
        inside: Any = self.env.unwrapped
        answers = inside.call(name, *arguments, **keywords)
        return [answers[e] for e in chosen(indices, self.num_envs)]

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        """SB3's Monitor counts episodes, and so does this."""
        return [getattr(wrapper, "__name__", "") == "Monitor"] * len(chosen(indices, self.num_envs))


def chosen(indices: Any, count: int) -> list[int]:
    """All environments, one of them, or some."""
    if indices is None:
        return list(range(count))
    return [indices] if isinstance(indices, int) else list(indices)


def refuse_failed(info: dict[str, Any]) -> None:
    """Ours do not raise: they say which environment failed."""
    for e, failure in info.get(FAILED, {}).items():
        raise EnvironmentFailedError(f"environment {e} {failure.what}: {failure.why}.")
