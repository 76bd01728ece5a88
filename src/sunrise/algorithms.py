"""The algorithms by name, as data: each one's settings, presets, and learner.

What computes is imported when an algorithm is fitted to an environment: a list of settings needs none of it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from sunrise.config.ensemble import EnsembleSettings
from sunrise.config.learners import (
    CURLSettings,
    DisCorSettings,
    DrQSettings,
    RADSettings,
    RainbowSettings,
    RandomSettings,
    SACSettings,
    TD3Settings,
)
from sunrise.config.presets import AUTHORS_EVALUATION, AUTHORS_RAINBOW, AUTHORS_SAC, AUTHORS_TD3, SAC_PRESETS, of_task
from sunrise.config.tasks import PAPER_TASKS
from sunrise.errors import SunriseError, near
from sunrise.settings import (
    NEVER,
    OPTIONS_FOR,
    AtariSettings,
    Config,
    DMCSettings,
    TrainingSettings,
    flatten_config,
    with_settings,
)

if TYPE_CHECKING:
    from sunrise.agents.environments import Given
    from sunrise.fitting import Parts

Fit: TypeAlias = "Callable[[Config[Any], Any, Any], Parts]"
"""Settings, observation space and action space to a learner."""


def fit_of(name: str) -> Fit:
    """How one of our own learners is fitted to an environment."""

    def fit(config: Config[Any], observation_space: Any, action_space: Any) -> "Parts":
        from sunrise.fitting import FITS

        return FITS[name](config, observation_space, action_space)

    return fit


def no_preset(env_id: str) -> Mapping[str, Any]:
    """Every task is played with the same settings."""
    return {}


def paper_repeat(env_id: str) -> Mapping[str, Any]:
    """The paper's action repeat of a DeepMind Control task."""
    return {"action_repeat": PAPER_TASKS[env_id].action_repeat} if env_id in PAPER_TASKS else {}


def paper_repeat_and_entropy(env_id: str) -> Mapping[str, Any]:
    """The paper's action repeat, and on every DeepMind Control task its initial temperature of 0.1 for α."""
    return {**paper_repeat(env_id), **({"ent_coef": "auto_0.1"} if env_id.startswith("dmc/") else {})}


def paper_task(env_id: str) -> Mapping[str, Any]:
    """All that the paper sets for a DeepMind Control task."""
    return PAPER_TASKS[env_id]._asdict() if env_id in PAPER_TASKS else {}


class Algorithm(NamedTuple):
    """An algorithm as users know it."""

    name: str
    policies: tuple[str, ...]
    """The names of policies it takes."""
    defaults: Config[Any]
    presets: Mapping[str, Mapping[str, Any]]
    """Settings of published code by name, where they differ from our defaults; `authors` are SUNRISE's."""
    fit: Fit
    """Settings, observation space and action space to a learner; wrong spaces are refused."""
    task: Callable[[str], Mapping[str, Any]] = no_preset
    """The settings of one environment, by its id, where they differ from the defaults."""


RAINBOW_TRAINING = TrainingSettings(
    buffer_size=100_000, learning_starts=1600, batch_size=32, n_step=20, prioritised=True
)
MLP_POLICIES = ("MlpPolicy", "MultiInputPolicy")
NO_TRAINING = TrainingSettings(learning_starts=NEVER, buffer_size=1000)
DMC = DMCSettings()
CNN_POLICIES = ("CnnPolicy",)
PIXEL_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=256)
DRQ_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=512)
ALGORITHMS: dict[str, Algorithm] = {
    "sac": Algorithm(
        "sac",
        MLP_POLICIES,
        Config(SACSettings(), DMC),
        SAC_PRESETS,
        fit_of("sac"),
        paper_repeat_and_entropy,
    ),
    "td3": Algorithm(
        "td3",
        MLP_POLICIES,
        Config(TD3Settings(), DMC),
        {"authors": AUTHORS_TD3},
        fit_of("td3"),
        paper_repeat,
    ),
    "discor": Algorithm(
        "discor",
        MLP_POLICIES,
        Config(DisCorSettings(), DMC),
        {"authors": AUTHORS_SAC},
        fit_of("discor"),
        paper_repeat_and_entropy,
    ),
    "rainbow": Algorithm(
        "rainbow",
        ("CnnPolicy", "MlpPolicy", "MultiInputPolicy"),
        Config(learner=RainbowSettings(), env=AtariSettings(), training=RAINBOW_TRAINING),
        {"authors": AUTHORS_RAINBOW},
        fit_of("rainbow"),
    ),
    "rad": Algorithm(
        "rad",
        CNN_POLICIES,
        Config(RADSettings(), DMCSettings(pixels=True), training=PIXEL_TRAINING),
        {},
        fit_of("rad"),
        paper_task,
    ),
    "drq": Algorithm(
        "drq",
        CNN_POLICIES,
        Config(DrQSettings(), DMCSettings(pixels=True, render_size=84), training=DRQ_TRAINING),
        {},
        fit_of("drq"),
        paper_repeat,
    ),
    "curl": Algorithm(
        "curl",
        CNN_POLICIES,
        Config(CURLSettings(), DMCSettings(pixels=True), training=PIXEL_TRAINING),
        {},
        fit_of("curl"),
        paper_task,
    ),
    "random": Algorithm(
        "random",
        MLP_POLICIES,
        Config(RandomSettings(), DMC, EnsembleSettings(ensemble_size=1), NO_TRAINING),
        {"authors": AUTHORS_EVALUATION},
        fit_of("random"),
        paper_repeat,
    ),
}


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name."""
    if name not in ALGORITHMS:
        raise SunriseError(f"there is no algorithm {name!r}.{near(name, ALGORITHMS)}")
    return ALGORITHMS[name]


def starting(name: str, env: "Given | None" = None, preset: str | None = None) -> Config[Any]:
    """The settings before the user's own: the algorithm's, the environment's, and those of the preset asked for.

    An environment that is made already has its options, and the settings say them.
    """
    known = algorithm(name)
    spec = None if isinstance(env, str) else getattr(env, "spec", None)
    env_id = env if isinstance(env, str) else spec.id if spec is not None else ""
    config = with_settings(known.defaults, {**known.task(env_id), **preset_of(name, preset, env_id)})
    if spec is not None and env_id.startswith(OPTIONS_FOR.get(type(config.env), "/")):
        from sunrise.envs.make import attribute

        own = flatten_config(type(config.env)())
        given = {name: value for name, value in spec.kwargs.items() if name in own}
        drawn = attribute(cast(Any, env), "renderer_name")
        config = with_settings(config, own | given | ({"renderer": drawn} if drawn else {}))
    return config


def preset_of(name: str, preset: str | None, env_id: str = "") -> Mapping[str, Any]:
    """The settings of a preset by its name; none, or `ours`, is no change."""
    presets = algorithm(name).presets
    if preset in (None, "ours"):
        return {}
    if preset == "authors" and preset not in presets:
        raise SunriseError(f"the authors published no code for {name}: there is no preset 'authors' for it.")
    if preset not in presets:
        known = ("ours", *presets)
        raise SunriseError(
            f"there is no preset {preset!r} for {name}, only {', '.join(known)}.{near(preset, known, count=1)}"
        )
    return {**presets[preset], **of_task(preset, env_id)}
