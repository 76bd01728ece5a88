"""Observations in parts, as networks see them: pictures through encoders, numbers and choices beside them."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from sunrise.types import Observation


class Seen(eqx.Module):
    """Observations in parts, all with the same axes in front: rows, or views and rows."""

    pictures: tuple[Shaped[Array, "..."], ...]
    numbers: Float[Array, "... D"] | None
    """All that is measured, in one vector; None where nothing is."""
    choices: Float[Array, "... K"] | None
    """Ones and zeros for what is chosen from a finite set."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the first part; the first of them are those of every part."""
        shape: tuple[int, ...] = jax.tree.leaves(self)[0].shape
        return shape

    def __getitem__(self, index: Any) -> "Seen":
        """Some of the rows, or of the views, in every part."""
        part: Seen = jax.tree.map(lambda leaf: leaf[index], self)
        return part

    def with_pictures(self, pictures: Sequence[Array]) -> "Seen":
        """The same numbers and choices beside other pictures."""
        return Seen(tuple(pictures), self.numbers, self.choices)

    def beside(self, features: Sequence[Float[Array, "B _"]]) -> Float[Array, "B F"]:
        """What encoders made of the pictures, then the numbers and choices, in one row."""
        return jnp.concatenate(
            [*features, *(part for part in (self.numbers, self.choices) if part is not None)], axis=1
        )


def on_pictures(change: Callable[[Array], Array], obs: Observation) -> Observation:
    """Pictures changed, whether they are all there is or a part of it."""
    return obs.with_pictures([change(picture) for picture in obs.pictures]) if isinstance(obs, Seen) else change(obs)


def in_rows(obs: Observation) -> Float[Array, "B in"]:
    """One part of an observation as a row of numbers."""
    leaf = jnp.asarray(obs)
    return leaf.reshape(leaf.shape[0], -1).astype(jnp.result_type(float))


def options(space: gym.Space[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Of every option of a finite space: which of its components it belongs to, and the value that takes it."""
    if isinstance(space, gym.spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return np.arange(size), np.ones(size, int)
    assert isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
    counts = np.ravel(space.n if isinstance(space, gym.spaces.Discrete) else space.nvec)
    starts = np.broadcast_to(np.ravel(space.start), counts.shape)
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.concatenate([start + np.arange(n) for start, n in zip(starts, counts, strict=True)])


def taken(obs: Observation, space: gym.Space[Any]) -> Float[Array, "B K"]:
    """A one for each option that is taken and a zero for every other; a value that is no option takes none."""
    owner, value = options(space)
    chosen = jnp.asarray(obs)
    return (chosen.reshape(chosen.shape[0], -1)[:, owner] == value).astype(jnp.result_type(float))
