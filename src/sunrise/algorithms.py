"""The algorithms by name: each one's settings, and how its learner is built for an environment's spaces."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from sunrise.ensemble import EnsembleNumbers, EnsembleSettings, Sunrise, build
from sunrise.envs.dmc import PAPER_TASKS
from sunrise.envs.make import AnyEnv, AnyVectorEnv, check_continuous, check_discrete, check_observation_space
from sunrise.errors import SunriseError, near
from sunrise.learners.curl import CURLSettings, curl
from sunrise.learners.discor import DisCorSettings, discor
from sunrise.learners.drq import DrQSettings, drq
from sunrise.learners.pixel_sac import PixelNumbers, pixel_numbers
from sunrise.learners.rad import RADSettings, rad
from sunrise.learners.rainbow import RainbowSettings, rainbow, rainbow_numbers
from sunrise.learners.random import RandomSettings, random
from sunrise.learners.sac import SACSettings, sac, sac_numbers
from sunrise.learners.td3 import TD3Settings, td3, td3_numbers
from sunrise.pixels import PictureShape, is_stack, picture_shape
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore, PlainStore
from sunrise.replay.uniform import UniformReplay
from sunrise.settings import (
    OPTIONS_FOR,
    AtariSettings,
    Config,
    DMCSettings,
    TrainingSettings,
    flatten_config,
    with_settings,
)
from sunrise.types import Learner, Replay


class Parts(NamedTuple):
    """A learner fitted to an environment."""

    make_learner: Callable[[Any], Learner]
    numbers: Any
    action_shape: tuple[int, ...]
    """Shape and type of an action as the replay buffer keeps it."""
    action_dtype: np.dtype[Any]


def no_preset(env_id: str) -> Mapping[str, Any]:
    """Every task is played with the same settings."""
    return {}


def paper_repeat(env_id: str) -> Mapping[str, Any]:
    """The paper's action repeat of a DeepMind Control task."""
    return {"action_repeat": PAPER_TASKS[env_id].action_repeat} if env_id in PAPER_TASKS else {}


def paper_task(env_id: str) -> Mapping[str, Any]:
    """All that the paper sets for a DeepMind Control task."""
    return PAPER_TASKS[env_id]._asdict() if env_id in PAPER_TASKS else {}


class Algorithm(NamedTuple):
    """An algorithm as users know it."""

    name: str
    policies: tuple[str, ...]
    """The names of policies it takes."""
    defaults: Config[Any]
    authors: Mapping[str, Any]
    """The settings in which the authors' code differs from our defaults."""
    fit: Callable[[Config[Any], gym.Space[Any], gym.Space[Any]], Parts]
    """Settings, observation space and action space to a learner; wrong spaces are refused."""
    task: Callable[[str], Mapping[str, Any]] = no_preset
    """The settings of one environment, by its id, where they differ from the defaults."""


AUTHORS_EVALUATION = {"eval_freq": 1000, "eval_steps": 1000}
AUTHORS_SCHEDULE = {
    "train_freq": 1000,
    "gradient_steps": 1000,
    "warmup": "ensemble",
    "truncation": "terminal",
}
AUTHORS_SAC = {
    "init": "rlkit",
    "target_init": "random",
    "loss_normaliser": "mask",
    "weight_action": "fresh",
    "alpha_in_target": "after",
    **AUTHORS_SCHEDULE,
    **AUTHORS_EVALUATION,
}


def flat_size(space: gym.Space[Any]) -> int:
    """How many numbers an observation has."""
    check_observation_space(space)
    return int(gym.spaces.flatdim(space))


def refuse_pixels(config: Config[Any], algorithm: str) -> None:
    """These learners see states."""
    if getattr(config.env, "pixels", False):
        raise SunriseError(f"{algorithm} learns from states: for pixels=True use rad, drq or curl instead.")


