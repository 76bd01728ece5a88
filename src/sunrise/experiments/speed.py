"""`sunrise bench`: how fast this machine updates, acts and steps, with the limit of its matrix product beside it."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from sunrise.agents import SAC
from sunrise.compilation import use_cache
from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.console import console
from sunrise.ensemble import Ensemble, Report, Tally
from sunrise.envs.make import make_env
from sunrise.experiments.flops import matmul_flops
from sunrise.run.building import ensemble_of
from sunrise.types import Batch, Sample

OBS, ACTION, ROWS = 17, 6, 256
"""HalfCheetah's sizes and the paper's batch."""


def ready(result: Any) -> None:
    """Wait until every array of a result is there."""
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, jax.Array):
            leaf.block_until_ready()


def best_of(function: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest call: the machine's speed with the least of its noise."""
    ready(function())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        ready(function())
        times.append(time.perf_counter() - start)
    return min(times)


def sgemm_peak(repeats: int = 5) -> float:
    """GFLOP/s of the best of five 1024 x 1024 x 1024 matrix products in single precision."""
    matrix = jnp.asarray(np.random.default_rng(0).standard_normal((1024, 1024), np.float32))
    product = jax.jit(jnp.matmul)
    return 2 * 1024**3 / best_of(lambda: product(matrix, matrix), repeats) / 1e9


def random_sample(rng: np.random.Generator, members: int, obs: int = OBS, action: int = ACTION) -> Sample:
    """A minibatch of noise, of a real one's shapes."""

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    batch = Batch(
        normal(ROWS, obs),
        np.tanh(normal(ROWS, action)),
        normal(ROWS),
        np.full(ROWS, 0.99, np.float32),
        normal(ROWS, obs),
    )
    return Sample(batch, np.ones((ROWS, members), bool), np.ones(ROWS, np.float32))


class Subject:
    """An ensemble at HalfCheetah's sizes, ready to be timed."""

    def __init__(self, algo: str, members: int, **settings: Any) -> None:
        config = with_settings(algorithm(algo).defaults, {"ensemble_size": members, **settings})
        box = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32), gym.spaces.Box(-1, 1, (ACTION,), np.float32)
        self.sunrise, self.numbers = ensemble_of(algorithm(algo).fit(config, *box), config)
        self.key = jax.random.key(0)
        self.ensemble, self.tally = self.sunrise.init(self.key, self.numbers)
        rng = np.random.default_rng(0)
        self.samples = [random_sample(rng, members) for _ in range(8)]
        self.obs, self.acting = rng.standard_normal((1, OBS), np.float32), np.zeros(1, np.int32)
        self.count = 0
        arguments = self.ensemble, self.tally, self.samples[0], self.key, self.numbers
        every = [matmul_flops(self.sunrise.update, *arguments, branch=branch) for branch in (min, max)]
        self.gflop = sum(every) / 2e9
        """Of one update; where every second one does more (TD3), of an average one."""

    def update(self) -> Ensemble:
        self.count += 1
        self.ensemble, self.tally, _ = self.sunrise.update(
            self.ensemble, self.tally, self.samples[self.count % 8], self.key, self.numbers
        )
        return self.ensemble

    def act(self) -> np.ndarray:
        self.count += 1
        choice = self.sunrise.explore(
            self.ensemble.members, self.obs, self.acting, self.key, np.int32(self.count), self.numbers
        )
        return np.asarray(choice.action)


def environment_step(env_id: str, steps: int = 500) -> float:
    """Seconds of one step with random actions."""
    env = make_env(env_id)
    env.action_space.seed(0)
    env.reset(seed=0)
    start = time.perf_counter()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return (time.perf_counter() - start) / steps


def loop_share(env_id: str, members: int, steps: int = 300) -> tuple[float, float]:
    """Milliseconds of a step of the real training loop, and the share of it spent outside the update."""
    model = SAC("MlpPolicy", env_id, ensemble_size=members, learning_starts=300, eval_freq=0, save_freq=0, seed=0)
    inside = 0.0
    plain = model.sunrise.update

    def timed(*arguments: Any) -> tuple[Ensemble, Tally, Report]:
        nonlocal inside
        start = time.perf_counter()
        result = plain(*arguments)
        ready(result)
        inside += time.perf_counter() - start
        return result

    model.live.functions = model.sunrise._replace(update=_with_cache_size(timed, plain))
    clock: list[tuple[float, float]] = []
    model.learn(
        300 + 50 + steps,
        callback=lambda *_: clock.append((time.perf_counter(), inside)),
        log_interval=None,
        progress_bar=False,
    )
    (start, inside_before), (end, inside_after) = clock[-steps - 1], clock[-1]
    total = end - start
    return 1e3 * total / steps, 1 - (inside_after - inside_before) / total


def _with_cache_size(timed: Any, plain: Any) -> Any:
    timed._cache_size = plain._cache_size
    return timed


def measure(members: Sequence[int], repeats: int) -> dict[str, Any]:
    """Every number of the bench as data."""
    use_cache()
    rows = []
    for size in members:
        console.print(f"compiling and timing {size} members ...")
        subject = Subject("sac", size)
        rounds = [(best_of(subject.update, max(repeats // 4, 1)), sgemm_peak()) for _ in range(4)]
        seconds, peak = min(r[0] for r in rounds), max(r[1] for r in rounds)
        rows.append(
            {
                "members": size,
                "update_ms": 1e3 * seconds,
                "gflop": subject.gflop,
                "gflop_per_s": subject.gflop / seconds,
                "sgemm_peak": peak,
                "fraction_of_peak": subject.gflop / seconds / peak,
                "action_ms": 1e3 * best_of(subject.act, repeats),
                "compilations": subject.sunrise.update._cache_size(),  # type: ignore[attr-defined]
            }
        )
    console.print("timing the training loop on Hopper-v5 ...")
    step_ms, outside = loop_share("Hopper-v5", 5)
    return {
        "sizes": {"obs": OBS, "action": ACTION, "batch": ROWS, "net_arch": [256, 256]},
        "updates": rows,
        "environment_ms": {env: 1e3 * environment_step(env) for env in ("Hopper-v5", "HalfCheetah-v5")},
        "loop": {"env": "Hopper-v5", "members": 5, "step_ms": step_ms, "outside_update": outside},
    }


def run_bench(members: Sequence[int], repeats: int, out: Path | None) -> None:
    """Measure, print a table, and keep the numbers."""
    result = measure(members, repeats)
    table = Table("members", "ms/update", "GFLOP", "GFLOP/s", "sgemm peak", "of peak", "ms/action", title="SAC update")
    for row in result["updates"]:
        table.add_row(
            str(row["members"]),
            f"{row['update_ms']:.1f}",
            f"{row['gflop']:.2f}",
            f"{row['gflop_per_s']:.0f}",
            f"{row['sgemm_peak']:.0f}",
            f"{row['fraction_of_peak']:.0%}",
            f"{row['action_ms']:.2f}",
        )
    screen = Console()
    screen.print(table)
    for env, ms in result["environment_ms"].items():
        screen.print(f"one step of {env}: {ms:.2f} ms")
    loop = result["loop"]
    screen.print(
        f"training loop on {loop['env']} with {loop['members']} members: {loop['step_ms']:.1f} ms a step, "
        f"{loop['outside_update']:.0%} of it outside the update"
    )
    if out is not None:
        out.write_text(json.dumps(result, indent=2) + "\n")
