"""A replay buffer that begins with the transitions of a dataset. They are no timesteps: nobody acted."""

import logging
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Float

from sunrise.config.groups import Config
from sunrise.ensemble import bootstrap_mask
from sunrise.envs.answers import not_finite
from sunrise.envs.make import from_env
from sunrise.envs.spaces import check_same
from sunrise.errors import DamagedError, SunriseError
from sunrise.offline.dataset import Episode, open_dataset
from sunrise.randomness import generator
from sunrise.replay.uniform import UniformReplay, as_stored
from sunrise.types import Batch, Collected, Replay

log = logging.getLogger("sunrise")
BEYOND = 1e-3
"""How far an action may be outside of its bounds, which rounding explains, where they are -1 and 1."""


def prefill(
    replay: Replay,
    config: Config[Any],
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    envs: int,
) -> None:
    """Put the transitions of the dataset `config.training.prefill` into an empty replay buffer, the last that it holds.

    Each has a bootstrap mask drawn for it, as those that are collected have.
    """
    training, settings = config.training, config.ensemble
    if config.run.env_id.startswith("ALE/"):
        raise SunriseError(
            f"prefill is {training.prefill}, but in training {config.run.env_id} has clipped rewards and ends with a "
            "life, which a dataset of whole games does not: begin without it."
        )
    dataset = open_dataset(training.prefill)
    whose = f"the dataset {dataset.name}'s"
    check_same(observation_space, dataset.observation_space, "observations", whose)
    check_same(action_space, dataset.action_space, "actions", whose)
    total = sum(dataset.lengths)
    if not total:
        raise SunriseError(f"the dataset {dataset.name} has no transitions.")
    rng = generator(config.run.seed, "prefill")
    skip, first = max(total - training.buffer_size, 0), 0
    while skip >= dataset.lengths[first]:
        skip, first = skip - dataset.lengths[first], first + 1
    for number, episode in enumerate(dataset.episodes(first)):
        if not len(episode.rewards):
            continue
        where = f"{dataset.name}, episode {first + number}"
        batch, ended = transitions(episode, observation_space, action_space, where)
        ends = episode.terminations if training.truncation == "bootstrap" else ended
        noise = rng.normal(0, training.reward_noise, len(ended)) if training.reward_noise else 0.0
        batch = batch._replace(
            reward=(batch.reward + noise).astype(np.float32),
            discount=np.where(ends, 0, training.gamma).astype(np.float32),
        )
        ended[-1] = True  # whatever follows is another episode
        forced = settings.empty_masks == "forced"
        mask = bootstrap_mask(rng, len(ended), settings.ensemble_size, settings.bootstrap_prob, forced)
        start = skip if number == 0 else 0
        rows = slice(start, len(ended))
        # A ring of sequences takes one transition of an environment at a time; episodes go to the environments in turn.
        parts = [rows] if isinstance(replay, UniformReplay) else [slice(t, t + 1) for t in range(start, len(ended))]
        for part in parts:
            env = np.full(len(ended[part]), number % envs)
            replay.add(Collected(jax.tree.map(lambda x, p=part: x[p], batch), env, ended[part], []), mask[part])
    kept = f" (the last of {total:,}: buffer_size is {training.buffer_size:,})" if total > len(replay) else ""
    log.info("Replay begins with %s transitions of %s%s.", f"{len(replay):,}", dataset.name, kept)


def transitions(
    episode: Episode, observation_space: gym.Space[Any], action_space: gym.Space[Any], where: str
) -> tuple[Batch, np.ndarray]:
    """The transitions of an episode as replay keeps them, without their discount, and where it ended[T]."""
    steps = len(episode.rewards)
    obs = as_stored(episode.observations)
    boxes = observation_space.spaces if isinstance(observation_space, gym.spaces.Dict) else {"": observation_space}
    leaves = obs if isinstance(observation_space, gym.spaces.Dict) else {"": obs}
    shapes = {name: (steps + 1, *(box.shape or ())) for name, box in boxes.items()}
    if not isinstance(leaves, dict) or {name: leaf.shape for name, leaf in leaves.items()} != shapes:
        raise DamagedError(f"{where} has not an observation before and after each of its {steps} actions.")
    action, reward = np.asarray(episode.actions), np.asarray(episode.rewards, np.float32)
    flags = [np.array(flag, bool) for flag in (episode.terminations, episode.truncations)]
    if action.shape != (steps, *(action_space.shape or ())) or {x.shape for x in (reward, *flags)} != {(steps,)}:
        raise DamagedError(f"{where} has not an action, a reward and an end for each of its {steps} steps.")
    if any(not_finite(values).any() for values in (obs, action, reward)):
        raise DamagedError(f"{where} has a value that is not finite (NaN or infinite).")
    before, after = (jax.tree.map(lambda x, p=part: x[p], obs) for part in (slice(0, -1), slice(1, None)))
    stored = within_bounds(from_env(action, action_space), action_space, where)
    unknown: Float[np.ndarray, "T"] = np.zeros(steps, np.float32)
    return Batch(before, stored, reward, unknown, after), flags[0] | flags[1]


def within_bounds(action: np.ndarray, space: gym.Space[Any], where: str) -> np.ndarray:
    """Actions as replay keeps them, if the environment could have been given them."""
    low, high = (0, int(space.n) - 1) if isinstance(space, gym.spaces.Discrete) else (-1.0, 1.0)
    if action.min() < low - BEYOND or action.max() > high + BEYOND:
        raise DamagedError(f"{where} has an action outside of {space}.")
    return np.asarray(np.clip(action, low, high))
