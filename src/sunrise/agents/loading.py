"""Agents made from files: from a saved model, or as a run that goes on."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from sunrise.agents import arguments, training
from sunrise.agents.environments import EnvArgument, trusted
from sunrise.config.check import check
from sunrise.config.settings import flatten_config, with_settings
from sunrise.config.tracking import TrackingSettings, for_own_team
from sunrise.envs.spaces import LARGEST, restore
from sunrise.envs.wrappers import trusted_wrappers
from sunrise.errors import SunriseError
from sunrise.store.reading import read_model, require_settings, settings_to_resume
from sunrise.store.tensors import load_tree

if TYPE_CHECKING:
    from sunrise.agents.agent import Agent

log = logging.getLogger("sunrise")
OF_A_RUN: dict[str, Any] = {"run_dir": "", "prefill": "", "shard_members": False, **flatten_config(TrackingSettings())}
"""Settings of the run in which a model was trained that are not the model's."""
A = TypeVar("A", bound="Agent")


def load(cls: type[A], file: BinaryIO, name: Path, env: EnvArgument | None, settings: Mapping[str, Any]) -> A:
    """The agents of an open file, which is called `name`; `settings` replace those they were saved with."""
    about = read_model(file, name, cls.algorithm)
    if (wrappers := about["settings"].pop("wrapper", ())) and "wrapper" not in settings:
        log.warning("%s was trained inside %s: give `wrapper`, or an environment in it.", name, ", ".join(wrappers))
    asked = about["settings"] | OF_A_RUN | settings
    if settings.get("buffer_size") == 1:  # as users of Stable-Baselines3 say that it is only to play
        asked["buffer_size"] = about["settings"]["buffer_size"]
    run = {name: asked.pop(name) for name in ("env_id", "total_timesteps") if name in asked}
    model = cls(about["policy"], None, **asked)
    model.config = check(with_settings(model.config, run))
    if about.get("learning_rate_schedule") and "learning_rate" not in settings:
        log.warning("%s was trained with a schedule of learning rates, which a file cannot hold: give it again.", name)
    model._timesteps = int(about["timesteps"])
    largest = max(LARGEST, file.seek(0, 2))
    observation_space, action_space = restore(about["observation_space"], largest), restore(about["action_space"])
    model._fit(observation_space, action_space, initial=False)
    model.live.restore(model.live.state()._replace(ensemble=load_tree(file, name, model.ensemble)))
    if env is not None:
        model.set_env(env)
    return model


def resume(
    cls: type[A],
    path: Path,
    config: Mapping[str, Any],
    env: EnvArgument | None = None,
    learning_rate: Any = None,
    trust_env: bool = False,
    others: Mapping[str, Any] | None = None,
) -> A:
    """A run whose beginning is known, ready to go on; `others` are settings that may change, where they are given."""
    if config["algo"] != cls.algo:
        raise SunriseError(f"{path} is a run of {config['algo']}, not of {cls.algo}.")
    require_settings(cls.algorithm, config["settings"], path)
    settings = settings_to_resume(path, config, learning_rate)
    settings |= {name: value for name, value in (others or {}).items() if value is not None}
    if not (others or {}).get("track"):
        settings = for_own_team(settings, path)
    run = {name: settings.pop(name) for name in ("env_id", "total_timesteps")}
    if env is None and not run["env_id"]:
        raise SunriseError(f"{path} was trained in an environment without an id: give `env`.")
    env = env if env is not None else trusted(run["env_id"], trust_env)
    if isinstance(env, str):
        trusted_wrappers(settings.get("wrapper", ()), trust_env)
    arguments.read(cls.algorithm, config["policy"], env, None, None, settings)  # refuses what does not suit it
    model = cls(config["policy"], None, **settings)
    model.config = check(with_settings(model.config, run))
    model.set_env(env)
    assert model.env is not None
    assert model.session is not None
    # Where there is a checkpoint, it must have what the settings ask for before memory is taken for it.
    spaces = model.env.single_observation_space, model.env.single_action_space
    model._fit(*spaces, initial=not model.session.has_checkpoints)
    model.session.resume(training.new_trainer(model), config, model.action_repeat)
    return model
