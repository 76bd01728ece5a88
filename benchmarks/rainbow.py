"""The speed of Rainbow's five-member update against a PyTorch loop over agents, in turns; the best round counts.

It keeps its last output in benchmarks/results/rainbow.json.
"""

import json
import sys
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from run import HERE, ROUNDS, Peer
from sunrise.compilation import use_cache
from sunrise.config.ensemble import EnsembleSettings
from sunrise.config.learners import RainbowSettings
from sunrise.ensemble import Ensemble, EnsembleNumbers, Numbers, build
from sunrise.experiments.flops import matmul_flops
from sunrise.experiments.speed import best_of, sgemm_peak
from sunrise.learners.rainbow import rainbow, rainbow_numbers
from sunrise.store.machine import machine, versions
from sunrise.types import Batch, Sample

MEMBERS, ROWS, FRAMES = 5, 32, (4, 84, 84)


def random_sample(rng: np.random.Generator, actions: int) -> Sample:
    """A minibatch of noise, of a real one's shapes."""

    def frames() -> np.ndarray:
        return rng.integers(0, 256, (ROWS, *FRAMES), np.uint8)

    batch = Batch(
        frames(),
        rng.integers(0, actions, ROWS),
        rng.standard_normal(ROWS, np.float32),
        np.full(ROWS, 0.99**20, np.float32),
        frames(),
    )
    return Sample(batch, np.ones((ROWS, MEMBERS), bool), np.ones(ROWS, np.float32))


class Subject:
    """An ensemble of the data-efficient sizes, ready to be timed."""

    def __init__(self, actions: int, **settings: Any) -> None:
        own = RainbowSettings(**settings)
        space = gym.spaces.Box(0, 255, FRAMES, np.uint8)
        self.sunrise = build(lambda numbers: rainbow(space, actions, own, numbers), EnsembleSettings(MEMBERS))
        self.numbers = jax.tree.map(
            lambda x: jnp.asarray(x, jnp.float32), Numbers(EnsembleNumbers(20.0, 1.0, 0.99), rainbow_numbers(own))
        )
        self.key = jax.random.key(0)
        self.ensemble, self.tally = self.sunrise.init(self.key, self.numbers)
        rng = np.random.default_rng(0)
        self.samples = [random_sample(rng, actions) for _ in range(8)]
        self.count = 0
        arguments = self.ensemble, self.tally, self.samples[0], self.key, self.numbers
        self.gflop = matmul_flops(self.sunrise.update, *arguments) / 1e9

    def update(self) -> Ensemble:
        self.count += 1
        self.ensemble, self.tally, _ = self.sunrise.update(
            self.ensemble, self.tally, self.samples[self.count % 8], self.key, self.numbers
        )
        return self.ensemble


def compare(actions: int) -> dict[str, Any]:
    """Ours and a PyTorch loop over five agents, in turns."""
    subject = Subject(actions)
    best_of(subject.update, 3)
    peer = Peer("torch_rainbow.py", str(MEMBERS), str(actions))
    ours, theirs, peaks = [], [], []
    for _ in range(ROUNDS):
        ours.append(best_of(subject.update, 8))
        peaks.append(sgemm_peak())
        theirs.append(peer.turn())
    return {
        "update_ms": {"sunrise_5": 1e3 * min(ours), "torch_loop_5": 1e3 * min(theirs)},
        "faster_than_torch_loop": min(theirs) / min(ours),
        "peer_threads": peer.threads,
        "gflop": subject.gflop,
        "gflop_per_s": subject.gflop / min(ours),
        "sgemm_peak": max(peaks),
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(subject.ensemble.members.online)),
    }


def main() -> None:
    """Measure, print, and keep the last output."""
    use_cache()
    result = {
        "actions": {str(actions): compare(actions) for actions in (6, 18)},
        "machine": machine(),
        "versions": versions(),
    }
    text = json.dumps(result, indent=2)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "rainbow.json").write_text(text + "\n")
    print(text, file=sys.stdout)


if __name__ == "__main__":
    main()
