"""How long runs may take on this machine, from the matrix products of an update and the machine's peak."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from sunrise.algorithms import algorithm
from sunrise.bench import sgemm_peak
from sunrise.envs.make import make_env
from sunrise.experiments.runs import Run, configured, repeat_of
from sunrise.fitting import ensemble_of
from sunrise.flops import matmul_flops
from sunrise.replay.uniform import stored_dtype
from sunrise.settings import Config, env_options, from_pixels
from sunrise.types import Batch, Sample

COMPILE_SECONDS, STEP_SECONDS, EVAL_STEP_SECONDS, PICTURE_SECONDS = 20.0, 1.5e-3, 1.2e-3, 2e-2
OF_PEAK = 0.45
"""Share of the matrix product's peak that an update reaches."""


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
