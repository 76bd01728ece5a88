"""From an experiment to a list of runs with an estimate of their time; then one after another, keeping what is done."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from sunrise.agents import AGENTS, Agent, resume_run
from sunrise.algorithms import algorithm, authors_of, starting
from sunrise.bench import sgemm_peak
from sunrise.console import console, say
from sunrise.envs.atari import AtariGame
from sunrise.envs.make import make_env
from sunrise.errors import SunriseError, near
from sunrise.experiments.outcome import is_atari, write_outcome
from sunrise.experiments.paper import EXPERIMENTS, Arm, Experiment, Scale
from sunrise.fitting import ensemble_of
from sunrise.flops import matmul_flops
from sunrise.record import RunFolder
from sunrise.replay.uniform import stored_dtype
from sunrise.settings import (
    Config,
    Length,
    begun,
    check,
    env_options,
    flatten_config,
    from_pixels,
    resolved,
    with_settings,
)
from sunrise.types import Batch, Sample

COMPILE_SECONDS, STEP_SECONDS, EVAL_STEP_SECONDS, PICTURE_SECONDS = 20.0, 1.5e-3, 1.2e-3, 2e-2
WHOSE = {"ours": "our default", "authors": "the authors'"}
AS_PLANNED = Length()
NO_INFLUENCE = {"run_dir", "save_freq", "keep", "keep_replay", "log_freq"}
"""Settings that a result does not depend on."""
OF_PEAK = 0.45
"""Share of the matrix product's peak that an update reaches; all five are for the estimate alone."""


class Run(NamedTuple):
    """One training of one arm on one environment with one seed."""

    arm: Arm
    env: str
    seed: int
    settings: dict[str, Any]
    folder: Path

    @property
    def done(self) -> bool:
        """Whether it is finished; one that was run with other settings is not to be taken for this one."""
        status = RunFolder(self.folder).read_status().get("status", "begun")
        for name, (ran, asked) in self.changed.items() if self.begun else ():
            raise SunriseError(
                f"{self.folder} is a {status} run with {name} = {ran}, not {asked}: choose another --out, or remove it."
            )
        return bool(status == "finished")

    @property
    def begun(self) -> bool:
        """Whether there is a run, finished or not."""
        return (self.folder / "config.json").exists()

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Settings that the run in the folder has otherwise: what they were, and what they are."""
        ran = RunFolder(self.folder).config()["settings"]
        asked = json.loads(json.dumps(flatten_config(configured(self))))
        names = (asked.keys() & ran.keys()) - NO_INFLUENCE
        return {name: (ran[name], asked[name]) for name in sorted(names) if ran[name] != asked[name]}


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
            repeat = repeat_of(starting(arm.algo, env), env)
            own = in_timesteps(scale, repeat)
            total = length.in_timesteps(repeat) or own.timesteps
            for seed in range(1, scale.seeds + 1):
                settings = {"total_timesteps": total, **arm_settings(arm, own, preset), "seed": seed, **changes}
                where = f"{env}__{arm.name}__{seed}".replace("/", "-").replace(" ", "_").replace(",", "")
                folder = out / "runs" / where
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
        authors = authors_of(arm.algo)
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
    return begun(resolved(check(with_settings(starting(run.arm.algo, run.env), run.settings))))


def repeat_of(config: Config[Any], env: str) -> int:
    """Simulator steps in a timestep of an environment that is not made yet."""
    if env.startswith("ALE/"):
        return AtariGame.action_repeat
    return int(env_options(config.env, env).get("action_repeat", 1))


def estimate(runs: Sequence[Run]) -> list[float]:
    """Seconds each run may take on this machine, from its matrix products and this machine's peak."""
    peak = sgemm_peak() * 1e9
    known: dict[Any, float] = {}
    seconds = []
    for run in runs:
        kind = (run.arm.name, run.env)
        if kind not in known:
            known[kind] = _seconds(configured(run), run.arm.algo, peak)
        seconds.append(0.0 if run.done else known[kind])
    return seconds


def _seconds(config: Config[Any], algo: str, peak: float) -> float:
    env = make_env(config.run.env_id, **env_options(config.env, config.run.env_id))
    parts = algorithm(algo).fit(config, env.observation_space, env.action_space)
    env.close()
    functions, numbers = ensemble_of(parts, config)
    state, tally = jax.eval_shape(functions.init, jax.random.key(0), numbers)
    rows, members = config.training.batch_size, config.ensemble.ensemble_size

    def array(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]

    assert env.observation_space.shape is not None
    obs = array((rows, *env.observation_space.shape), stored_dtype(np.dtype(env.observation_space.dtype)))
    batch = Batch(obs, array((rows, *parts.action_shape), parts.action_dtype), array((rows,)), array((rows,)), obs)
    sample = Sample(batch, array((rows, members), bool), array((rows,)))
    flops = matmul_flops(functions.update, state, tally, sample, jax.random.key(0), numbers)
    steps, training, run = config.run.total_timesteps, config.training, config.run
    updates = max(steps - training.learning_starts, 0) * training.gradient_steps / training.train_freq
    evaluations = steps // run.eval_freq if run.eval_freq else 0
    evaluated = evaluations * 1000 / repeat_of(config, run.env_id) * run.eval_episodes
    evaluating = evaluated * EVAL_STEP_SECONDS / 2
    if from_pixels(config):
        seen = steps + evaluated
        evaluating += seen * PICTURE_SECONDS
    return COMPILE_SECONDS + updates * flops / (OF_PEAK * peak) + steps * STEP_SECONDS + evaluating


