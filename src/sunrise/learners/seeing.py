"""Observations taken apart before a learner sees them: pictures, numbers and choices, each in a form of its own."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from sunrise.networks.augmentation import PictureShape, Sight, is_picture, picture_shape
from sunrise.networks.observations import Seen, in_rows, taken
from sunrise.types import Batch, Learner, Observation

Look = Callable[[Observation], Observation]
"""Rows of observations as the environment gives them -> the same as a learner takes them."""


class Layout(NamedTuple):
    """The parts of an observation by name, and how each is seen; an observation in one part has the name ''."""

    pictures: dict[str, PictureShape]
    numbers: dict[str, gym.Space[Any]]
    choices: dict[str, gym.Space[Any]]

    @property
    def measured(self) -> int:
        """How many numbers there are; those can be normalised."""
        return sum(gym.spaces.flatdim(space) for space in self.numbers.values())

    @property
    def beside(self) -> int:
        """How many numbers and options there are beside the pictures."""
        return self.measured + sum(gym.spaces.flatdim(space) for space in self.choices.values())


def layout_of(space: gym.Space[Any], pictures: bool) -> Layout:
    """The parts of a space; without `pictures` they count as numbers."""
    found = Layout({}, {}, {})
    for name, part in (space.spaces if isinstance(space, gym.spaces.Dict) else {"": space}).items():
        if pictures and is_picture(part):
            found.pictures[name] = picture_shape(part, "")
        else:
            (found.numbers if isinstance(part, gym.spaces.Box) else found.choices)[name] = part
    return found


def as_they_are(picture: Array, shape: PictureShape) -> Array:
    """Rows of stacked frames [B, S, H, W, C]."""
    return picture.reshape(-1, *shape)


def take_apart(layout: Layout, form: Callable[[Array, PictureShape], Array] = as_they_are) -> Look:
    """What makes `Seen` of observations; `form` brings a picture into the form that a network takes."""

    def look(obs: Observation) -> Seen:
        parts = obs if isinstance(obs, Mapping) else {"": obs}
        numbers = [in_rows(parts[name]) for name in layout.numbers]
        choices = [taken(parts[name], space) for name, space in layout.choices.items()]
        return Seen(
            tuple(form(jnp.asarray(parts[name]), shape) for name, shape in layout.pictures.items()),
            jnp.concatenate(numbers, axis=1) if numbers else None,
            jnp.concatenate(choices, axis=1) if choices else None,
        )

    return look


def sight(layout: Layout) -> Sight:
    """What a learner is told of observations that are taken apart."""
    return Sight(tuple(layout.pictures.values()), layout.beside)


def seeing(inner: Learner, look: Look) -> Learner:
    """`inner`, to which observations come as `look` makes them; those of a batch once, before it is augmented."""

    def augment(batch: Batch, key: PRNGKeyArray) -> Batch:
        return inner.augment(batch._replace(obs=look(batch.obs), next_obs=look(batch.next_obs)), key)

    note = inner.observe
    return inner._replace(
        propose=lambda state, obs, key: inner.propose(state, look(obs), key),
        judge=lambda state, obs, action, key: inner.judge(state, look(obs), action, key),
        augment=augment,
        observe=None if note is None else lambda state, obs: note(state, look(obs)),
    )
