"""From an experiment at a scale to its runs, each with every setting."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sunrise.config.algorithms import Algorithm, algorithm
from sunrise.config.groups import Config, env_options
from sunrise.config.length import Length
from sunrise.config.own import own_algorithm
from sunrise.config.resolve import as_begun, defaults_for, preset_settings, resolve
from sunrise.config.settings import flatten_config
from sunrise.config.tasks import ATARI_FRAMES
from sunrise.config.tracking import TRACKING
from sunrise.errors import SunriseError, near
from sunrise.experiments.paper import EXPERIMENTS, Arm, Experiment, Scale
from sunrise.store.run_folder import CHANGEABLE, RunFolder

AS_PLANNED = Length()
NO_INFLUENCE = {"run_dir", "save_freq", "keep", "keep_replay", "log_freq", *TRACKING}
"""Settings that a result does not depend on."""
CODE: Mapping[str, Any] = MappingProxyType({"env_id": "", "wrapper": []})
"""Settings that name code, and what they are where a folder does not say."""


class Run(NamedTuple):
    """One training of one arm on one environment with one seed."""

    arm: Arm
    env: str
    seed: int
    settings: dict[str, Any]
    folder: Path
    labels: Mapping[str, Any] = MappingProxyType({})
    """What config.json says besides: how its settings were chosen."""

    @property
    def done(self) -> bool:
        """Whether it is finished as it is asked for; one that was run with other settings is refused by name."""
        if not self.begun:
            return False
        self.config()
        status = RunFolder(self.folder).read_status()
        return status.get("status") == "finished" and status["timesteps"] >= self.settings["total_timesteps"]

    def config(self) -> dict[str, Any]:
        """How the run in the folder was begun; one that was begun with other settings is refused by name.

        The folder may be a stranger's: what in it names code, the environment and its wrappers, is what was asked for.
        """
        from sunrise.store.reading import read_run

        config = read_run(self.folder)
        for name, (ran, asked) in self.differing(config).items():
            status = RunFolder(self.folder).read_status().get("status", "begun")
            raise SunriseError(
                f"{self.folder} is a {status} run with {name} = {ran}, not {asked}: choose another --out, or remove it."
            )
        return config

    @property
    def begun(self) -> bool:
        """Whether there is a run, finished or not."""
        return RunFolder(self.folder).holds_a_run

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Settings that the run in the folder has otherwise: what they were, and what they are."""
        from sunrise.store.reading import read_run

        return self.differing(read_run(self.folder))

    def differing(self, config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """The same of what a run's folder says. It may be asked to become longer where it can go on."""
        ran, asked = {**CODE, **config["settings"]}, json.loads(json.dumps(flatten_config(configured(self))))
        names = (asked.keys() & ran.keys()) - NO_INFLUENCE - {*CHANGEABLE[1:]}
        if self.settings.get("importance_horizon", 0) == 0:
            names.discard("importance_horizon")  # it is what the run was first asked for
        status = RunFolder(self.folder).read_status().get("status")
        longer = asked["total_timesteps"] > ran["total_timesteps"]
        if longer and (status != "finished" or ran.get("keep_replay", True)):
            names.discard("total_timesteps")
        differ = {name: (ran[name], asked[name]) for name in sorted(names) if ran[name] != asked[name]}
        algo = algorithm_of(self.arm).name
        return differ | ({"algo": (config["algo"], algo)} if config["algo"] != algo else {})


def algorithm_of(arm: Arm) -> Algorithm:
    """An arm's algorithm: one of ours, or one of the user's own as `module:NAME`, which is imported."""
    return own_algorithm(arm.algo) if ":" in arm.algo else algorithm(arm.algo)


def run_folder(env: str, arm: str, seed: int) -> str:
    """The name of a run's folder."""
    return f"{env}__{arm}__{seed}".replace("/", "-").replace(" ", "_")


def choose(name: str, scale: str, seeds: int | None, envs: Sequence[str]) -> tuple[Experiment, Scale]:
    """An experiment at a scale, with what the user changed."""
    if name not in EXPERIMENTS:
        raise SunriseError(f"there is no experiment {name!r}.{near(name, EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    chosen = experiment.paper if scale == "paper" else experiment.quick
    if seeds is not None:
        if seeds < 1:
            raise SunriseError(f"seeds is {seeds}, but must be at least 1.")
        chosen = dataclasses.replace(chosen, seeds=seeds)
    if envs:
        for env in envs:
            if env not in experiment.paper.envs:
                raise SunriseError(f"{name} has no environment {env!r}.{near(env, experiment.paper.envs)}")
        chosen = dataclasses.replace(chosen, envs=tuple(envs))
    return experiment, chosen


def expand(
    experiment: Experiment,
    scale: Scale,
    out: Path,
    preset: str,
    changes: Mapping[str, Any],
    length: Length = AS_PLANNED,
) -> list[Run]:
    """Every run of an experiment at a scale; `changes` and `length` are the user's own."""
    runs = []
    for env in scale.envs:
        for arm in experiment.arms:
            repeat = repeat_of(defaults_for(algorithm(arm.algo), env), env)
            own = in_timesteps(scale, repeat)
            total = length.in_timesteps(repeat) or own.timesteps
            for seed in range(1, scale.seeds + 1):
                settings = {"total_timesteps": total, **arm_settings(arm, own, preset), "seed": seed, **changes}
                folder = out / "runs" / run_folder(env, arm.name.replace(",", ""), seed)
                runs.append(Run(arm, env, seed, settings | {"env_id": env, "run_dir": str(folder)}, folder))
    return runs


def in_timesteps(scale: Scale, repeat: int) -> Scale:
    """A scale whose counts are timesteps of a task with this action repeat."""
    if not scale.simulator_steps:
        return scale
    return dataclasses.replace(scale, timesteps=scale.timesteps // repeat, eval_freq=scale.eval_freq // repeat)


def arm_settings(arm: Arm, scale: Scale, preset: str) -> dict[str, Any]:
    """The settings of an arm at a scale, with smaller networks where the scale says so."""
    known = algorithm(arm.algo)
    settings = {
        "eval_freq": scale.eval_freq,
        "eval_episodes": scale.eval_episodes,
        "keep": 1,
        "keep_replay": False,
        **scale.settings,
    }
    if preset == "authors":
        authors = preset_settings(known, preset)
        settings |= dict(authors)
        settings |= {"gradient_steps": authors.get("gradient_steps", 1) * arm.settings.get("gradient_steps", 1)}
        settings |= {name: value for name, value in arm.settings.items() if name != "gradient_steps"}
    else:
        settings |= dict(arm.settings)
    widths = settings.get("net_arch", flatten_config(known.defaults).get("net_arch", ()))
    if scale.smaller and widths:
        settings["net_arch"] = tuple(scale.smaller.get(width, width) for width in widths)
    return settings


def configured(run: Run) -> Config[Any]:
    """Every setting of a run."""
    return as_begun(resolve(algorithm_of(run.arm), run.settings, run.env))


def repeat_of(config: Config[Any], env: str) -> int:
    """Simulator steps in a timestep of an environment that is not made yet."""
    if env.startswith("ALE/"):
        return ATARI_FRAMES
    return int(env_options(config.env, env).get("action_repeat", 1))
