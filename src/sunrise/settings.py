"""Settings: four groups of fields with unique names, so that a setting is one keyword in Python and one flag."""

import dataclasses
import functools
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from sunrise.config.ensemble import EnsembleSettings, resolve_temperature, resolve_weighting
from sunrise.config.tasks import RendererChoice
from sunrise.errors import SunriseError, near

NEVER = 2**62
"""`learning_starts` of an agent that does not learn."""


@dataclass(frozen=True)
class TrainingSettings:
    """How experience is gathered and used."""

    buffer_size: int = 1_000_000
    """Transitions the replay buffer holds."""
    learning_starts: int = 1000
    """Timesteps before the first update."""
    batch_size: int = 256
    """Rows of a minibatch; all members see the same one."""
    gamma: float = 0.99
    """Discount γ."""
    train_freq: int = 1
    """Steps of the vector environment between rounds of updates."""
    gradient_steps: int = 1
    """Updates in a round, each with its own minibatch; -1: as many as transitions were collected."""
    warmup: Literal["uniform", "ensemble"] = "uniform"
    """Actions before `learning_starts`: uniform random, or the untrained ensemble's (the authors' code)."""
    truncation: Literal["bootstrap", "terminal"] = "bootstrap"
    """The value after a time limit is bootstrapped, or counted as terminal (the authors' code)."""
    n_step: int = 1
    """Rewards summed before the value of what follows is bootstrapped."""
    prioritised: bool = False
    """Draw transitions by their last error instead of uniformly."""
    priority_exponent: float = 0.5
    """How strongly the error decides: 0 is uniform."""
    importance_start: float = 0.4
    """Exponent of the correction for not being uniform; it rises to 1."""
    importance_horizon: int = 0
    """Timestep at which it is 1; 0: at the end of the run."""
    reward_noise: float = 0.0
    """Standard deviation of Gaussian noise added to the rewards that are learned from; evaluation never sees it."""


@dataclass(frozen=True)
class RunSettings:
    """What a run trains on, how it is watched, and where it is kept."""

    env_id: str = ""
    """Environment id; `sunrise envs` lists them."""
    total_timesteps: int = 200_000
    """Decisions of the agent, summed over the environments."""
    seed: int = 1
    """Seed of every random number of the run."""
    num_envs: int = 1
    """Environments stepped side by side."""
    vectorization: Literal["sync", "async"] = "sync"
    """Step the environments in this process, or each in a process of its own."""
    eval_freq: int = 10_000
    """Timesteps between evaluations; 0: never."""
    eval_episodes: int = 10
    """Episodes of an evaluation."""
    eval_max_steps: int = 100_000
    """Steps after which an episode of an evaluation is cut, for environments without a time limit; 0: never."""
    eval_steps: int = 0
    """Evaluate for this many steps and keep the complete episodes, as the authors do; 0: count episodes."""
    log_freq: int = 1000
    """Timesteps between rows of metrics.jsonl."""
    save_freq: int = 10_000
    """Timesteps between checkpoints; 0: only at the end."""
    keep: int = 2
    """Checkpoints to keep."""
    keep_replay: bool = True
    """Keep the replay buffer on disk when the run is finished, so that it can be extended."""
    max_env_restarts: int = 10
    """Failures of environments within 100,000 timesteps that a run endures: the episode is dropped, the environment
    made anew; one more, and the run stops. `resume` can raise it."""
    env_timeout: float = 300.0
    """Seconds to wait for an environment: one in a process of its own is killed then and counts as failed, one in this
    process is named in a warning; 0: for ever."""
    eval_epsilon: float = 0.0
    """Chance of a random action when a single agent is evaluated; an ensemble never takes one (the authors' code)."""
    run_dir: str = ""
    """Folder of the run; default: runs/{env_id}__{algo}__{seed}__{time}."""


L = TypeVar("L")


@dataclass(frozen=True)
class NoEnvSettings:
    """Environments that are taken as they are."""


@dataclass(frozen=True)
class AtariSettings:
    """How `ALE/` games are played."""

    sticky_actions: float = 0.0
    """Chance that the emulator repeats the action before; 0 in the paper, 0.25 in later practice."""
    full_action_space: bool = False
    """All 18 actions instead of the game's own."""


@dataclass(frozen=True)
class DMCSettings:
    """How `dmc/` tasks are seen and stepped."""

    pixels: bool = False
    """Observe pictures instead of the state."""
    camera: int = 0
    """The camera of the pictures."""
    render_size: int = 100
    """Height and width of the pictures."""
    action_repeat: int = 1
    """Simulator steps that an action lasts; the paper's own number for the tasks of the paper."""
    frame_stack: int = 3
    """Pictures of one observation, the newest last."""
    renderer: RendererChoice = "auto"
    """What draws the pictures; `auto` is OpenGL where there is any, else warp, and is decided when a model is made."""
    anti_aliasing: int | None = None
    """Samples of a pixel; default: the renderer's own."""
    shadow_size: int | None = None
    """Side of the shadow map, 0 for no shadows; default: the task's own."""


