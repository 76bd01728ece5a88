"""Environments of a user's own: by module and id, by class, by function; and others in their place."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from sunrise import SAC, Random, SunriseError
from tests.support.toys import Counter, Pair

TINY: dict[str, Any] = {
    "ensemble_size": 2,
    "net_arch": (8,),
    "batch_size": 4,
    "buffer_size": 200,
    "learning_starts": 10,
    "eval_freq": 10,
    "eval_episodes": 1,
    "seed": 1,
}
MODULE = """
from pathlib import Path
import gymnasium as gym
import numpy as np

Path("imported").write_text("yes")

class Line(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.t += 1
        return np.zeros(1, np.float32), float(action[0]), False, self.t == 5, {}

gym.register("Line-v0", Line)
"""


def sunrise(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sunrise", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_module_of_the_users_own_is_trained_on_and_a_strangers_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(MODULE)
    small = [
        "--ensemble-size",
        "1",
        "--net-arch",
        "4",
        "--batch-size",
        "4",
        "--learning-starts",
        "5",
        "--buffer-size",
        "100",
        "--eval-freq",
        "0",
    ]
    done = sunrise(
        tmp_path, "train", "sac", "--env-id", "lines:Line-v0", "--total-timesteps", "1e1", "--run-dir", "run", *small
    )
    assert done.returncode == 0, done.stderr
    assert "1 member on lines:Line-v0" in done.stderr
    (tmp_path / "imported").unlink()
    for command in (["evaluate", "run"], ["resume", "run", "--total-timesteps", "15"]):
        refused = sunrise(tmp_path, *command)
        assert refused.returncode == 2
        assert "imports the module 'lines'" in refused.stderr
        assert "--trust-env" in refused.stderr
        assert not (tmp_path / "imported").exists()
    trusted = sunrise(tmp_path, "evaluate", "run", "--episodes", "1", "--trust-env")
    assert trusted.returncode == 0, trusted.stderr
    missing = sunrise(tmp_path, "train", "sac", "--env-id", "nowhere:Line-v0")
    assert missing.returncode == 2
    assert "the module 'nowhere' of the environment 'Line-v0' cannot be imported" in missing.stderr


def test_a_class_or_a_function_gives_as_many_environments_as_are_needed() -> None:
    for env in (Counter, lambda: Counter(7)):
        model = SAC("MlpPolicy", env, **TINY, num_envs=2)
        model.learn(20, progress_bar=False)
        assert model.trainer is not None
        assert model.trainer.last_evaluation is not None
        assert model.env is not None
        assert model.env.num_envs == 2
    with pytest.raises(SunriseError, match="was given to make an environment, but what it makes is 3"):
        SAC("MlpPolicy", lambda: 3, **TINY)  # type: ignore[arg-type]


def test_a_training_without_an_update_says_so_and_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "sunrise")
    SAC("MlpPolicy", Counter, **TINY | {"eval_freq": 0}).learn(8, progress_bar=False)
    assert (
        "Nothing was learned, not one update was made: learning_starts is 10 and the training ended at" in caplog.text
    )
    caplog.clear()
    Random("MlpPolicy", Counter, eval_freq=0).learn(8, progress_bar=False)
    assert not caplog.text


def test_another_environment_takes_the_place_of_the_first_whole_or_not_at_all() -> None:
    model = SAC("MlpPolicy", Counter, **TINY)
    model.set_env(gym.vector.SyncVectorEnv([Counter, Counter]))  # nothing has begun yet
    model = SAC("MlpPolicy", Counter, **TINY)
    model.learn(15, progress_bar=False)
    before = model.env
    with pytest.raises(SunriseError, match="training with environments: 1, and the new environment has 2"):
        model.set_env(gym.vector.SyncVectorEnv([Counter, Counter]))
    with pytest.raises(SunriseError, match="the environment's observations are"):
        model.set_env(Pair)
    assert model.env is before
    model.set_env(Counter(9))
    model.learn(10, reset_num_timesteps=False, progress_bar=False)
    assert model.num_timesteps == 25
