"""An agent as users of Stable-Baselines3 know it: construct, `learn`, `predict`, `save`, `load`."""

import dataclasses
import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import jax
import numpy as np
from gymnasium.vector import VectorEnv

from sunrise.algorithms import algorithm, ensemble_of, make_replay
from sunrise.collect import Collector
from sunrise.compilation import use_cache
from sunrise.console import ProgressLine, console
from sunrise.envs.make import AnyEnv, AnyVectorEnv, action_repeat, as_vector, factory, rescale, uniform_actions, unscale
from sunrise.errors import NonFiniteError, SunriseError
from sunrise.evaluate import Evaluation, evaluate_episodes, evaluate_steps
from sunrise.randomness import generator, root_key
from sunrise.record import RunFolder, Scalars
from sunrise.replay.uniform import as_stored
from sunrise.settings import check, flatten_config, resolved, with_settings
from sunrise.spaces import describe, restore
from sunrise.tensors import load_tree, read_about, save_tree
from sunrise.train import Trainer, Watchers
from sunrise.types import Observation, State

FORMAT = "sunrise-model-1"
SIDE_BY_SIDE = 10
"""Episodes of an evaluation that run in step."""

Callback = Callable[[dict[str, Any], dict[str, Any]], bool | None]


class Agent:
    """Everything the algorithms share. A leaf only names its algorithm; none is made of this class itself."""

    algo: ClassVar[str]

    def __init_subclass__(cls, algo: str) -> None:
        """Give the leaf its algorithm and a signature with every setting of it."""
        cls.algo = algo
        own = [p for p in inspect.signature(Agent.__init__).parameters.values() if p.kind != p.VAR_KEYWORD]
        settings = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
            for name, value in flatten_config(algorithm(algo).defaults).items()
            if name not in ("env_id", "total_timesteps")
        ]
        cls.__signature__ = inspect.Signature([*own[1:], *settings])  # type: ignore[attr-defined]

    def __init__(
        self,
        policy: str,
        env: str | AnyEnv | AnyVectorEnv | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        use_cache()
        self.algorithm = algorithm(self.algo)
        if policy not in self.algorithm.policies:
            raise SunriseError(f"policy is {policy!r}, but {self.algo} takes {' or '.join(self.algorithm.policies)}.")
        if preset not in (None, "authors"):
            raise SunriseError(f"preset is {preset!r}, but must be 'authors' or None.")
        self.learning_rate: Callable[[float], float] | None = None
        rate = settings.get("learning_rate")
        if callable(rate):
            self.learning_rate = rate
            settings["learning_rate"] = float(rate(1.0))
        for name, value in (policy_kwargs or {}).items():
            if name != "net_arch":
                raise SunriseError(f"policy_kwargs has {name!r}, but only net_arch is known.")
            settings["net_arch"] = value
        if isinstance(env, str):
            settings["env_id"] = env
        elif isinstance(env, gym.Env) and env.spec is not None:
            settings["env_id"] = env.spec.id
        if settings.get("seed", 0) is None:
            settings["seed"] = int(np.random.SeedSequence().generate_state(1)[0])
        defaults = self.algorithm.defaults
        if preset == "authors":
            defaults = with_settings(defaults, self.algorithm.authors)
        self.config = resolved(check(with_settings(defaults, settings)))
        self.policy, self.verbose, self.tensorboard_log = policy, verbose, tensorboard_log
        self.device = find_device(device)
        self.folder = RunFolder(Path(self.config.run.run_dir)) if self.config.run.run_dir else None
        self.trainer: Trainer | None = None
        self._timesteps = 0
        self.env: AnyVectorEnv | None = None
        self._make_env: Callable[[], AnyEnv] | None = None
        if env is not None:
            self.set_env(env)
            assert self.env is not None
            self._fit(self.env.single_observation_space, self.env.single_action_space)

    # -- use -----------------------------------------------------------------------------------------------------------

    @property
    def num_timesteps(self) -> int:
        """Timesteps trained so far."""
        return self.trainer.timesteps if self.trainer else self._timesteps

    def predict(
        self,
        observation: Observation,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """The ensemble's action for one observation or a batch of them; without `deterministic`, an exploring one."""
        obs, single = self._batched(observation)
        if deterministic:
            action = np.asarray(self.sunrise.exploit(self._members(), obs, self.numbers))
        else:
            count = len(jax.tree.leaves(obs)[0])
            self._draws += 1
            acting = np.full(count, self._draws % self.config.ensemble.ensemble_size, np.int32)
            key = root_key(self.config.run.seed, "predict")
            choice = self.sunrise.explore(self._members(), obs, acting, key, np.int32(self._draws), self.numbers)
            action = np.asarray(choice.action)
        action = self._to_env(action)
        return (action[0] if single else action), state

    def uncertainty(self, observation: Observation, action: np.ndarray) -> Any:
        """The standard deviation of all critics' values: a float, or one for each row of a batch."""
        obs, single = self._batched(observation)
        rows = np.asarray(action)[None] if single else np.asarray(action)
        if isinstance(self.action_space, gym.spaces.Box):
            rows = unscale(rows, self.action_space)
        std = np.asarray(self.sunrise.uncertainty(self._members(), obs, rows, self.numbers))
        return float(std[0]) if single else std

    def evaluate(self, episodes: int | None = None, seed: int | None = None) -> Evaluation:
        """The returns of whole episodes in an environment of their own; the same seed gives the same episodes."""
        return self._evaluator(episodes, seed)(self._members())

    def set_env(self, env: str | AnyEnv | AnyVectorEnv) -> None:
        """Use another environment with the same spaces."""
        run = self.config.run
        options = dataclasses.asdict(self.config.env)
        vector = as_vector(env, run.num_envs, run.vectorization, **(options if self._ours(env) else {}))
        if self.env is not None or hasattr(self, "action_space"):
            for name in ("observation_space", "action_space"):
                ours, theirs = getattr(self, name), getattr(vector, f"single_{name}")
                if ours.shape != theirs.shape or type(ours) is not type(theirs):
                    raise SunriseError(f"the environment's {name} is {theirs}, but this model has {ours}.")
        self.env = vector
        self._make_env = None
        if not isinstance(env, VectorEnv):
            self._make_env = factory(env, training=False, **(options if self._ours(env) else {}))
        self.action_repeat = action_repeat(self._make_env)
        if self.trainer is not None:
            self.trainer.collector = self._collector()

    def _ours(self, env: str | AnyEnv | AnyVectorEnv) -> bool:
        """Whether the settings of environments are for this one."""
        return isinstance(env, str) and env.startswith(("ALE/", "dmc/"))

    # -- training ------------------------------------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | None = None,
        log_interval: int | None = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = True,
    ) -> Self:
        """Train for `total_timesteps` decisions, from 0 or (without `reset_num_timesteps`) on top of those done.

        A row of metrics is made every `log_interval` episodes, or every `log_freq` timesteps if that is None.
        `callback(locals, globals)` is called after each step; it stops the training by returning False.
        """
        until = total_timesteps + (0 if reset_num_timesteps else self.num_timesteps)
        self.config = check(with_settings(self.config, {"total_timesteps": until}))
        line = ProgressLine(until, progress_bar)
        events = self._events(tb_log_name or self.algo.upper())
        watchers = Watchers(
            evaluate=self._evaluator() if self.config.run.eval_freq and self._make_env else None,
            on_metrics=lambda row: self._on_metrics(row, line, events),
            on_evaluation=lambda timesteps, result: self._on_evaluation(timesteps, result, line),
            on_save=lambda _: self._checkpoint(),
        )
        trainer = self._trainer(watchers, reset_num_timesteps)
        trainer.log_episodes = log_interval or 0
        try:
            with line, interruptible() as interrupted:
                for episodes in trainer.run(until):
                    line.step(trainer)
                    wanted = callback is None or callback({"self": self, "episodes": episodes}, {}) is not False
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    if not wanted:
                        break
                if trainer.finished or trainer.tally.updates:
                    trainer.log()
        except KeyboardInterrupt:
            self._stopped(trainer, "stopped")
            raise
        except Exception as error:
            where = self._stopped(trainer, "failed", error=str(error))
            if isinstance(error, NonFiniteError) and where:
                error.args = (f"{error} It is in {where}.",)
            raise
        finally:
            if events is not None:
                events.close()
            if self.folder:
                self.folder.close()
        self._stopped(trainer, "finished")
        return self

    def _trainer(self, watchers: Watchers, reset_num_timesteps: bool) -> Trainer:
        """The trainer of this agent: a new one, or the one there is with its experience."""
        if self.env is None:
            raise SunriseError("there is no environment to learn in: give `env`, or call set_env first.")
        if self.trainer is None:
            if self.folder:
                self.folder.create(self.algo, flatten_config(self.config))
            rng = generator(self.config.run.seed, "replay")
            replay = make_replay(self.config, self.observation_space, self.parts, self.env.num_envs, rng)
            if self.verbose or self.folder:
                size = self.config.training.buffer_size
                console.print(f"replay: {size:,} transitions, {replay.nbytes / 1e9:.2f} GB when full")
            self.trainer = Trainer(
                self.config,
                self.sunrise,
                self.numbers,
                self.ensemble,
                self.tally,
                self._collector(),
                replay,
                watchers,
                self.learning_rate,
                self.action_repeat,
            )
            self.trainer.updates = int(self.ensemble.step)
            self.trainer.start_from(0 if reset_num_timesteps else self._timesteps)
        elif reset_num_timesteps:
            self.trainer.start_from(0)
        self.trainer.config, self.trainer.watchers = self.config, watchers
        if self.folder:
            self.folder.status("running", self.trainer.timesteps)
        return self.trainer

    def _collector(self) -> Collector:
        assert self.env is not None
        training, run, members = self.config.training, self.config.run, self.config.ensemble.ensemble_size
        rng = generator(run.seed, "members")
        return Collector(self.env, run.seed, members, rng, training.gamma, training.truncation, training.reward_noise)

    def _evaluator(self, episodes: int | None = None, seed: int | None = None) -> Callable[[State], Evaluation]:
        """Evaluation of members in environments of its own, by the protocol of the settings."""
        if self._make_env is None:
            raise SunriseError("evaluation needs a second environment: give an id, or an environment with a spec.")
        run = self.config.run
        seed = run.seed if seed is None else seed
        count = episodes or run.eval_episodes
        by_steps = run.eval_steps if episodes is None else 0
        envs = [self._make_env() for _ in range(1 if by_steps else min(count, SIDE_BY_SIDE))]

        epsilon = run.eval_epsilon if self.config.ensemble.ensemble_size == 1 else 0.0

        def evaluator(members: State) -> Evaluation:
            rng = generator(seed, "evaluation")

            def policy(obs: Observation) -> np.ndarray:
                action = np.array(self.sunrise.exploit(members, obs, self.numbers))
                stray = rng.random(len(action)) < epsilon
                action[stray] = uniform_actions(rng, self.action_space, int(stray.sum()))
                return self._to_env(action)

            if by_steps:
                return evaluate_steps(policy, envs[0], by_steps, seed)
            return evaluate_episodes(policy, envs, count, seed)

        return evaluator

    def _events(self, name: str) -> Scalars | None:
        """TensorBoard events in a new folder of `tensorboard_log`, as SB3 names them."""
        if self.tensorboard_log is None:
            return None
        root = Path(self.tensorboard_log)
        taken = len(list(root.glob(f"{name}_*")))
        return Scalars(root / f"{name}_{taken + 1}")

    def _on_metrics(self, row: dict[str, Any], line: ProgressLine, events: Scalars | None) -> None:
        line.metrics(row)
        if self.folder:
            self.folder.metrics(row)
        if events is not None:
            events.add(row, row["timesteps"])
        if self.verbose:
            console.print("  ".join(f"{k} {v:.4g}" for k, v in row.items()))

    def _on_evaluation(self, timesteps: int, result: Evaluation, line: ProgressLine) -> None:
        line.evaluation(timesteps, result)
        if self.folder:
            self.folder.evaluation(timesteps, result)

    def _checkpoint(self) -> Path | None:
        """Keep the agents in the run's folder."""
        if self.folder is None or self.trainer is None:
            return None
        path = self.folder.checkpoints / f"step-{self.trainer.timesteps:09d}.safetensors"
        self.save(path)
        return path

    def _stopped(self, trainer: Trainer, status: Any, **more: Any) -> Path | None:
        """However a run ends, what it learned is on disk."""
        self.ensemble, self.tally = trainer.ensemble, trainer.tally
        path = self._checkpoint()
        if self.folder:
            self.folder.status(status, trainer.timesteps, **more)
        return path

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the agents to one safetensors file; the suffix is added where it is missing."""
        about = {
            "format": FORMAT,
            "algo": self.algo,
            "policy": self.policy,
            "settings": flatten_config(self.config),
            "timesteps": self.num_timesteps,
            "observation_space": describe(self.observation_space),
            "action_space": describe(self.action_space),
        }
        save_tree(with_suffix(path), self.trainer.ensemble if self.trainer else self.ensemble, about)

    @classmethod
    def load(cls, path: str | Path, env: str | AnyEnv | AnyVectorEnv | None = None, **settings: Any) -> Self:
        """Read agents that `save` wrote. Nothing in the file is executed."""
        file = with_suffix(path)
        about = read_about(file)
        if about.get("format") != FORMAT:
            raise SunriseError(f"{file} is not a model of ours.")
        if about["algo"] != cls.algo:
            raise SunriseError(f"{file} is a model of {about['algo']}, not of {cls.algo}.")
        kept = about["settings"] | {"run_dir": ""} | settings
        env_id = kept.pop("env_id")
        total = kept.pop("total_timesteps")
        model = cls(about["policy"], None, **kept)
        model.config = with_settings(model.config, {"env_id": env_id, "total_timesteps": total})
        model._timesteps = int(about["timesteps"])
        model._fit(restore(about["observation_space"]), restore(about["action_space"]))
        model.ensemble = load_tree(file, model.ensemble)
        if env is not None:
            model.set_env(env)
        return model

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _fit(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        """Build the ensemble for an environment's spaces."""
        self.observation_space, self.action_space = observation_space, action_space
        self.parts = self.algorithm.fit(self.config, observation_space, action_space)
        self.sunrise, self.numbers = ensemble_of(self.parts, self.config)
        with jax.default_device(self.device):
            self.ensemble, self.tally = self.sunrise.init(root_key(self.config.run.seed, "init"), self.numbers)
        self._draws = 0

    def _members(self) -> State:
        return self.trainer.ensemble.members if self.trainer else self.ensemble.members

    def _to_env(self, action: np.ndarray) -> np.ndarray:
        return rescale(action, self.action_space) if isinstance(self.action_space, gym.spaces.Box) else action

    def _batched(self, observation: Observation) -> tuple[Observation, bool]:
        """An observation with a batch axis, and whether it had none."""
        space, first = self.observation_space, observation
        if isinstance(space, gym.spaces.Dict):
            name = next(iter(space.spaces))
            space, first = space.spaces[name], observation[name]
        assert space.shape is not None
        shape = np.shape(first)
        if shape not in (space.shape, shape[:1] + space.shape):
            raise SunriseError(f"an observation has shape {shape}, but {space.shape} or a batch of them was expected.")
        single = shape == space.shape
        obs = as_stored(observation)
        return (jax.tree.map(lambda x: x[None], obs) if single else obs), single


def find_device(name: str) -> jax.Device:
    """`auto` is JAX's first device; otherwise the first of a platform."""
    try:
        return jax.devices(None if name == "auto" else name)[0]
    except RuntimeError:
        platforms = {device.platform for device in jax.devices()}
        raise SunriseError(f"device is {name!r}, but must be auto or one of {', '.join(platforms)}.") from None


def with_suffix(path: str | Path) -> Path:
    """`hopper` is `hopper.safetensors`."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name + ".safetensors")


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and a polite kill are noted, to be heeded between two steps; a second one is not waited for."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(number: int, frame: Any) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
