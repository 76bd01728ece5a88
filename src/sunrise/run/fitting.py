"""A learner fitted to an environment's spaces; spaces that do not suit it are refused."""

import functools
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

from sunrise.config.algorithms import Fit
from sunrise.config.groups import Config, from_pixels
from sunrise.config.learners import DisCorSettings, DQNSettings, RainbowSettings
from sunrise.config.settings import flatten_config
from sunrise.envs.make import check_continuous, check_discrete, check_observation_space
from sunrise.errors import SunriseError
from sunrise.learners.curl import curl
from sunrise.learners.discor import discor
from sunrise.learners.drq import drq
from sunrise.learners.normalised import normalised
from sunrise.learners.pixel_sac import PixelNumbers, pixel_numbers
from sunrise.learners.rad import rad
from sunrise.learners.rainbow import Plain, rainbow, rainbow_numbers
from sunrise.learners.random import random
from sunrise.learners.sac import SACNumbers, sac, sac_numbers
from sunrise.learners.seeing import Layout, Look, layout_of, seeing, sight, take_apart
from sunrise.learners.td3 import td3, td3_numbers
from sunrise.networks.augmentation import PictureShape, Sight, picture_shape
from sunrise.networks.rainbow_pictures import as_channels, channels_shape
from sunrise.types import Learner


class Parts(NamedTuple):
    """A learner fitted to an environment."""

    make_learner: Callable[[Any], Learner]
    numbers: Any
    action_shape: tuple[int, ...]
    """Shape and type of an action as the replay buffer keeps it."""
    action_dtype: np.dtype[Any]
    random_actions: Callable[[float], float] | None = None
    """The part of the training that is done -> the chance of a random action, where there is one."""
    pictures: tuple[str, ...] = ()
    """The parts of a Dict of observations that are pictures, whose frames the replay buffer keeps once each."""


def flat_size(space: gym.Space[Any]) -> int:
    """How many numbers an observation or an action has."""
    check_observation_space(space)
    return int(gym.spaces.flatdim(space))


def dressed(config: Config[Any], layout: Layout, look: Look | None) -> Callable[[Learner], Learner]:
    """What stands between a learner and observations of a layout: a look at their parts, and statistics if wanted."""
    noted = flatten_config(config.learner).get("normalise_observations", False)
    if noted and not layout.measured:
        raise SunriseError("normalise_observations is for numbers, but there are none in these observations.")

    def dress(learner: Learner) -> Learner:
        learner = normalised(learner, layout.measured) if noted else learner
        return seeing(learner, look) if look else learner

    return dress


@cache
def record_of(names: tuple[str, ...]) -> Any:
    """A class of records with these fields, the same one whenever it is asked for."""
    return namedtuple("Numbers", names)


def numbers_in(settings: Any, action_dim: int) -> Any:
    """Every setting that is a float, by its name: the numbers of a learner that does not pick them itself."""
    found = {name: value for name, value in flatten_config(settings).items() if isinstance(value, float)}
    return record_of(tuple(found))(**found)


