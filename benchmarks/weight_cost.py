"""What each weighting scheme adds to an update of five SAC agents: they take turns in one run, best and median count.

Writes `results/weight_cost.json`. Time is the processor's, of all threads: a machine that does something else as well
disturbs it less than the clock on the wall.
"""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from sunrise.compilation import use_cache
from sunrise.config.ensemble import WEIGHTINGS
from sunrise.experiments.speed import Subject, ready

OUT = Path(__file__).parent / "results" / "weight_cost.json"
ROUNDS, UPDATES = 60, 3


def operations(subject: Subject) -> tuple[float, float]:
    """Operations and bytes of an update, by the compiler's own count; a loop's body counts once."""
    arguments = subject.ensemble, subject.tally, subject.samples[0], subject.key, subject.numbers
    cost = subject.sunrise.update.lower(*arguments).compile().cost_analysis()  # type: ignore[attr-defined]
    return cost["flops"], cost["bytes accessed"]


def measure() -> dict[str, Any]:
    use_cache()
    subjects = {name: Subject("sac", 5, weighting=name) for name in WEIGHTINGS}
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for round_number in range(ROUNDS + 3):
        for name, subject in subjects.items():
            start = time.process_time()
            for _ in range(UPDATES):
                ready(subject.update())
            if round_number >= 3:
                times[name].append(1e3 * (time.process_time() - start) / UPDATES)
    best = {name: min(own) for name, own in times.items()}
    # Neighbours in time share the machine's noise: the median of the ratios within a round says most.
    ratio = {
        name: statistics.median(own / none for own, none in zip(times[name], times["none"], strict=True))
        for name in subjects
    }
    counted = {name: operations(subject) for name, subject in subjects.items()}
    return {
        "what": "five SAC agents, batch 256, two layers of 256, HalfCheetah's sizes",
        "rounds": ROUNDS,
        "operations_over_none": {name: own[0] / counted["none"][0] for name, own in counted.items()},
        "bytes_over_none": {name: own[1] / counted["none"][1] for name, own in counted.items()},
        "load_average": os.getloadavg()[0],
        "best_processor_ms": {name: round(ms, 3) for name, ms in best.items()},
        "median_processor_ms": {name: round(statistics.median(own), 3) for name, own in times.items()},
        "best_over_none": {name: round(ms / best["none"], 4) for name, ms in best.items()},
        "median_ratio_to_none": {name: round(r, 4) for name, r in ratio.items()},
    }


if __name__ == "__main__":
    result = measure()
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
