"""What a checkpoint costs: five SAC agents on Hopper with a buffer of 1,000,000 transitions, saved every 10,000.

`.venv/bin/python benchmarks/checkpoint.py` on a machine with nothing else to do; writes
benchmarks/results/checkpoint.json. The buffer is filled with noise; the steps between two checkpoints are timed for a
few hundred and multiplied.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from sunrise import SAC
from sunrise.replay.uniform import UniformReplay
from sunrise.store.machine import machine

CAPACITY, INTERVAL, STEPS, ROUNDS = 1_000_000, 10_000, 400, 5


def append_noise(replay: UniformReplay, rows: int, rng: np.random.Generator) -> None:
    """As if `rows` transitions had been collected."""
    slots = (int(replay.written) + np.arange(rows)) % replay.capacity
    for array in (replay.batch.obs, replay.batch.next_obs, replay.batch.action, replay.batch.reward):
        array[slots] = rng.standard_normal((rows, *array.shape[1:]), np.float32)
    replay.batch.discount[slots], replay.mask[slots] = 0.99, True
    replay.written += rows


def main() -> None:
    """Train a little, fill the buffer, save several times."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        model = SAC("MlpPolicy", "Hopper-v5", seed=1, eval_freq=0, save_freq=0, run_dir=f"{folder}/run")
        clock: dict[int, float] = {}

        def watch(now: dict[str, Any], _: Any) -> None:
            clock[now["self"].num_timesteps] = time.perf_counter()

        model.learn(1100 + STEPS, callback=watch, progress_bar=False)
        step = (clock[1100 + STEPS] - clock[1100]) / STEPS
        trainer, session, rng = model.trainer, model.session, np.random.default_rng(0)
        assert trainer is not None
        assert session is not None
        assert isinstance(trainer.replay, UniformReplay)
        saved: dict[str, list[float]] = {"training_thread_s": [], "written_s": []}
        for rows in (CAPACITY, *[INTERVAL] * ROUNDS):
            append_noise(trainer.replay, rows, rng)
            trainer.timesteps += rows
            start = time.perf_counter()
            session.save(trainer.timesteps, trainer.state)
            saved["training_thread_s"].append(time.perf_counter() - start)
            session.settle()
            saved["written_s"].append(time.perf_counter() - start)
        size = sum(file.stat().st_size for file in session.checkpoints.folder.path.rglob("*") if file.is_file())
        session.close()
    thread, whole = max(saved["training_thread_s"][1:]), max(saved["written_s"][1:])
    result = {
        "buffer": CAPACITY,
        "interval_timesteps": INTERVAL,
        "members": 5,
        "step_ms": 1e3 * step,
        "training_thread_s": thread,
        "until_on_disk_s": whole,
        "share_of_training_time_training_thread": thread / (INTERVAL * step),
        "share_of_training_time_at_most": whole / (INTERVAL * step),
        "the_whole_buffer_at_once_s": saved["written_s"][0],
        "disk_mb": size / 1e6,
        "rounds": saved,
        "machine": machine(),
    }
    text = json.dumps(result, indent=2)
    (Path(__file__).parent / "results" / "checkpoint.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
