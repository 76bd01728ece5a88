"""The rest of what users of Stable-Baselines3 find on a model, beside `learn`, `predict`, `save` and `load`."""

from collections import deque
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sunrise.agents.environments import Environments
from sunrise.compat import arrays
from sunrise.compat import replay as replay_file
from sunrise.compat.arguments import Habits
from sunrise.compat.logger import Logging
from sunrise.compat.policy import PolicyOfModel
from sunrise.compat.sb3 import as_vec_env
from sunrise.config.groups import Config
from sunrise.envs.make import AnyVectorEnv
from sunrise.errors import SunriseError
from sunrise.randomness import generator
from sunrise.run.building import make_replay
from sunrise.run.fitting import Parts
from sunrise.run.loop import Trainer
from sunrise.types import Replay


class LikeSB3:
    """Properties and methods by Stable-Baselines3's names; the parts that they show are the agent's."""

    policy = PolicyOfModel()
    """The name of its kind of network, which acts and is saved as Stable-Baselines3's policies are."""
    # What `Agent` gives it:
    config: Config[Any]
    policy_name: str
    parts: Parts
    fitted: bool
    observation_space: gym.Space[Any]

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self.environments: Environments | None = None
        self.trainer: Trainer | None = None
        self.logging = Logging()
        self.ep_info_buffer: deque[dict[str, Any]] = deque(maxlen=habits.stats_window_size)
        """The last episodes of training, as Stable-Baselines3 keeps them."""
        self._timesteps = 0
        """Those of a saved model, until there is a trainer."""
        self._vec_env: Any = None
        self._replay: Replay | None = None
        """Experience from a file, until there is a trainer."""

    # -- numbers -------------------------------------------------------------------------------------------------------

    @property
    def num_timesteps(self) -> int:
        """Timesteps trained so far."""
        return self.trainer.timesteps if self.trainer else self._timesteps

    @property
    def n_envs(self) -> int:
        """Environments side by side."""
        return self.env.num_envs if self.env is not None else self.config.run.num_envs

    @property
    def exploration_rate(self) -> float:
        """Chance of a random action where it explores, for algorithms that have one (DQN)."""
        chance = self.parts.random_actions
        if chance is None:
            return 0.0
        return chance(self.trainer.timesteps / self.config.run.total_timesteps if self.trainer else 1.0)

    # -- environments --------------------------------------------------------------------------------------------------

    @property
    def env(self) -> AnyVectorEnv | None:
        """The environments it learns in."""
        return self.environments.vector if self.environments else None

    @env.deleter
    def env(self) -> None:
        """Let go of them."""
        self.environments = self._vec_env = None

    def get_env(self) -> Any:
        """The environments it learns in as a VecEnv of Stable-Baselines3, or where that is not installed, like one.

        They are the same environments: once they have been stepped by hand, the next `learn` begins new episodes.
        """
        if self.env is None:
            return None
        if self._vec_env is None:
            self._vec_env = as_vec_env(self.env, self.habits.monitor_wrapper)
        return self._vec_env

    def get_vec_normalize_env(self) -> Any:
        """None: `normalise_observations` and `normalise_rewards` are settings here."""
        return None

    # -- logger and seed -----------------------------------------------------------------------------------------------

    @property
    def logger(self) -> Any:
        """Where callbacks record values; Stable-Baselines3's own where that has been imported."""
        return self.logging.logger

    def set_logger(self, logger: Any) -> None:
        """Use another logger from now on; rows of metrics go to it too."""
        self.logging.use(logger)

    def dump_logs(self) -> None:
        """Make a row of metrics now, with what was recorded."""
        if self.trainer is not None and self.trainer.events.sinks:
            self.trainer.log()
        else:
            self.logger.dump(self.num_timesteps)

    def set_random_seed(self, seed: int | None = None) -> None:
        """Draw every random number from now on from another seed; the agents stay what they are."""
        if seed is not None:
            arrays.reseed(self, seed)

    # -- experience and arrays -----------------------------------------------------------------------------------------

    def save_replay_buffer(self, path: str | Path) -> None:
        """Write all experience to a safetensors file of any name."""
        if self.replay_buffer.replay is None:
            raise SunriseError("there is no replay buffer to save yet: it is made when the training begins.")
        replay_file.save(self.replay_buffer.replay, replay_file.named(path))

    def load_replay_buffer(self, path: str | Path, truncate_last_traj: bool = True) -> None:
        """Read experience that `save_replay_buffer` wrote, in place of what there is; an open episode ends there."""
        if not self.fitted:
            raise SunriseError("this model has no environment yet: give `env`, or call set_env first.")
        trainer = self.trainer
        replay = trainer.replay if trainer else self._new_replay()
        replay_file.load(replay, replay_file.named(path))
        self._replay = None if trainer else replay

    def _new_replay(self) -> Replay:
        """An empty one for the environments, or for as many as the settings say."""
        envs, rng = self.environments, generator(self.config.run.seed, "replay")
        count, stacked = (envs.vector.num_envs, envs.stacked) if envs else (self.config.run.num_envs, 0)
        return make_replay(self.config, self.observation_space, self.parts, count, rng, stacked)

    @property
    def replay_buffer(self) -> replay_file.ReplayView:
        """The experience there is."""
        replay = self.trainer.replay if self.trainer else self._replay
        return replay_file.ReplayView(replay, self.config.training.buffer_size)

    def get_parameters(self) -> dict[str, dict[str, np.ndarray]]:
        """Copies of every array of the agents by name, optimisers and all, as {"policy": {...}}."""
        return arrays.read(self)

    def set_parameters(self, load_path_or_dict: Any, exact_match: bool = True, device: str = "auto") -> None:
        """Take arrays by name, or those of a saved model; without `exact_match` some of them are enough."""
        arrays.write(self, load_path_or_dict, exact_match)