def fit_sac(config: Config[SACSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
    """SAC for states and continuous actions."""
    check_continuous(action_space, "SAC")
    refuse_pixels(config, "SAC")
    obs_dim, action_dim = flat_size(observation_space), flat_size(action_space)
    settings = config.learner
    return Parts(
        make_learner=lambda numbers: sac(obs_dim, action_dim, settings, numbers),
        numbers=sac_numbers(settings, action_dim),
        action_shape=(action_dim,),
        action_dtype=np.dtype(np.float32),
    )


def fit_td3(config: Config[TD3Settings], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
    """TD3 for states and continuous actions."""
    check_continuous(action_space, "TD3")
    refuse_pixels(config, "TD3")
    obs_dim, action_dim = flat_size(observation_space), flat_size(action_space)
    return Parts(
        make_learner=lambda numbers: td3(obs_dim, action_dim, config.learner, numbers),
        numbers=td3_numbers(config.learner),
        action_shape=(action_dim,),
        action_dtype=np.dtype(np.float32),
    )


def fit_discor(
    config: Config[DisCorSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Parts:
    """DisCor around SAC."""
    check_continuous(action_space, "DisCor")
    refuse_pixels(config, "DisCor")
    obs_dim, action_dim = flat_size(observation_space), flat_size(action_space)
    settings = config.learner

    def make_learner(numbers: Any) -> Learner:
        inner = sac(obs_dim, action_dim, settings.sac, numbers)
        return discor(inner, obs_dim, action_dim, settings, numbers)

    return Parts(make_learner, sac_numbers(settings.sac, action_dim), (action_dim,), np.dtype(np.float32))


def fit_random(
    config: Config[RandomSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Parts:
    """Uniform random actions."""
    check_continuous(action_space, "The random agent")
    refuse_pixels(config, "The random agent")
    flat_size(observation_space)
    action_dim = flat_size(action_space)
    return Parts(lambda numbers: random(action_dim, numbers), (), (action_dim,), np.dtype(np.float32))


def fit_rainbow(
    config: Config[RainbowSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Parts:
    """Rainbow for frames or states and a finite set of actions."""
    actions = check_discrete(action_space, "Rainbow")
    check_observation_space(observation_space)
    return Parts(
        make_learner=lambda numbers: rainbow(observation_space, actions, config.learner, numbers),
        numbers=rainbow_numbers(config.learner),
        action_shape=(),
        action_dtype=np.dtype(np.int32),
    )


def fit_pixels(
    name: str, make: Callable[[PictureShape, int, Any, PixelNumbers], Learner]
) -> Callable[[Config[Any], gym.Space[Any], gym.Space[Any]], Parts]:
    """How a learner of pictures is fitted to spaces."""

    def fit(config: Config[Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
        if not config.env.pixels:
            raise SunriseError(f"{name} learns from pictures: for pixels=False use sac, td3 or discor instead.")
        shape = picture_shape(observation_space, name)
        check_continuous(action_space, name)
        action_dim, settings = flat_size(action_space), config.learner
        numbers = pixel_numbers(settings.pixel, action_dim)
        make(shape, action_dim, settings, numbers)  # sizes that do not fit are refused now
        return Parts(
            make_learner=lambda numbers: make(shape, action_dim, settings, numbers),
            numbers=numbers,
            action_shape=(action_dim,),
            action_dtype=np.dtype(np.float32),
        )

    return fit


RAINBOW_TRAINING = TrainingSettings(
    buffer_size=100_000, learning_starts=1600, batch_size=32, n_step=20, prioritised=True
)
AUTHORS_RAINBOW = {
    "max_grad_norm": 0.0,
    "importance_horizon": 500_000,
    "buffer_size": 500_000,
    "warmup": "ensemble",
    "truncation": "terminal",
    "empty_masks": "kept",
    "eval_epsilon": 0.001,
}
AUTHORS_TD3 = {**AUTHORS_SCHEDULE, **AUTHORS_EVALUATION}
MLP_POLICIES = ("MlpPolicy", "MultiInputPolicy")
NEVER = TrainingSettings(learning_starts=2**62, buffer_size=1000)
DMC = DMCSettings()
CNN_POLICIES = ("CnnPolicy",)
PIXEL_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=256)
DRQ_TRAINING = TrainingSettings(buffer_size=100_000, learning_starts=1000, batch_size=512)
PIXEL_ENSEMBLE = EnsembleSettings(weight_temperature=10.0)
"""The paper chose T from 10 and 100 on DeepMind Control."""
NO_AUTHORS: dict[str, Any] = {}
"""The authors published no code for pictures."""

ALGORITHMS: dict[str, Algorithm] = {
    "sac": Algorithm("sac", MLP_POLICIES, Config(SACSettings(), DMC), AUTHORS_SAC, fit_sac, paper_repeat),
    "td3": Algorithm("td3", MLP_POLICIES, Config(TD3Settings(), DMC), AUTHORS_TD3, fit_td3, paper_repeat),
    "discor": Algorithm("discor", MLP_POLICIES, Config(DisCorSettings(), DMC), AUTHORS_SAC, fit_discor, paper_repeat),
    "rainbow": Algorithm(
        "rainbow",
        ("CnnPolicy", "MlpPolicy", "MultiInputPolicy"),
        Config(learner=RainbowSettings(), env=AtariSettings(), training=RAINBOW_TRAINING),
        AUTHORS_RAINBOW,
        fit_rainbow,
    ),
    "rad": Algorithm(
        "rad",
        CNN_POLICIES,
        Config(RADSettings(), DMCSettings(pixels=True), PIXEL_ENSEMBLE, PIXEL_TRAINING),
        NO_AUTHORS,
        fit_pixels("RAD", rad),
        paper_task,
    ),
    "drq": Algorithm(
        "drq",
        CNN_POLICIES,
        Config(DrQSettings(), DMCSettings(pixels=True, render_size=84), PIXEL_ENSEMBLE, DRQ_TRAINING),
        NO_AUTHORS,
        fit_pixels("DrQ", drq),
        paper_repeat,
    ),
    "curl": Algorithm(
        "curl",
        CNN_POLICIES,
        Config(CURLSettings(), DMCSettings(pixels=True), PIXEL_ENSEMBLE, PIXEL_TRAINING),
        NO_AUTHORS,
        fit_pixels("CURL", curl),
        paper_task,
    ),
    "random": Algorithm(
        "random",
        MLP_POLICIES,
        Config(RandomSettings(), DMC, EnsembleSettings(ensemble_size=1), NEVER),
        AUTHORS_EVALUATION,
        fit_random,
        paper_repeat,
    ),
}


def make_replay(
    config: Config[Any], space: gym.Space[Any], parts: Parts, envs: int, rng: np.random.Generator
) -> Replay:
    """The replay buffer that the settings and the observations ask for: frames are kept once each."""
    training, members = config.training, config.ensemble.ensemble_size
    frames = is_stack(space)
    if not frames and training.n_step == 1 and not training.prioritised:
        return UniformReplay(training.buffer_size, space, parts.action_shape, parts.action_dtype, members, rng)
    return SequenceReplay(
        (FrameStore if frames else PlainStore)(space, training.buffer_size, envs),
        parts.action_shape,
        parts.action_dtype,
        members,
        rng,
        training.gamma,
        training.n_step,
        training.prioritised,
        training.priority_exponent,
        training.importance_start,
        importance_from=training.learning_starts,
        importance_until=max(training.importance_horizon or config.run.total_timesteps, training.learning_starts + 1),
    )


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name."""
    if name not in ALGORITHMS:
        raise SunriseError(f"there is no algorithm {name!r}.{near(name, ALGORITHMS)}")
    return ALGORITHMS[name]


def starting(name: str, env: str | AnyEnv | AnyVectorEnv | None = None, preset: str | None = None) -> Config[Any]:
    """The settings before the user's own: the algorithm's, the environment's, and the authors' if they are asked for.

    An environment that is made already has its options, and the settings say them.
    """
    known = algorithm(name)
    spec = env.spec if isinstance(env, gym.Env) else None
    env_id = env if isinstance(env, str) else spec.id if spec is not None else ""
    config = with_settings(known.defaults, known.task(env_id))
    if spec is not None and env_id.startswith(OPTIONS_FOR.get(type(config.env), "/")):
        own = flatten_config(type(config.env)())
        config = with_settings(config, own | {k: v for k, v in spec.kwargs.items() if k in own})
    return with_settings(config, known.authors) if preset == "authors" else config


def ensemble_of(parts: Parts, config: Config[Any]) -> tuple[Sunrise, Any]:
    """The compiled functions of an ensemble, and the numbers they take."""
    own = EnsembleNumbers(config.ensemble.weight_temperature, config.ensemble.ucb_lambda)
    numbers = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), (own, parts.numbers))
    return build(parts.make_learner, config.ensemble), numbers
