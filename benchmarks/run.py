"""The speed of the update against peers, in turns within one run; the best of several rounds counts.

`make bench` runs it and keeps its last output in benchmarks/results/.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import readme
from sunrise.compilation import use_cache
from sunrise.experiments.speed import Subject, best_of, measure, sgemm_peak
from sunrise.store.machine import machine, versions

HERE = Path(__file__).parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
ROUNDS = 10


class Peer:
    """A process of another library that times its update when asked."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [str(PEER_PYTHON), str(HERE / "peers" / script), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.threads = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def turn(self) -> float:
        """Seconds of the fastest of a few updates."""
        assert self.process.stdin is not None
        print("go", file=self.process.stdin, flush=True)
        return float(self._line())


def compare() -> dict[str, Any]:
    """Ours, three PyTorch loops over agents and one Stable-Baselines3 agent, in turns."""
    subject = Subject("sac", 5)
    best_of(subject.update, 3)
    peers = {
        "torch_authors_5": Peer("torch_loop.py", "5", "authors"),
        "torch_loop_5": Peer("torch_loop.py", "5", "loop"),
        "torch_tuned_loop_5": Peer("torch_loop.py", "5", "tuned"),
        "sb3_1": Peer("sb3_sac.py"),
    }
    times: dict[str, list[float]] = {"sunrise_5": [], **{name: [] for name in peers}}
    peaks = []
    for _ in range(ROUNDS):
        times["sunrise_5"].append(best_of(subject.update, 8))
        peaks.append(sgemm_peak())
        for name, peer in peers.items():
            times[name].append(peer.turn())
    best = {name: min(values) for name, values in times.items()}
    return {
        "update_ms": {name: 1e3 * seconds for name, seconds in best.items()},
        "peer_threads": {name: peer.threads for name, peer in peers.items()},
        "sgemm_peak": max(peaks),
        "fraction_of_peak": subject.gflop / best["sunrise_5"] / max(peaks),
        "faster_than_torch_authors": best["torch_authors_5"] / best["sunrise_5"],
        "faster_than_torch_loop": best["torch_loop_5"] / best["sunrise_5"],
        "faster_than_tuned_torch_loop": best["torch_tuned_loop_5"] / best["sunrise_5"],
        "time_of_one_sb3_agent": best["sunrise_5"] / best["sb3_1"],
    }


def learners() -> dict[str, Any]:
    """Every learner's five-member update, two at a time so that a delayed actor is in one of them."""
    subjects = {name: Subject(name, 5) for name in ("sac", "td3", "discor")}
    times: dict[str, list[float]] = {name: [] for name in subjects}

    def twice(subject: Subject) -> Any:
        subject.update()
        return subject.update()

    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            times[name].append(best_of(partial(twice, subject), 4) / 2)
    speed = {name: subjects[name].gflop / min(values) for name, values in times.items()}
    return {
        "update_ms": {name: 1e3 * min(values) for name, values in times.items()},
        "gflop": {name: subject.gflop for name, subject in subjects.items()},
        "gflop_per_s": speed,
        "of_sac": {name: value / speed["sac"] for name, value in speed.items()},
    }


def main() -> None:
    """Measure, print, and keep the last output."""
    use_cache()
    result = {
        "peers": compare(),
        "learners": learners(),
        "bench": measure((1, 2, 5, 10), 60),
        "machine": machine(),
        "versions": versions(),
    }
    text = json.dumps(result, indent=2)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "sac.json").write_text(text + "\n")
    readme.main()
    print(text, file=sys.stdout)


if __name__ == "__main__":
    main()
