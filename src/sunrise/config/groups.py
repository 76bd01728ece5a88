"""The groups of settings that all algorithms share, and `Config`, which holds one of each.

A field is a keyword in Python and a flag, so that names are unique over all groups. Its kind says what it may be
(`rules.py`), the text under it is the help of both.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from sunrise.config.ensemble import EnsembleSettings
from sunrise.config.rules import Between, Count, CountOrZero, Fraction, Not, NotNegative
from sunrise.config.tasks import RendererChoice
from sunrise.config.tracking import TrackingSettings

NEVER = 2**62
"""`learning_starts` of an agent that does not learn."""


@dataclass(frozen=True)
class TrainingSettings:
    """How experience is gathered and used."""

    buffer_size: Count = 1_000_000
    """Transitions the replay buffer holds."""
    learning_starts: CountOrZero = 1000
    """Timesteps before the first update."""
    batch_size: Count = 256
    """Rows of a minibatch; all members see the same one."""
    gamma: Fraction = 0.99
    """Discount γ."""
    train_freq: Count = 1
    """Steps of the vector environment between rounds of updates, or episodes, as `train_freq_unit` says."""
    train_freq_unit: Literal["step", "episode"] = "step"
    """What `train_freq` counts: steps, or episodes of a single environment."""
    gradient_steps: Annotated[int, Between(-1), Not(0, "at least 1, or -1 for as many as transitions")] = 1
    """Updates in a round, each with its own minibatch; -1: as many as transitions were collected."""
    warmup: Literal["uniform", "ensemble"] = "uniform"
    """Actions before `learning_starts`: uniform random, or the untrained ensemble's (the authors' code)."""
    truncation: Literal["bootstrap", "terminal"] = "bootstrap"
    """The value after a time limit is bootstrapped, or counted as terminal (the authors' code)."""
    n_step: Count = 1
    """Rewards summed before the value of what follows is bootstrapped."""
    prioritised: bool = False
    """Draw transitions by their last error instead of uniformly."""
    priority_exponent: Fraction = 0.5
    """How strongly the error decides: 0 is uniform."""
    importance_start: Fraction = 0.4
    """Exponent of the correction for not being uniform; it rises to 1."""
    importance_horizon: CountOrZero = 0
    """Timestep at which it is 1; 0: at the end of the run."""
    reward_noise: NotNegative = 0.0
    """Standard deviation of Gaussian noise added to the rewards that are learned from; evaluation never sees it."""
    normalise_rewards: bool = False
    """Learn from rewards in units of the deviation of discounted returns so far, cut at ±10; replay and reports have
    them as they came, and the statistics are part of a checkpoint."""
    prefill: str = ""
    """A Minari dataset whose transitions are in the replay buffer before the first step (extra `minari`)."""


@dataclass(frozen=True)
class RunSettings:
    """What a run trains on, how it is watched, and where it is kept."""

    env_id: str = ""
    """Environment id; `sunrise envs` lists them."""
    wrapper: tuple[str, ...] = ()
    """Wrappers around an environment made by its id, the innermost first: `pkg.mod:Wrapper`, or with arguments
    `pkg.mod:Wrapper(name=value)`."""
    total_timesteps: Count = 200_000
    """Decisions of the agent, summed over the environments."""
    seed: Annotated[int, Between(0, 2**32 - 1)] = 1
    """Seed of every random number of the run."""
    num_envs: Count = 1
    """Environments stepped side by side."""
    vectorization: Literal["sync", "async"] = "sync"
    """Step the environments in this process, or each in a process of its own."""
    eval_freq: CountOrZero = 10_000
    """Timesteps between evaluations; 0: never."""
    eval_episodes: Count = 10
    """Episodes of an evaluation."""
    eval_max_steps: CountOrZero = 100_000
    """Steps after which an episode of an evaluation is cut, for environments without a time limit; 0: never."""
    eval_steps: CountOrZero = 0
    """Evaluate for this many steps and keep the complete episodes, as the authors do; 0: count episodes."""
    log_freq: Count = 1000
    """Timesteps between rows of metrics.jsonl."""
    save_freq: CountOrZero = 10_000
    """Timesteps between checkpoints; 0: only at the end."""
    keep: Count = 2
    """Checkpoints to keep."""
    keep_replay: bool = True
    """Keep the replay buffer on disk when the run is finished, so that it can be extended."""
    max_env_restarts: CountOrZero = 10
    """Failures of environments within 100,000 timesteps that a run endures: the episode is dropped, the environment
    made anew; one more, and the run stops. `resume` can raise it."""
    env_timeout: NotNegative = 300.0
    """Seconds to wait for an environment: one in a process of its own is killed then and counts as failed, one in this
    process is named in a warning; 0: for ever."""
    shard_members: bool = False
    """Spread the members over the devices of this process, over as many as divide their number. `resume` can change
    it."""
    eval_epsilon: Fraction = 0.0
    """Chance of a random action when a single agent is evaluated; an ensemble never takes one (the authors' code)."""
    run_dir: str = ""
    """Folder of the run; default: runs/{env_id}__{algo}__{seed}__{time}."""
    tracking: TrackingSettings = dataclasses.field(default_factory=TrackingSettings)


L = TypeVar("L")


@dataclass(frozen=True)
class NoEnvSettings:
    """Environments that are taken as they are."""


@dataclass(frozen=True)
class AtariSettings:
    """How `ALE/` games are played."""

    sticky_actions: Fraction = 0.0
    """Chance that the emulator repeats the action before; 0 in the paper, 0.25 in later practice."""
    full_action_space: bool = False
    """All 18 actions instead of the game's own."""


@dataclass(frozen=True)
class DMCSettings:
    """How `dmc/` tasks are seen and stepped."""

    pixels: bool = False
    """Observe pictures instead of the state."""
    camera: CountOrZero = 0
    """The camera of the pictures."""
    render_size: Count = 100
    """Height and width of the pictures."""
    action_repeat: Count = 1
    """Simulator steps that an action lasts; the paper's own number for the tasks of the paper."""
    frame_stack: Count = 3
    """Pictures of one observation, the newest last."""
    renderer: RendererChoice = "auto"
    """What draws the pictures; `auto` is OpenGL where there is any, else warp, and is decided when a model is made."""
    anti_aliasing: Annotated[int | None, Between(0)] = None
    """Samples of a pixel; default: the renderer's own."""
    shadow_size: Annotated[int | None, Between(0)] = None
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
