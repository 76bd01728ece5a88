"""Memory and sampling time of image replay: 100,000 transitions of each kind of stack, each frame kept once.

`.venv/bin/python benchmarks/frames.py` writes benchmarks/results/frames.json.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.storage import FrameStore
from sunrise.store.machine import machine
from sunrise.types import Batch, Collected

TRANSITIONS, EPISODE, MEMBERS = 100_000, 250, 5
KINDS: dict[str, dict[str, Any]] = {
    "DeepMind Control": {"shape": (3, 100, 100, 3), "rows": 256, "n_step": 1, "prioritised": False},
    "Atari": {"shape": (4, 84, 84), "rows": 32, "n_step": 20, "prioritised": True},
}


def fill(replay: SequenceReplay, shape: tuple[int, ...]) -> None:
    """Episodes of noise, as they would be collected."""
    rng = np.random.default_rng(0)
    obs = np.zeros((1, *shape), np.uint8)
    for t in range(TRANSITIONS):
        frame = rng.integers(0, 256, shape[1:], np.uint8)
        next_obs = np.concatenate([obs[:, 1:], frame[None, None]], axis=1)
        ended = np.array([t % EPISODE == EPISODE - 1])
        numbers = np.zeros(1, np.float32)
        batch = Batch(obs, np.zeros((1, *replay.action.shape[1:]), np.float32), numbers, numbers + 0.99, next_obs)
        replay.add(Collected(batch, np.zeros(1, np.int64), ended, []), np.ones((1, MEMBERS), bool))
        obs = np.zeros_like(obs) if ended[0] else next_obs


def measure(kind: str) -> dict[str, Any]:
    """In a process of its own: the most memory it ever took, and the fastest of several samples."""
    shape, rows = KINDS[kind]["shape"], KINDS[kind]["rows"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = FrameStore(gym.spaces.Box(0, 255, shape, np.uint8), TRANSITIONS)
    options = {name: KINDS[kind][name] for name in ("n_step", "prioritised")}
    replay = SequenceReplay(store, (1,), np.dtype(np.float32), MEMBERS, np.random.default_rng(1), 0.99, **options)
    fill(replay, shape)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        replay.sample(rows, 0)
        times.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "stack": list(shape),
        "transitions": len(replay),
        "process_gb": after * 1024 / 1e9,
        "of_which_replay_gb": (after - before) * 1024 / 1e9,
        "batch": rows,
        "sample_ms_best": 1e3 * min(times),
        "sample_ms_median": 1e3 * float(np.median(times)),
    }


def main() -> None:
    """Each kind in a process of its own."""
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
        return
    result: dict[str, Any] = {}
    for kind in KINDS:
        done = subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, check=True)
        result[kind] = json.loads(done.stdout)
    text = json.dumps(result | {"machine": machine()}, indent=2)
    (Path(__file__).parent / "results" / "frames.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
