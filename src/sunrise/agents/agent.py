"""An agent as users of Stable-Baselines3 know it: construct, `learn`, `predict`, `save`, `load`."""

import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np

from sunrise.agents import arguments, loading
from sunrise.agents.environments import EnvArgument, Environments, make_collector, maker
from sunrise.compat import archive, arrays
from sunrise.compat import replay as replay_file
from sunrise.compat.arguments import policy_name
from sunrise.compat.callbacks import CallbackArgument, CallbackSink
from sunrise.compat.logger import LoggerSink, Logging
from sunrise.compat.sb3 import FromVecEnv, as_vec_env
from sunrise.compilation import find_device, use_cache
from sunrise.config.algorithms import Algorithm, algorithm
from sunrise.config.check import check
from sunrise.config.fields import parameters
from sunrise.config.groups import NEVER
from sunrise.config.resolve import as_begun
from sunrise.config.settings import flatten_config, of_kind, with_settings
from sunrise.ensemble import Ensemble, Sunrise
from sunrise.ensemble.placement import place
from sunrise.envs.make import AnyEnv, AnyVectorEnv, Maker, from_env, to_env, uniform_actions
from sunrise.envs.spaces import batched, check_same, describe
from sunrise.errors import SunriseError
from sunrise.randomness import generator, root_key
from sunrise.run.evaluate import Evaluation, Evaluator
from sunrise.run.events import EventStream, Sink
from sunrise.run.fitting import ensemble_of, make_replay
from sunrise.run.live import LiveEnsemble
from sunrise.run.loop import Trainer
from sunrise.run.supervise import supervise, why_nothing_was_learned
from sunrise.sinks.chosen import trackers
from sunrise.sinks.console import ConsoleSink
from sunrise.sinks.folder import FolderSink
from sunrise.sinks.tensorboard import TensorBoard
from sunrise.store.machine import versions
from sunrise.store.reading import FORMAT, read_run
from sunrise.store.run_folder import RunFolder
from sunrise.store.session import Session
from sunrise.types import Observation, Replay, rows

NO_SECOND_ENV = (
    "a second environment is needed and cannot be made from this one; give `eval_env`, or an id or a class as `env`."
)
log = logging.getLogger("sunrise")


