"""What each weighting scheme adds to an update of five SAC agents: they take turns in one run, best and median count.

Writes `results/weight_cost.json`. Nothing else may run meanwhile.
"""

import json
import statistics
import time
from pathlib import Path
from typing import Any

from sunrise.bench import Subject, ready
from sunrise.compilation import use_cache
from sunrise.config.ensemble import WEIGHTINGS

OUT = Path(__file__).parent / "results" / "weight_cost.json"
ROUNDS, UPDATES = 60, 3


def measure() -> dict[str, Any]:
    use_cache()
    subjects = {name: Subject("sac", 5, weighting=name) for name in WEIGHTINGS}
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for round_number in range(ROUNDS + 3):
        for name, subject in subjects.items():
            start = time.perf_counter()
            for _ in range(UPDATES):
                ready(subject.update())
            if round_number >= 3:
                times[name].append(1e3 * (time.perf_counter() - start) / UPDATES)
    best = {name: min(own) for name, own in times.items()}
    # Neighbours in time share the machine's noise: the median of the ratios within a round says most.
    ratio = {
        name: statistics.median(own / none for own, none in zip(times[name], times["none"], strict=True))
        for name in subjects
    }
    return {
        "what": "five SAC agents, batch 256, two layers of 256, HalfCheetah's sizes",
        "rounds": ROUNDS,
        "best_ms": {name: round(ms, 3) for name, ms in best.items()},
        "median_ms": {name: round(statistics.median(own), 3) for name, own in times.items()},
        "best_over_none": {name: round(ms / best["none"], 4) for name, ms in best.items()},
        "median_ratio_to_none": {name: round(r, 4) for name, r in ratio.items()},
    }


if __name__ == "__main__":
    result = measure()
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
