"""An agent as users of Stable-Baselines3 know it: construct, `learn`, `predict`, `save`, `load`."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np

from sunrise.agents import arguments, loading, training
from sunrise.agents.environments import EnvArgument, Environments, make_collector, maker
from sunrise.agents.like_sb3 import LikeSB3
from sunrise.compat import archive
from sunrise.compat.arguments import policy_name
from sunrise.compat.callbacks import CallbackArgument
from sunrise.compat.policy import no_attribute
from sunrise.compilation import find_device, use_cache
from sunrise.config.algorithms import Algorithm, algorithm
from sunrise.config.check import check
from sunrise.config.fields import parameters
from sunrise.config.settings import flatten_config, of_kind, with_settings
from sunrise.ensemble import Ensemble, Sunrise
from sunrise.ensemble.placement import place
from sunrise.envs.make import AnyEnv, Maker, from_env, to_env, uniform_actions
from sunrise.envs.spaces import batched, check_same, describe
from sunrise.errors import SunriseError
from sunrise.randomness import root_key
from sunrise.run.building import ensemble_of
from sunrise.run.evaluate import Evaluation, Evaluator
from sunrise.run.live import LiveEnsemble
from sunrise.store.machine import versions
from sunrise.store.reading import FORMAT, read_run
from sunrise.store.run_folder import RunFolder
from sunrise.store.session import Session
from sunrise.types import Observation, rows

log = logging.getLogger("sunrise")


class Agent(LikeSB3):
    """Everything the algorithms share. A leaf only names its algorithm; none is made of this class itself."""

    algo: ClassVar[str]
    algorithm: ClassVar[Algorithm]
    suffix: ClassVar[str] = ".safetensors"
    """What a saved model is called besides its name."""

    def __init_subclass__(cls, algo: str | Algorithm) -> None:
        """Give the leaf its algorithm, one of ours by its name, and a signature with every setting of it."""
        cls.algorithm = known = algorithm(algo) if isinstance(algo, str) else algo
        cls.algo = known.name
        cls.__signature__ = arguments.signature(Agent.__init__, known)  # type: ignore[attr-defined]
        cls.__doc__ = f"{cls.__doc__ or known.text}\n\n{arguments.OWN}\n{parameters(known.defaults)}"

    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        use_cache()
        policy = policy_name(policy)
        self.config, self.schedule, habits = arguments.read(
            self.algorithm, policy, env, preset, policy_kwargs, settings
        )
        super().__init__(habits)
        self.policy_name, self.verbose, self.tensorboard_log = policy, verbose, tensorboard_log
        self.device = find_device(device)
        self.placement = place(device, self.config.ensemble.ensemble_size, self.config.run.shard_members)
        kept = self.config.run.run_dir
        self.folder = RunFolder(Path(kept), self.device.device_kind, self.placement.mesh) if kept else None
        self.session = Session(self.folder, self.config.run.keep, self._about) if self.folder else None
        self.fitted = False
        self.make_eval_env = None if eval_env is None else maker(eval_env, self.config)
        if env is not None:
            if self.config.run.wrapper and not isinstance(env, str):
                raise SunriseError("wrapper is for environments made by their id: put this one inside it yourself.")
            self.set_env(env)
            assert self.env is not None
            self._fit(self.env.single_observation_space, self.env.single_action_space)

    # -- use -----------------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """A setting by its name, such as `model.gamma`; a learning rate may be a schedule."""
        settings = flatten_config(self.__dict__["config"]) if "config" in self.__dict__ else {}
        if name not in settings:
            raise no_attribute(type(self).__name__, name)
        return self.schedule if name == "learning_rate" and self.schedule else settings[name]

    @property
    def ensemble(self) -> Ensemble:
        """The agents and their optimisers as they are now; the next update takes their memory."""
        return self.live.ensemble

    @property
    def sunrise(self) -> Sunrise:
        """The compiled functions of the ensemble."""
        return self.live.functions

    @property
    def numbers(self) -> Any:
        """The numbers that the compiled functions take."""
        return self.live.numbers

    @property
    def action_repeat(self) -> int:
        """Simulator steps in one timestep."""
        return self.environments.action_repeat if self.environments else 1

    def predict(
        self, observation: Observation, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """An exploring action for one observation or a batch of them; with `deterministic`, one without noise."""
        obs, single = self._batched(observation)
        if deterministic:
            action = self.live.exploit(obs)
        else:
            self._draws += 1
            acting = np.full(rows(obs), self._draws % self.config.ensemble.ensemble_size, np.int32)
            key = root_key(self.config.run.seed, "predict")
            action = np.asarray(self.live.explore(obs, acting, key, self._draws).action)
            if self.exploration_rate:
                rng = np.random.default_rng([self.config.run.seed, self._draws])
                anything = uniform_actions(rng, self.action_space, rows(obs))
                action = np.where(rng.random(rows(obs)) < self.exploration_rate, anything, action)
        action = to_env(action, self.action_space)
        return (action[0] if single else action), state

    def uncertainty(self, observation: Observation, action: np.ndarray) -> Any:
        """The standard deviation of all critics' values: a float, or one for each row of a batch."""
        obs, single = self._batched(observation)
        actions = np.asarray(action)[None] if single else np.asarray(action)
        if actions.shape != (rows(obs), *(self.action_space.shape or ())):
            raise SunriseError(f"an action of shape {self.action_space.shape} is needed for each observation.")
        actions = from_env(actions, self.action_space)
        std = self.live.uncertainty(obs, actions)
        return float(std[0]) if single else std

    def evaluate(self, episodes: int | None = None, seed: int | None = None) -> Evaluation:
        """The returns of whole episodes in environments of their own; the same seed gives the same episodes."""
        if episodes is not None and episodes < 1:
            raise SunriseError(f"episodes is {episodes}, but must be at least 1.")
        evaluator = self._evaluator()
        if evaluator is None:
            raise SunriseError(training.NO_SECOND_ENV)
        try:
            return evaluator(episodes, seed)
        finally:
            evaluator.close()

    def set_env(self, env: EnvArgument, force_reset: bool = True) -> None:
        """Use another environment with the same spaces; once training has begun, as many of them as before.

        The replay buffer stays; the next `learn` begins new episodes.
        """
        if not force_reset:
            raise SunriseError("force_reset must be True: another environment begins new episodes.")
        environments = Environments(env, self.config)
        if self.fitted:
            vector = environments.vector
            if self.trainer is not None and self.environments is not None:
                self.environments.require_as_many(environments)
            check_same(self.observation_space, vector.single_observation_space, "observations")
            check_same(self.action_space, vector.single_action_space, "actions")
            environments.name_differences(self.config)
        self.environments, self._vec_env = environments, None
        if self.trainer is not None:
            self.trainer.collector = make_collector(environments, self.config)

    # -- training ------------------------------------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: float,
        callback: CallbackArgument | None = None,
        log_interval: int | None = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = True,
    ) -> Self:
        """Train for `total_timesteps` decisions, from 0 or (without `reset_num_timesteps`) on top of those done.

        A row of metrics is made every `log_interval` episodes, or every `log_freq` timesteps if that is None.
        A callback is a function of (locals, globals), a `sunrise.Callback`, one of Stable-Baselines3's, or a list of
        them. It is called after each step and stops the training by returning False.
        """
        asked = of_kind(total_timesteps, int)
        if not isinstance(asked, int | np.integer) or isinstance(asked, bool):
            raise SunriseError(f"total_timesteps is {total_timesteps!r}, but must be a whole number.")
        until = int(asked) + (0 if reset_num_timesteps else self.num_timesteps)
        self.config = check(with_settings(self.config, {"total_timesteps": until}))
        training.train(self, until, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar)
        return self

    @classmethod
    def resume(
        cls,
        run_dir: str | Path,
        env: EnvArgument | None = None,
        learning_rate: Any = None,
        trust_env: bool = False,
        max_env_restarts: int | None = None,
        env_timeout: float | None = None,
        track: bool | None = None,
        mlflow: bool | None = None,
        shard_members: bool | None = None,
    ) -> Self:
        """The agent of a run as it was at its last good checkpoint; `learn` with `reset_num_timesteps=False` goes on.

        A run that has no checkpoint yet is there as at its beginning. `learning_rate` is only needed where it was a
        schedule, which a file cannot hold. `trust_env` lets the run's own environment import the module it names.
        The last five are settings that may be others than before.
        """
        others = {"max_env_restarts": max_env_restarts, "env_timeout": env_timeout, "track": track, "mlflow": mlflow}
        others["shard_members"] = shard_members
        return loading.resume(cls, Path(run_dir), read_run(Path(run_dir)), env, learning_rate, trust_env, others)

    def _evaluator(self) -> Evaluator | None:
        """Evaluation in environments of its own; None where there is no way to make one."""
        make = self.make_eval_env or (self.environments.make if self.environments else None)
        if make is None:
            return None
        epsilon = self.config.run.eval_epsilon if self.config.ensemble.ensemble_size == 1 else 0.0
        return Evaluator(make, self.live.exploit, self.action_space, self.config.run, epsilon)

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the agents to one file: safetensors, or by the name `.zip` a zip of it and of JSON."""
        archive.save(archive.named(path, self.suffix), self.ensemble, self._about())

    def _about(self) -> dict[str, Any]:
        """What a file of agents says about itself."""
        return {
            "format": FORMAT,
            "algo": self.algo,
            **({"imported_from": self.algorithm.imported_from} if self.algorithm.imported_from else {}),
            "policy": self.policy_name,
            "settings": flatten_config(self.config),
            "learning_rate_schedule": self.schedule is not None,
            "timesteps": self.num_timesteps,
            "observation_space": describe(self.observation_space),
            "action_space": describe(self.action_space),
        }

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: EnvArgument | None = None,
        device: str = "auto",
        custom_objects: Any = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **settings: Any,
    ) -> Self:
        """Read agents that `save` wrote; nothing in the file is executed.

        Of `custom_objects`, what is a setting replaces that setting, as a keyword does; other objects are in no file
        of ours. New episodes begin in any case, which is what `force_reset` asks for.
        """
        name, known = archive.found(path), flatten_config(cls.algorithm.defaults)
        replaced = {key: value for key, value in (custom_objects or {}).items() if key in known}
        settings = {**replaced, **settings, "device": device}
        if print_system_info:
            log.warning("%s", dict(versions()))
        with archive.opened(name) as file:
            return loading.load(cls, file, name, env, settings)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _fit(self, observation_space: gym.Space[Any], action_space: gym.Space[Any], initial: bool = True) -> None:
        """Build the ensemble for an environment's spaces: a new one, or only its shapes, to be read from a file."""
        self.observation_space, self.action_space, self.fitted = observation_space, action_space, True
        here = with_settings(self.config, {"num_envs": self.n_envs})
        self.parts = self.algorithm.fit(here, observation_space, action_space)
        functions, numbers = ensemble_of(self.parts, self.config, self.placement)
        self.live = LiveEnsemble(functions, numbers, self.config.run.seed, self.placement, initial)
        self._draws = 0

    def _batched(self, observation: Observation) -> tuple[Observation, bool]:
        if not self.fitted:
            raise SunriseError("this model has no environment yet: give `env`, or call set_env first.")
        return batched(observation, self.observation_space)