class Agent:
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
        self.config, self.schedule, self.habits = arguments.read(
            self.algorithm, policy, env, preset, policy_kwargs, settings
        )
        self.policy, self.verbose, self.tensorboard_log = policy, verbose, tensorboard_log
        self.device = find_device(device)
        self.placement = place(device, self.config.ensemble.ensemble_size, self.config.run.shard_members)
        kept = self.config.run.run_dir
        self.folder = RunFolder(Path(kept), self.device.device_kind, self.placement.mesh) if kept else None
        self.session = Session(self.folder, self.config.run.keep, self._about) if self.folder else None
        self.trainer: Trainer | None = None
        self.fitted = False
        self._timesteps = 0
        self.environments: Environments | None = None
        self.logging = Logging()
        self.ep_info_buffer: deque[dict[str, Any]] = deque(maxlen=self.habits.stats_window_size)
        """The last episodes of training, as Stable-Baselines3 keeps them."""
        self._vec_env: Any = None
        self._replay: Replay | None = None
        """Experience from a file, until there is a trainer."""
        self.make_eval_env = None if eval_env is None else maker(eval_env, self.config)
        if env is not None:
            if self.config.run.wrapper and not isinstance(env, str):
                raise SunriseError("wrapper is for environments made by their id: put this one inside it yourself.")
            self.set_env(env)
            assert self.env is not None
            self._fit(self.env.single_observation_space, self.env.single_action_space)

    # -- use -----------------------------------------------------------------------------------------------------------

    @property
    def num_timesteps(self) -> int:
        """Timesteps trained so far."""
        return self.trainer.timesteps if self.trainer else self._timesteps

    def __getattr__(self, name: str) -> Any:
        """A setting by its name, such as `model.gamma`; a learning rate may be a schedule."""
        settings = flatten_config(self.__dict__["config"]) if "config" in self.__dict__ else {}
        if name not in settings:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.schedule if name == "learning_rate" and self.schedule else settings[name]

    @property
    def n_envs(self) -> int:
        """Environments side by side."""
        return self.env.num_envs if self.env is not None else self.config.run.num_envs

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
    def env(self) -> AnyVectorEnv | None:
        """The environments it learns in."""
        return self.environments.vector if self.environments else None

    @env.deleter
    def env(self) -> None:
        """Let go of them."""
        self.environments = self._vec_env = None

    @property
    def action_repeat(self) -> int:
        """Simulator steps in one timestep."""
        return self.environments.action_repeat if self.environments else 1

    @property
    def exploration_rate(self) -> float:
        """Chance of a random action where it explores, for algorithms that have one (DQN)."""
        chance = self.parts.random_actions
        if chance is None:
            return 0.0
        return chance(self.trainer.timesteps / self.config.run.total_timesteps if self.trainer else 1.0)

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
            raise SunriseError(NO_SECOND_ENV)
        try:
            return evaluator(episodes, seed)
        finally:
            evaluator.close()

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
        tracked = trackers(self.config.run.tracking, self.algo, self.folder)
        evaluator = self._evaluator() if self.config.run.eval_freq else None
        if evaluator is None and self.config.run.eval_freq and not isinstance(self.env, FromVecEnv):
            log.warning("No evaluation while training: %s", NO_SECOND_ENV)
        trainer = self._trainer(reset_num_timesteps)
        trainer.log_episodes = log_interval or 0
        sinks: list[Sink] = [FolderSink(self.session)] if self.session else []
        watching = self._watching(until, progress_bar, tb_log_name or self.algo.upper(), reset_num_timesteps) + tracked
        if callback is not None:
            told = {"total_timesteps": until, "log_interval": log_interval, "tb_log_name": tb_log_name}
            told |= {"reset_num_timesteps": reset_num_timesteps, "progress_bar": progress_bar}
            sinks.append(CallbackSink(callback, self, told))
        sinks += watching  # the logger after the callback: what that records goes with the row of its step
        trainer.events, trainer.evaluator = EventStream(sinks), evaluator
        before = trainer.updates, trainer.timesteps
        try:
            supervise(trainer, until)
        finally:
            trainer.events = EventStream()
        learns = self.config.training.learning_starts < NEVER
        if learns and trainer.updates == before[0] and trainer.timesteps > before[1]:
            log.warning("Nothing was learned, not one update was made: %s.", why_nothing_was_learned(trainer))
        return self

    def _watching(self, until: int, progress_bar: bool, name: str, anew: bool) -> list[Sink]:
        """The sinks that show a training: where the logger takes our rows, it alone writes them."""
        root = self.tensorboard_log
        others = None if root is None else TensorBoard.numbered(Path(root), name, anew)
        self.logging.begin(self.verbose, root, name, anew, others)
        tables = self.verbose > 0 and not self.logging.takes_rows
        sinks: list[Sink] = [ConsoleSink(until, progress_bar, tables)]
        if others is not None and not self.logging.takes_rows:
            sinks.append(others)
        return [*sinks, LoggerSink(self.logging, self.ep_info_buffer)]

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

    def _trainer(self, reset_num_timesteps: bool) -> Trainer:
        """The trainer of this agent: a new one, or the one there is with its experience."""
        if self.env is None:
            raise SunriseError("there is no environment to learn in: give `env`, or call set_env first.")
        if self.trainer is None:
            self.config = as_begun(self.config)
            trainer = self._new_trainer()
            self._prefill(trainer)
            if self.folder:
                about = flatten_config(self.config) | ({"learning_rate": "schedule"} if self.schedule else {})
                self.folder.create(self.algo, self.policy, about, self.action_repeat, self.algorithm.imported_from)
            trainer.updates = self.live.step
            trainer.start_from(0 if reset_num_timesteps else self._timesteps)
        else:
            if reset_num_timesteps:
                self.trainer.start_from(0)
            touched = getattr(self._vec_env, "touched", False) or isinstance(self.env, FromVecEnv)
            if touched or reset_num_timesteps:
                self.trainer.collector.begin_anew()
        if self._vec_env is not None and hasattr(self._vec_env, "touched"):
            self._vec_env.touched = False
        assert self.trainer is not None
        self.trainer.config = self.config
        self._prefill(self.trainer)  # a run that goes on from before its first checkpoint
        return self.trainer

    def _prefill(self, trainer: Trainer) -> None:
        """Begin an empty replay buffer with the dataset that was asked for."""
        if not self.config.training.prefill or len(trainer.replay):
            return
        from sunrise.offline.prefill import prefill

        try:
            prefill(trainer.replay, self.config, self.observation_space, self.action_space, trainer.collector.count)
        except BaseException:
            self.trainer = None  # what is half full is of no use
            raise

    def _new_trainer(self) -> Trainer:
        assert self.environments is not None
        envs, replay = self.environments, self._new_replay()
        if self._replay is not None:
            replay, self._replay = replay_file.moved(self._replay, replay), None
        self.trainer = Trainer(
            self.config,
            self.live,
            make_collector(envs, self.config),
            replay,
            self.schedule,
            self.action_repeat,
            self.parts.random_actions,
        )
        return self.trainer

    def _new_replay(self) -> Replay:
        envs, rng = self.environments, generator(self.config.run.seed, "replay")
        count, stacked = (envs.vector.num_envs, envs.stacked) if envs else (self.config.run.num_envs, 0)
        return make_replay(self.config, self.observation_space, self.parts, count, rng, stacked)

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

    def save_replay_buffer(self, path: str | Path) -> None:
        """Write all experience to a safetensors file of any name."""
        if self.replay_buffer.replay is None:
            raise SunriseError("there is no replay buffer to save yet: it is made when the training begins.")
        replay_file.save(self.replay_buffer.replay, replay_file.named(path))

    def load_replay_buffer(self, path: str | Path, truncate_last_traj: bool = True) -> None:
        """Read experience that `save_replay_buffer` wrote, in place of what there is; an open episode ends there."""
        if not self.fitted:
            raise SunriseError("this model has no environment yet: give `env`, or call set_env first.")
        new = self._new_replay() if self.trainer is None else self.trainer.replay
        replay_file.load(new, replay_file.named(path))
        self._replay = new if self.trainer is None else None

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

    def _about(self) -> dict[str, Any]:
        """What a file of agents says about itself."""
        return {
            "format": FORMAT,
            "algo": self.algo,
            **({"imported_from": self.algorithm.imported_from} if self.algorithm.imported_from else {}),
            "policy": self.policy,
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
        """Read agents that `save` wrote. Nothing in the file is executed, so `custom_objects` has nothing to replace.

        New episodes begin in any case, which is what `force_reset` asks for.
        """
        name = archive.found(path)
        settings["device"] = device
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