OPTIONS_FOR: dict[type, str] = {AtariSettings: "ALE/", DMCSettings: "dmc/"}
"""The environments that a group of settings is for."""


def env_options(group: Any, env: object) -> dict[str, Any]:
    """The options an environment is made with: those of `group` if it is for this id, else none."""
    prefix = OPTIONS_FOR.get(type(group))
    meant = prefix is not None and isinstance(env, str) and env.startswith(prefix)
    return dataclasses.asdict(group) if meant else {}


def from_pixels(config: "Config[Any]") -> bool:
    """Whether the agents are to see pictures."""
    return bool(getattr(config.env, "pixels", False))


@dataclass(frozen=True)
class Config(Generic[L]):
    """Every setting of a run. `learner` is the algorithm's own group, for instance `SACSettings`."""

    learner: L
    env: Any = dataclasses.field(default_factory=NoEnvSettings)
    ensemble: EnsembleSettings = dataclasses.field(default_factory=EnsembleSettings)
    training: TrainingSettings = dataclasses.field(default_factory=TrainingSettings)
    run: RunSettings = dataclasses.field(default_factory=RunSettings)


def flatten_config(config: Any) -> dict[str, Any]:
    """Every setting by its own name, whatever group it is in."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        flat |= flatten_config(value) if dataclasses.is_dataclass(value) else {field.name: value}
    return flat


@functools.cache
def hints(group: Any) -> dict[str, Any]:
    """The kind of each field of a group, given as its type."""
    return typing.get_type_hints(group)


def replace_deeply(group: Any, changes: Mapping[str, Any]) -> Any:
    """A group of settings, and the groups inside it, with fields changed by name."""
    own, kinds = {}, hints(type(group))  # type: ignore[arg-type]
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if dataclasses.is_dataclass(value):
            own[field.name] = replace_deeply(value, changes)
        elif field.name in changes:
            own[field.name] = of_kind(changes[field.name], kinds[field.name])
    return dataclasses.replace(group, **own)


def of_kind(value: Any, kind: Any) -> Any:
    """A number as its setting counts: 1e6 is a whole number, and 1 is as good as 1.0."""
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return float(value) if kind is float and type(value) is int else value


def plain(value: Any) -> Any:
    """A value as settings keep it: tuples for lists, Python's numbers for NumPy's, `(4, "step")` as 4."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return value[0] if len(value) == 2 and value[1] == "step" else tuple(value)
    return value


def with_settings(config: Config[L], changes: Mapping[str, Any]) -> Config[L]:
    """`config` with settings changed by name; a misspelt one is refused with the nearest right one."""
    known = flatten_config(config)
    changes = {name: plain(value) for name, value in changes.items()}
    for name in changes:
        if name not in known:
            raise SunriseError(f"there is no setting {name!r}.{near(name, known, count=1, alike=0.7)}")
    changed: Config[L] = replace_deeply(config, changes)
    return changed


def resolved(config: Config[L]) -> Config[L]:
    """`config` with what is `auto` decided, once and for all."""
    decided: dict[str, Any] = {
        "weighting": resolve_weighting(config.ensemble),
        "weight_temperature": resolve_temperature(config.ensemble, from_pixels(config)),
    }
    options = env_options(config.env, config.run.env_id)
    if options.get("pixels"):
        from sunrise.envs.renderers import resolve

        decided["renderer"] = resolve(options["renderer"])
    return with_settings(config, decided)


class Length(NamedTuple):
    """How long to train, where it was asked for: in timesteps or in simulator steps."""

    total_timesteps: int | None = None
    total_env_steps: int | None = None

    def in_timesteps(self, action_repeat: int) -> int | None:
        """None where nothing was asked for."""
        if self.total_env_steps is None:
            return self.total_timesteps
        if self.total_timesteps is not None:
            raise SunriseError("total_timesteps and total_env_steps are both given: give one of them.")
        if self.total_env_steps < action_repeat:
            raise SunriseError(
                f"total_env_steps is {self.total_env_steps}, but must be at least {action_repeat}: "
                "so many simulator steps are one timestep."
            )
        return self.total_env_steps // action_repeat


def begun(config: Config[L]) -> Config[L]:
    """`config` with what is decided when a run begins and stays when it is extended."""
    if not config.training.prioritised:
        return config
    horizon = config.training.importance_horizon or config.run.total_timesteps
    return with_settings(config, {"importance_horizon": horizon})
