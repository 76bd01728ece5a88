"""The algorithms by name, as data: each one's settings, presets, and learner.

What computes is imported when an algorithm is fitted to an environment: a list of settings needs none of it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sunrise.config.ensemble import EnsembleSettings
from sunrise.config.groups import NEVER, AtariSettings, Config, DMCSettings, TrainingSettings
from sunrise.config.learners import (
    CURLSettings,
    DisCorSettings,
    DQNSettings,
    DrQSettings,
    RADSettings,
    RainbowSettings,
    RandomSettings,
    SACSettings,
    TD3Settings,
)
from sunrise.config.presets import Preset, Settings, nothing, presets_of
from sunrise.config.tasks import PAPER_TASKS
from sunrise.errors import SunriseError, near

if TYPE_CHECKING:
    from sunrise.run.fitting import Parts

Fit: TypeAlias = "Callable[[Config[Any], Any, Any], Parts]"
"""Settings, observation space and action space to a learner."""
MLP_POLICIES = ("MlpPolicy", "MultiInputPolicy")
CNN_POLICIES = ("CnnPolicy", "MultiInputPolicy")


class Algorithm(NamedTuple):
    """An algorithm as users know it; `sunrise.agent` makes a class of it."""

    name: str
    text: str
    """What it is, in one sentence."""
    defaults: Config[Any]
    """Every setting; `Config(learner=...)` has the group of the algorithm's own."""
    fit: Fit
    """Settings, observation space and action space to a learner; wrong ones are refused. See `sunrise.run.fitting`."""
    policies: tuple[str, ...] = MLP_POLICIES
    """The names of policies it takes."""
    presets: Mapping[str, Preset] = {}
    """Settings of published code by name."""
    for_env: Callable[[str], Settings] = nothing
    """The settings of one environment, by its id, where they differ from the defaults."""
    imported_from: str = ""
    """`module:NAME` of one that is not ours, where the user named it so; runs keep it, and it is only ever shown."""


def fit_of(name: str) -> Fit:
    """How one of our own learners is fitted to an environment."""

    def fit(config: Config[Any], observation_space: Any, action_space: Any) -> "Parts":
        from sunrise.run.fitting import FITS

        return FITS[name](config, observation_space, action_space)

    return fit


def paper_repeat(env_id: str) -> Settings:
    """The paper's action repeat of a DeepMind Control task."""
    return {"action_repeat": PAPER_TASKS[env_id].action_repeat} if env_id in PAPER_TASKS else {}


def paper_repeat_and_entropy(env_id: str) -> Settings:
    """The paper's action repeat, and on every DeepMind Control task its initial temperature of 0.1 for α."""
    return {**paper_repeat(env_id), **({"ent_coef": "auto_0.1"} if env_id.startswith("dmc/") else {})}


def paper_task(env_id: str) -> Settings:
    """All that the paper sets for a DeepMind Control task."""
    return PAPER_TASKS[env_id]._asdict() if env_id in PAPER_TASKS else {}


RAINBOW_TRAINING = TrainingSettings(
    buffer_size=100_000, learning_starts=1600, batch_size=32, n_step=20, prioritised=True
)
DQN_TRAINING = TrainingSettings(learning_starts=100, batch_size=32, train_freq=4)
NO_TRAINING = TrainingSettings(learning_starts=NEVER, buffer_size=1000)
PIXEL_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=256)
DRQ_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=512)
DMC = DMCSettings()


def ours(
    name: str,
    text: str,
    defaults: Config[Any],
    policies: tuple[str, ...] = MLP_POLICIES,
    for_env: Callable[[str], Settings] = nothing,
) -> Algorithm:
    """One of our own algorithms, with its presets and its learner."""
    return Algorithm(name, text, defaults, fit_of(name), policies, presets_of(name), for_env)


LIST = (
    ours(
        "sac",
        "Soft Actor-Critic, as an ensemble of agents.",
        Config(SACSettings(), DMC),
        for_env=paper_repeat_and_entropy,
    ),
    ours(
        "td3",
        "Twin Delayed Deep Deterministic Policy Gradient, as an ensemble of agents.",
        Config(TD3Settings(), DMC),
        for_env=paper_repeat,
    ),
    ours(
        "discor",
        "Soft Actor-Critic with DisCor's error weights, as an ensemble of agents.",
        Config(DisCorSettings(), DMC),
        for_env=paper_repeat_and_entropy,
    ),
    ours(
        "rainbow",
        "Data-efficient Rainbow for Atari and other finite sets of actions, as an ensemble of agents.",
        Config(RainbowSettings(), AtariSettings(), training=RAINBOW_TRAINING),
        ("CnnPolicy", "MlpPolicy", "MultiInputPolicy"),
    ),
    ours(
        "dqn",
        "Deep Q-Learning for finite sets of actions, as an ensemble of agents: Rainbow with its components off.",
        Config(DQNSettings(), AtariSettings(), training=DQN_TRAINING),
        ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"),
    ),
    ours(
        "rad",
        "Soft Actor-Critic from randomly cropped pictures, as an ensemble of agents; also plain SAC from pixels.",
        Config(RADSettings(), DMCSettings(pixels=True), training=PIXEL_TRAINING),
        CNN_POLICIES,
        paper_task,
    ),
    ours(
        "drq",
        "Soft Actor-Critic from pictures with values averaged over random shifts, as an ensemble of agents.",
        Config(DrQSettings(), DMCSettings(pixels=True, render_size=84), training=DRQ_TRAINING),
        CNN_POLICIES,
        paper_repeat,
    ),
    ours(
        "curl",
        "Soft Actor-Critic from pictures with a contrastive loss, as an ensemble of agents.",
        Config(CURLSettings(), DMCSettings(pixels=True), training=PIXEL_TRAINING),
        CNN_POLICIES,
        paper_task,
    ),
    ours(
        "random",
        "An agent that acts uniformly at random and learns nothing: the floor of every comparison.",
        Config(RandomSettings(), DMC, EnsembleSettings(ensemble_size=1), NO_TRAINING),
        for_env=paper_repeat,
    ),
)
ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in LIST}
"""Our own."""


def algorithm(name: str) -> Algorithm:
    """One of our algorithms by its name."""
    if name not in ALGORITHMS:
        raise SunriseError(f"there is no algorithm {name!r}.{near(name, ALGORITHMS)}")
    return ALGORITHMS[name]
