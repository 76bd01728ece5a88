"""What running many runs costs: overhead a trial here and on Ray, and two trials side by side or one after the other.

`.venv/bin/python benchmarks/sweep.py` on a machine with nothing else to do; writes benchmarks/results/sweep.json. All
ways are measured in turn, round after round, and the medians compared. Overhead is what a trial takes beyond the same
trial in a process that has imported and compiled everything already.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sunrise.experiments.executor import HERE, Execution, execute
from sunrise.experiments.live import last_lines
from sunrise.experiments.paper import Arm
from sunrise.experiments.runs import Run
from sunrise.files.folder import Folder
from sunrise.store.machine import machine

SMALL = {"net_arch": (8, 8), "batch_size": 8, "learning_starts": 20, "buffer_size": 1000, "ensemble_size": 2}
SMALL |= {"eval_freq": 0, "save_freq": 0, "log_freq": 50}
_numbers = itertools.count(1)


def trials(folder: Path, count: int, env: str, settings: dict[str, Any]) -> list[Run]:
    """New trials, each with a seed of its own."""
    runs = []
    for seed in itertools.islice(_numbers, count):
        own = folder / str(seed)
        whole = {**settings, "env_id": env, "seed": seed, "run_dir": str(own)}
        runs.append(Run(Arm("bench", "sac"), env, seed, whole, own))
    return runs


def seconds(runs: list[Run], execution: Execution) -> float:
    """How long all of them take."""
    begun = time.perf_counter()
    failures = execute(runs, execution)
    if failures:
        raise SystemExit(f"a trial failed: {failures[0].why}")
    return time.perf_counter() - begun


@contextmanager
def cluster() -> Iterator[str]:
    """A Ray cluster of one node of one core: one trial at a time, as in the other ways."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        yield made.address
    finally:
        made.shutdown()


def overhead(folder: Path, rounds: int, count: int) -> dict[str, Any]:
    """Seconds a trial of a hundred steps, one at a time on one core, by where it runs."""
    small = {**SMALL, "total_timesteps": 100}
    taken: dict[str, list[float]] = {"in_one_process": [], "local": [], "ray": []}
    seconds(trials(folder, 1, "Pendulum-v1", small), HERE)  # what is imported and compiled once
    with cluster() as address:
        ways = {"in_one_process": HERE, "local": Execution(workers=1, cpus=1)}
        ways["ray"] = Execution(ray_address=address, cpus=1)
        for _ in range(rounds):
            for way, execution in ways.items():
                taken[way].append(seconds(trials(folder, count, "Pendulum-v1", small), execution) / count)
    median = {way: statistics.median(times) for way, times in taken.items()}
    beyond = {way: median[way] - median["in_one_process"] for way in ("local", "ray")}
    return {"trials": count, "seconds_a_trial": taken, "median": median, "overhead_s": beyond}


def side_by_side(folder: Path, rounds: int, steps: int) -> dict[str, Any]:
    """Two trials of five members on two cores: a core each, or both cores for one after the other."""
    settings = {"total_timesteps": steps, "learning_starts": 100, "eval_freq": 0, "save_freq": 0, "log_freq": 100}
    ways = {"side_by_side": Execution(workers=2, cpus=1), "one_after_the_other": Execution(workers=1, cpus=2)}
    whole: dict[str, list[float]] = {way: [] for way in ways}
    steady: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, execution in ways.items():
            runs = trials(folder, 2, "HalfCheetah-v5", settings)
            whole[way].append(2 * steps / seconds(runs, execution))
            rows = [json.loads(last_lines(Folder(run.folder), "metrics.jsonl")[-1]) for run in runs]
            speeds = [row["time/steps_per_s"] for row in rows]
            steady[way].append(sum(speeds) / (1 if way == "side_by_side" else len(speeds)))
    ratio = statistics.median(steady["side_by_side"]) / statistics.median(steady["one_after_the_other"])
    return {"members": 5, "steps": steps, "steps_per_s": steady, "with_start_up": whole, "gain": ratio}


def main() -> None:
    """Both, and the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "sweep.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "overhead": overhead(Path(folder), options.rounds, options.trials),
            "two_trials": side_by_side(Path(folder), options.rounds, options.steps),
            "machine": machine(),
            "load": Path("/proc/loadavg").read_text().split()[0],
        }
    text = json.dumps(result, indent=2)
    options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
