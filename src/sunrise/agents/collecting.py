"""A dataset of what a trained agent does: whole episodes, each with the seed that it began with."""

import shutil
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from sunrise.config.settings import flatten_config
from sunrise.envs.make import AnyEnv
from sunrise.errors import SunriseError
from sunrise.files.documents import finite
from sunrise.offline.dataset import place_of
from sunrise.randomness import episode_seed
from sunrise.version import __version__

if TYPE_CHECKING:
    from sunrise.agents.agent import Agent


class Length(NamedTuple):
    """How much is to be collected: so many episodes or so many timesteps."""

    episodes: int | None = None
    timesteps: int | None = None


def collect(model: "Agent", name: str, length: Length, deterministic: bool, seed: int | None = None) -> tuple[int, int]:
    """Write the dataset `name`; how many episodes and timesteps it has. Nothing is left of one that is not finished."""
    place = place_of(name)
    require_free(place, name)
    make = model.environments.make if model.environments else None
    if make is None:
        raise SunriseError("there is no way to make an environment like the one that was learned in.")
    env, seed = make(), model.config.run.seed if seed is None else seed
    dataset, ours, episodes, timesteps = None, False, 0, 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari asks for an author, a link to code and more
            for buffer in play(model, env, length, deterministic, seed):
                if dataset is None:
                    require_free(place, name)  # the first episode may have taken long
                    ours = True
                    dataset = begin(model, env, name, buffer, deterministic, seed)
                else:
                    dataset.update_dataset_from_buffer([buffer])
                episodes, timesteps = episodes + 1, timesteps + len(buffer)
    except BaseException:
        if ours:
            shutil.rmtree(place, ignore_errors=True)
        raise
    finally:
        env.close()
    return episodes, timesteps


def require_free(place: Path, name: str) -> None:
    """Refuse an id that is taken."""
    if place.exists():
        raise SunriseError(f"there is a dataset {name} already, in {place}: choose another id or version.")


def play(model: "Agent", env: AnyEnv, length: Length, deterministic: bool, seed: int) -> Iterator[Any]:
    """Episodes as Minari takes them. The last one of so many timesteps is cut there, which is a truncation."""
    from minari.data_collector import EpisodeBuffer

    most, left, episode = model.config.run.eval_max_steps, length.timesteps, 0
    while (left or 0) > 0 if length.episodes is None else episode < length.episodes:
        start = episode_seed(seed, "dataset", 0, episode)
        obs, _ = env.reset(seed=start)
        observations, actions, rewards, terminations, truncations = [jax.tree.map(np.array, obs)], [], [], [], []
        over = False
        while not over:
            action, _ = model.predict(obs, deterministic=deterministic)
            obs, reward, terminated, truncated, _ = env.step(action)
            observations.append(jax.tree.map(np.array, obs))
            actions.append(action)
            rewards.append(float(reward))
            cut = len(rewards) in (most, left)
            terminations.append(bool(terminated))
            truncations.append(bool(truncated or (cut and not terminated)))
            over = terminated or truncated or cut
        episode, left = episode + 1, None if left is None else left - len(rewards)
        yield EpisodeBuffer(
            seed=start,
            observations=jax.tree.map(lambda *leaves: np.stack(leaves), *observations),
            actions=np.stack(actions),
            rewards=rewards,
            terminations=terminations,
            truncations=truncations,
        )


def begin(model: "Agent", env: AnyEnv, name: str, first: Any, deterministic: bool, seed: int) -> Any:
    """A dataset with its first episode and with all that is known of where it comes from."""
    from minari import create_dataset_from_buffers

    settings, how = flatten_config(model.config), "noiseless" if deterministic else "exploring"
    size = model.config.ensemble.ensemble_size
    dataset = create_dataset_from_buffers(
        name,
        [first],
        env=env if is_written(env) else None,
        observation_space=env.observation_space,
        action_space=env.action_space,
        algorithm_name=model.algo,
        description=f"{model.algo} with {size} members on {model.config.run.env_id} after {model.num_timesteps:,} "
        f"timesteps, {how}; sunrise-rl {__version__}.",
        requirements=[f"{package}=={metadata.version(package)}" for package in ("gymnasium", "mujoco")],
        jpeg_encoding=False,
    )
    about = {"timesteps": model.num_timesteps, "deterministic": deterministic, "seed": seed, "settings": settings}
    dataset.storage.update_metadata({"sunrise": finite({"version": __version__, **about})})
    return dataset


def is_written(env: AnyEnv) -> bool:
    """Whether what an environment is can be written down."""
    try:
        return env.spec is not None and bool(env.spec.to_json())
    except (TypeError, ValueError):
        return False
