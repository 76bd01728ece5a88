"""One block of Stable-Baselines3's documentation, run as a script and shortened from outside: see `guide.py`.

The block itself is not changed: trainings are cut short, networks and buffers that it does not ask for are small,
callbacks that act every so many steps act sooner, windows are not opened, and a loop without an end is left.
"""

import importlib
import json
import re
import runpy
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STEPS = {"ours": 500, "theirs": 150}
"""Timesteps of a training, no more: theirs only shows whether the block works at all."""
NEVER_ENDING, LONG = 10**9, 1100
"""A training that something else is to end, and the timesteps that it has for it."""
OFTEN, WATCHED = 100, 300
"""Steps between a callback's actions, and steps of an endless loop: no more than these."""
SMALL = {"learning_starts": 50, "batch_size": 16, "buffer_size": 5000, "eval_episodes": 1}


class Enough(BaseException):
    """A loop without an end was watched for long enough."""


def shorten(whose: str, endless: bool) -> None:
    """Make the trainings of this process short, ours or Stable-Baselines3's."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    from sunrise.agents import Agent

    count = 0

    def cut(cls: Any) -> None:
        learn, predict = cls.learn, cls.predict

        def short(self: Any, total_timesteps: Any, *args: Any, **keywords: Any) -> Any:
            nonlocal count
            count = 0
            steps = LONG if total_timesteps > NEVER_ENDING else min(total_timesteps, STEPS[whose])
            return learn(self, steps, *args, **keywords)

        def watched(self: Any, *args: Any, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if endless and count > WATCHED:
                raise Enough
            return predict(self, *args, **keywords)

        cls.learn, cls.predict = short, watched

    torch.set_num_threads(1)
    if whose == "ours":
        cut(Agent)
        make = Agent.__init__

        def small(self: Any, policy: Any, env: Any, **given: Any) -> None:
            if env is not None:  # else it comes from a file, which has all settings
                given = SMALL | given
                if "Mlp" in str(policy):
                    given.setdefault("policy_kwargs", {"net_arch": [8]})
            make(self, policy, env, **given)

        Agent.__init__ = small  # type: ignore[method-assign]
    else:
        for name in ("SAC", "TD3", "DQN", "PPO", "A2C", "DDPG"):
            cut(getattr(stable_baselines3, name))
    on_step = BaseCallback.on_step

    def often(self: Any) -> Any:
        for name, value in list(vars(self).items()):
            if re.search(r"freq|n_steps", name) and isinstance(value, int) and value > OFTEN:
                setattr(self, name, OFTEN)
        if hasattr(self, "n_eval_episodes"):
            self.n_eval_episodes = 1
        return on_step(self)

    BaseCallback.on_step = often


def surround() -> None:
    """What the pages take for granted: a screen, on which nobody waits, and an environment under its old name."""
    import gymnasium as gym

    screen: Any = importlib.import_module("cv2")
    clock: Any = importlib.import_module("pygame.time")
    screen.imshow = lambda *_: None
    screen.waitKey = lambda *_: None
    clock.Clock = lambda: SimpleNamespace(tick=lambda *_: 0)
    gym.register("Pendulum-v0", "gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=200)


def given_to(fragment: str) -> dict[str, Any]:
    """What a piece of a script finds there already: an environment and the algorithm it names."""
    if not fragment:
        return {}
    import gymnasium as gym
    from stable_baselines3 import HerReplayBuffer

    import sunrise

    env = gym.make("CartPole-v1" if fragment == "DQN" else "Pendulum-v1")
    return {"env": env, fragment: getattr(sunrise, fragment), "HerReplayBuffer": HerReplayBuffer}


def missing(error: BaseException | None) -> str:
    """The package that an error says is not installed."""
    from gymnasium.error import DependencyNotInstalled, NameNotFound, NamespaceNotFound

    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return (error.name or "?").split(".")[0]
        if isinstance(error, DependencyNotInstalled):
            return str(error).split()[0]
        if isinstance(error, NameNotFound | NamespaceNotFound):
            return str(error)
        error = error.__cause__ or error.__context__
    return ""


def run(path: Path, fragment: str, whose: str) -> dict[str, str]:
    from sunrise import SunriseError

    shorten(whose, "while True" in path.read_text())
    surround()
    try:
        runpy.run_path(str(path), given_to(fragment), "__main__")
    except Enough:
        pass
    except BaseException as error:
        if needed := missing(error):
            return {"outcome": "needs", "sentence": needed}
        if isinstance(error, SunriseError):
            return {"outcome": "refused", "sentence": str(error)}
        if fragment and isinstance(error, NameError):
            return {"outcome": "fragment"}
        return {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
    return {"outcome": "runs"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    script, of, owner = sys.argv[1:]
    Path(script).with_suffix(".json").write_text(json.dumps(run(Path(script), of, owner)))