def execute(runs: Sequence[Run]) -> list[str]:
    """Run what is not finished, one after another; what failed is reported and does not stop the others."""
    failed = []
    for number, run in enumerate(runs, 1):
        label = f"[{number}/{len(runs)}] {run.arm.name} on {run.env}, seed {run.seed}"
        if run.done:
            say(f"{label}: finished before, kept")
            continue
        say(f"{label}: {run.folder}")
        try:
            model = agent_of(run)
            left = run.settings["total_timesteps"] - model.num_timesteps
            model.learn(left, log_interval=None, reset_num_timesteps=False, progress_bar=console.is_terminal)
        except SunriseError as error:
            say(f"{label}: FAILED: {error}")
            failed.append(label)
        except KeyboardInterrupt:
            say("\nStopped. The same command goes on with what is not finished.")
            raise
    return failed


def agent_of(run: Run) -> Agent:
    """The agent of a run: where it was stopped, or new."""
    if run.begun:
        return resume_run(run.folder)
    settings = {k: v for k, v in run.settings.items() if k not in ("env_id", "total_timesteps")}
    return AGENTS[run.arm.algo](algorithm(run.arm.algo).policies[0], run.env, **settings)


def results(runs: Sequence[Run], unfinished: bool = False) -> list[dict[str, Any]]:
    """One row an evaluation of every finished run, or also of those that are not."""
    return [
        {"env": run.env, "arm": run.arm.name, "seed": run.seed, **row}
        for run in runs
        if run.done or unfinished
        for row in RunFolder(run.folder).read_eval()
    ]


def reproduce_experiment(
    name: str,
    scale_name: str,
    seeds: int | None,
    envs: Sequence[str],
    preset: str,
    length: Length,
    changes: Mapping[str, Any],
    out: Path,
    dry_run: bool,
) -> None:
    """Show the list and the estimate, run, and write the outcome."""
    experiment, scale = choose(name, scale_name, seeds, envs)
    if "renderer" in changes and not any(from_pixels(algorithm(arm.algo).defaults) for arm in experiment.arms):
        raise SunriseError(f"{name} is not from pixels: it takes no --renderer.")
    runs = expand(experiment, scale, out, preset, changes, length)
    seconds = estimate(runs)
    columns = "arm", "environment", "seed", "timesteps", "simulator steps", "members", "minutes"
    table = Table(*columns, title=f"{name}: {experiment.title}")
    for run, time in zip(runs, seconds, strict=True):
        config = configured(run)
        members, steps = config.ensemble.ensemble_size, config.run.total_timesteps
        cost = "done" if run.done else f"{time / 60:.1f}"
        simulated = f"{steps * repeat_of(config, run.env):,}"
        table.add_row(run.arm.name, run.env, str(run.seed), f"{steps:,}", simulated, str(members), cost)
    screen = Console(highlight=False)
    screen.print(table)
    screen.print(f"{len(runs)} runs, about {_hours(sum(seconds))} on this machine (an estimate).")
    if dry_run:
        return
    failed = execute(runs)
    rows = results(runs)
    if rows:
        write_outcome(experiment, scale, rows, out, protocol(experiment, scale, runs, rows, scale_name, preset))
    if failed:
        raise SunriseError(f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed)}.")


def protocol(
    experiment: Experiment, scale: Scale, runs: Sequence[Run], rows: Sequence[dict[str, Any]], name: str, preset: str
) -> str:
    """What was run, in one paragraph."""
    run = configured(runs[0]).run
    steps = f"{int(max(row['timesteps'] for row in rows)):,} timesteps"
    if scale.simulator_steps:
        most: dict[int, int] = {}
        for row in rows:
            repeat = round(row["env_steps"] / row["timesteps"])
            most[repeat] = max(most.get(repeat, 0), int(row["timesteps"]))
        counts = (f"{count:,} timesteps where an action lasts {repeat}" for repeat, count in sorted(most.items()))
        steps = f"{int(max(row['env_steps'] for row in rows)):,} simulator steps ({', '.join(counts)})"
    plural = "s" * (scale.seeds > 1)
    evaluation = f"{run.eval_episodes} evaluation episodes"
    if run.eval_steps:
        evaluation = f"the complete episodes of {run.eval_steps:,} evaluation steps"
    text = (
        f"{experiment.title}. Ours: {steps}, {scale.seeds} seed{plural}, {evaluation} of the noiseless "
        f"ensemble, {WHOSE[preset]} settings; "
        "± is the standard deviation over seeds. "
    )
    if name == "quick":
        text += "Quick scale: fewer tasks, smaller networks, few steps. It shows the mechanism, not the result. "
    first = configured(runs[0])
    if from_pixels(first):
        size, crop = first.env.render_size, first.learner.crop_size
        members = max(configured(run).ensemble.ensemble_size for run in runs)
        text += (
            f"Pictures of {size} x {size} drawn by {first.env.renderer}, crops of {crop} x {crop}, batches of "
            f"{first.training.batch_size}, SUNRISE with {members} members. "
        )
    if experiment.published:
        text += f"Paper: {experiment.published_as}. "
    if is_atari(scale):
        text += "Human-normalised: 0 is the paper's random agent, 1 its human, from the last evaluation. "
    return text + experiment.note


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"
