"""What it costs to step the actor on the critic after its step, and how much it changes: both settings, in turns.

A turn is two updates, so that a delayed actor moves in one of them. Besides the time that passes, the processor time of
all threads is taken: it says more where others use the machine. The last output is kept in
benchmarks/results/actor_critic.json.
"""

import json
import statistics
import sys
import time
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from run import HERE
from sunrise.compilation import use_cache
from sunrise.config.algorithms import algorithm
from sunrise.config.settings import with_settings
from sunrise.experiments.flops import matmul_flops
from sunrise.experiments.speed import ready
from sunrise.run.building import ensemble_of
from sunrise.store.machine import machine, versions
from sunrise.types import Batch, Sample

BEFORE_AND_AFTER = ("before", "after")
ROWS, ACTION, UPDATES = 64, 1, 20


class Size(NamedTuple):
    """An ensemble of RAD: pictures are stacks of three colour frames."""

    members: int
    render: int
    crop: int
    filters: int
    heads: int
    rounds: int


SIZES = {"small": Size(2, 48, 40, 16, 256, 40), "large": Size(1, 100, 84, 32, 1024, 12)}


class Subject:
    """One setting of one size, compiled and ready to be timed."""

    def __init__(self, size: Size, actor_critic: str) -> None:
        changes = {"crop_size": size.crop, "filters": size.filters, "net_arch": (size.heads,) * 2}
        changes |= {"ensemble_size": size.members, "actor_critic": actor_critic}
        config = with_settings(algorithm("rad").defaults, changes)
        pictures = gym.spaces.Box(0, 255, (3, size.render, size.render, 3), np.uint8)
        actions = gym.spaces.Box(-1, 1, (ACTION,), np.float32)
        self.functions, self.numbers = ensemble_of(algorithm("rad").fit(config, pictures, actions), config)
        self.key = jax.random.key(0)
        self.ensemble, self.tally = self.functions.init(self.key, self.numbers)
        self.samples = [random_sample(np.random.default_rng(seed), size, pictures.shape) for seed in range(4)]
        self.count = 0
        arguments = self.ensemble, self.tally, self.samples[0], self.key, self.numbers
        self.gflop = sum(matmul_flops(self.functions.update, *arguments, branch=b) for b in (min, max)) / 2e9
        """Products of an average update."""

    def updates(self, count: int = 2) -> Any:
        for _ in range(count):
            sample = self.samples[self.count % len(self.samples)]
            self.ensemble, self.tally, _ = self.functions.update(
                self.ensemble, self.tally, sample, self.key, self.numbers
            )
            self.count += 1
        return self.ensemble


def random_sample(rng: np.random.Generator, size: Size, shape: tuple[int, ...]) -> Sample:
    """A minibatch of noise, of a real one's shapes."""

    def pictures() -> np.ndarray:
        return rng.integers(0, 256, (ROWS, *shape), dtype=np.uint8)

    action, reward = np.tanh(rng.standard_normal((ROWS, ACTION), np.float32)), rng.standard_normal(ROWS, np.float32)
    batch = Batch(pictures(), action, reward, np.full(ROWS, 0.99, np.float32), pictures())
    return Sample(batch, np.ones((ROWS, size.members), bool), np.ones(ROWS, np.float32))


def distance(one: Any, other: Any, start: Any) -> float:
    """How far two ends lie apart, in units of how far the first has come: norms over all parameters."""

    def norm(a: Any, b: Any) -> float:
        return float(jnp.sqrt(sum(jnp.sum((x - y) ** 2) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True))))

    return norm(one, other) / norm(one, start)


def difference(subjects: dict[str, Subject]) -> dict[str, Any]:
    """What the two settings make of the same start, batches and noise."""
    start = jax.tree.map(np.array, subjects["after"].ensemble.members)
    found = {}
    for name, subject in subjects.items():
        after_one = jax.tree.map(np.array, subject.updates(1).members)
        found[name] = after_one, jax.tree.map(np.array, subject.updates(UPDATES - 1).members)
    pairs = [[found[name][at] for name in ("after", "before")] for at in (0, 1)]
    return {
        f"of_the_way_after_{updates}": {
            part: distance(getattr(one, part), getattr(other, part), getattr(start, part))
            for part in ("critic", "actor")
        }
        for updates, (one, other) in zip((1, UPDATES), pairs, strict=True)
    }


def turn(subject: Subject) -> tuple[float, float]:
    """Milliseconds of an average update: that passed, and of the processor."""
    clocks = time.perf_counter, time.process_time
    start = [clock() for clock in clocks]
    ready(subject.updates())
    passed, worked = (1e3 * (clock() - began) / 2 for clock, began in zip(clocks, start, strict=True))
    return passed, worked


def summary(before: list[float], after: list[float]) -> dict[str, Any]:
    """The best and the median of each, and of the ratios round by round."""
    ratios = [b / a for a, b in zip(before, after, strict=True)]
    return {
        "best_ms": {"before": min(before), "after": min(after)},
        "median_ms": {"before": statistics.median(before), "after": statistics.median(after)},
        "ratio_of_bests": min(after) / min(before),
        "ratio_of_medians": statistics.median(after) / statistics.median(before),
        "median_ratio": statistics.median(ratios),
        "quartiles_of_ratio": statistics.quantiles(ratios, n=4),
    }


def compare(size: Size) -> dict[str, Any]:
    """Both settings in turns, first one first and then the other."""
    subjects = {name: Subject(size, name) for name in BEFORE_AND_AFTER}
    changed = difference(subjects)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in subjects}
    for round_ in range(size.rounds):
        for name in BEFORE_AND_AFTER[:: 1 if round_ % 2 else -1]:
            times[name].append(turn(subjects[name]))
    columns = {name: list(zip(*rows, strict=True)) for name, rows in times.items()}
    timed = [summary(list(columns["before"][i]), list(columns["after"][i])) for i in range(2)]
    return {
        "size": size._asdict() | {"batch": ROWS},
        "passed": timed[0],
        "processor": timed[1],
        "gflop": {name: subject.gflop for name, subject in subjects.items()},
        "ratio_of_products": subjects["after"].gflop / subjects["before"].gflop,
        **changed,
    }


def main() -> None:
    """Measure, print, and keep the last output."""
    use_cache()
    result = {name: compare(size) for name, size in SIZES.items()} | {"machine": machine(), "versions": versions()}
    text = json.dumps(result, indent=2)
    (HERE / "results" / "actor_critic.json").write_text(text + "\n")
    print(text, file=sys.stdout)


if __name__ == "__main__":
    main()
