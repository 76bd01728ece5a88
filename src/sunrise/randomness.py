"""Where every random number comes from: a named stream of the run's seed for each consumer."""

import zlib

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


def _stream(name: str) -> int:
    return zlib.crc32(name.encode())


def generator(seed: int, name: str) -> np.random.Generator:
    """The NumPy generator of one consumer."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_stream(name),)))


def root_key(seed: int, name: str) -> PRNGKeyArray:
    """The JAX key of one consumer; it is never split, only folded with a counter."""
    return jax.random.fold_in(jax.random.key(seed), _stream(name))


def episode_seed(seed: int, name: str, env: int, episode: int) -> int:
    """The seed an episode is reset with: the same for (run, environment, episode) in every process."""
    words = np.random.SeedSequence(seed, spawn_key=(_stream(name), env, episode)).generate_state(1)
    return int(words[0] >> 1)  # 31 bits: every simulator takes them