def for_states(
    name: str, make: Callable[[int, int, Any, Any], Learner], numbers_of: Callable[[Any, int], Any] = numbers_in
) -> Fit:
    """How a learner of states and continuous actions is fitted to an environment; `name` is for messages.

    `make` takes the sizes of an observation and of an action, the settings and the numbers of them that the compiled
    functions take as arguments, so that changing one compiles nothing. `numbers_of` picks them from the settings and
    the size of an action; unless told otherwise, they are the settings that are floats.
    """

    def fit(config: Config[Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
        check_continuous(action_space, name)
        if from_pixels(config):
            raise SunriseError(f"{name} learns from states: for pixels=True use rad, drq or curl instead.")
        obs_dim, action_dim, settings = flat_size(observation_space), flat_size(action_space), config.learner
        layout = layout_of(observation_space, pictures=False)
        dress = dressed(config, layout, take_apart(layout) if layout.choices else None)
        return Parts(
            make_learner=lambda numbers: dress(make(obs_dim, action_dim, settings, numbers)),
            numbers=numbers_of(settings, action_dim),
            action_shape=(action_dim,),
            action_dtype=np.dtype(np.float32),
        )

    return fit


def for_pictures(name: str, make: Callable[[PictureShape | Sight, int, Any, PixelNumbers], Learner]) -> Fit:
    """For a learner of pictures, alone or in a Dict with other observations, and continuous actions."""

    def fit(config: Config[Any], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
        if not from_pixels(config):
            raise SunriseError(f"{name} learns from pictures: for pixels=False use sac, td3 or discor instead.")
        check_observation_space(observation_space)
        layout = layout_of(observation_space, pictures=True)
        in_parts = bool(layout.pictures) and isinstance(observation_space, gym.spaces.Dict)
        shape = sight(layout) if in_parts else picture_shape(observation_space, name)
        dress = dressed(config, layout, take_apart(layout) if in_parts else None)
        check_continuous(action_space, name)
        action_dim, settings = flat_size(action_space), config.learner
        numbers = pixel_numbers(settings.pixel, action_dim)
        make(shape, action_dim, settings, numbers)  # sizes that do not fit are refused now
        return Parts(
            make_learner=lambda numbers: dress(make(shape, action_dim, settings, numbers)),
            numbers=numbers,
            action_shape=(action_dim,),
            action_dtype=np.dtype(np.float32),
            pictures=tuple(layout.pictures) if in_parts else (),
        )

    return fit


def for_choices(
    config: Config[RainbowSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> Parts:
    """Rainbow: for frames of any layout, states, or a Dict of both, and a finite set of actions."""
    actions = check_discrete(action_space, "Rainbow")
    check_observation_space(observation_space)
    layout = layout_of(observation_space, pictures=True)
    seen, look = choosers_sight(observation_space, layout)
    dress = dressed(config, layout, look)
    training = config.training
    steps = training.learning_starts // (training.train_freq * config.run.num_envs)
    before = training.learning_starts if training.gradient_steps < 0 else steps * training.gradient_steps
    return Parts(
        make_learner=lambda numbers: dress(rainbow(seen, actions, config.learner, numbers, before)),
        numbers=rainbow_numbers(config.learner),
        action_shape=(),
        action_dtype=np.dtype(np.int32),
        pictures=tuple(layout.pictures) if isinstance(seen, Sight) else (),
        random_actions=(lambda _done: config.learner.epsilon) if config.learner.epsilon else None,
    )


def for_dqn(config: Config[DQNSettings], observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> Parts:
    """DQN: Rainbow without its components, with random actions and a target network that moves by the timestep."""
    actions, settings = check_discrete(action_space, "DQN"), config.learner
    check_observation_space(observation_space)
    layout = layout_of(observation_space, pictures=True)
    seen, look = choosers_sight(observation_space, layout)
    dress = dressed(config, layout, look)
    bare = RainbowSettings(
        learning_rate=settings.learning_rate,
        adam_eps=settings.adam_eps,
        distributional=False,
        dueling=False,
        noisy=False,
        double=False,
        max_grad_norm=settings.max_grad_norm,
        net_arch=settings.net_arch if layout.pictures else settings.net_arch[1:],
    )
    plain = Plain(settings.net_arch[0], settings.tau, settings.target_update_interval)
    return Parts(
        make_learner=lambda numbers: dress(rainbow(seen, actions, bare, numbers, plain=plain)),
        numbers=rainbow_numbers(bare),
        action_shape=(),
        action_dtype=np.dtype(np.int32),
        pictures=tuple(layout.pictures) if isinstance(seen, Sight) else (),
        random_actions=functools.partial(random_chance, settings),
    )


def random_chance(settings: DQNSettings, done: float) -> float:
    """The part of the training that is done -> the chance of a random action, which falls in a straight line."""
    first, last, until = (getattr(settings, f"exploration_{n}") for n in ("initial_eps", "final_eps", "fraction"))
    return float(last if done >= until else first + done / until * (last - first))


def choosers_sight(space: gym.Space[Any], layout: Layout) -> tuple[gym.Space[Any] | Sight, Look | None]:
    """What Rainbow is told of observations, and what brings them into that form; None where they are in it."""
    if layout.pictures and isinstance(space, gym.spaces.Dict):
        pictures = tuple(channels_shape(shape) for shape in layout.pictures.values())
        return Sight(pictures, layout.beside), take_apart(layout, as_channels)
    if layout.pictures:
        shape = layout.pictures[""]
        wanted = channels_shape(shape)[:3]
        if wanted == space.shape:
            return space, None
        return gym.spaces.Box(0, 255, wanted, np.uint8), lambda obs: as_channels(jnp.asarray(obs), shape)
    if layout.choices:
        return gym.spaces.Box(-np.inf, np.inf, (flat_size(space),), np.float32), take_apart(layout)
    return space, None


def discor_on_sac(obs_dim: int, action_dim: int, settings: DisCorSettings, numbers: SACNumbers) -> Learner:
    """DisCor around SAC."""
    return discor(sac(obs_dim, action_dim, settings.sac, numbers), obs_dim, action_dim, settings, numbers)


FITS: dict[str, Fit] = {
    "sac": for_states("SAC", sac, sac_numbers),
    "td3": for_states("TD3", td3, td3_numbers),
    "discor": for_states("DisCor", discor_on_sac, lambda settings, action_dim: sac_numbers(settings.sac, action_dim)),
    "rainbow": for_choices,
    "dqn": for_dqn,
    "rad": for_pictures("RAD", rad),
    "drq": for_pictures("DrQ", drq),
    "curl": for_pictures("CURL", curl),
    "random": for_states("The random agent", random, lambda *_: ()),
}
"""Our own algorithms by name."""
