"""How long a game of 100,000 timesteps takes with five members, extrapolated from the first 5,000; and what costs what.

`.venv/bin/python benchmarks/atari_loop.py [GAME]` on a machine with nothing else to do; writes
benchmarks/results/atari_loop.json.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sunrise import Rainbow
from sunrise.experiments.speed import ready
from sunrise.store.machine import machine

STEPS, FULL, EVALUATIONS = 5_000, 100_000, 10


def timed(spent: Counter[str], name: str, function: Callable[..., Any]) -> Any:
    """`function`, with the seconds of its calls added up."""

    def call(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments, **options)
        ready(result)
        spent[name] += time.perf_counter() - start  # type: ignore[assignment]
        return result

    return call


def main(game: str) -> None:
    """Train, time the parts, extrapolate."""
    model = Rainbow("CnnPolicy", f"ALE/{game}-v5", ensemble_size=5, seed=1, eval_freq=0, save_freq=0)
    spent: Counter[str] = Counter()
    plain = model.sunrise
    update = timed(spent, "update", plain.update)
    update._cache_size = plain.update._cache_size  # type: ignore[attr-defined]
    model.live.functions = plain._replace(update=update, explore=timed(spent, "action", plain.explore))
    first: list[tuple[float, Counter[str], int]] = []

    def watch(*_: Any) -> None:
        trainer = model.trainer
        if trainer is None:
            return
        if not first and trainer.timesteps == 1:
            trainer.replay.sample = timed(spent, "sample", trainer.replay.sample)  # type: ignore[method-assign]
            trainer.replay.reprioritise = timed(  # type: ignore[method-assign]
                spent, "priorities", trainer.replay.reprioritise
            )
            trainer.collector.step = timed(spent, "environment", trainer.collector.step)  # type: ignore[method-assign]
        if trainer.updates == 50:  # compiled and warm
            first.append((time.perf_counter(), Counter(spent), trainer.timesteps))

    model.learn(STEPS, callback=watch, log_interval=None, progress_bar=False)
    began, before, at = first[0]
    seconds, steps = time.perf_counter() - began, STEPS - at
    start = time.perf_counter()
    model.evaluate(10)
    evaluation = time.perf_counter() - start
    share = {name: (spent[name] - before[name]) / seconds for name in spent}
    result = {
        "game": game,
        "members": 5,
        "actions": int(model.action_space.n),  # type: ignore[attr-defined]
        "measured_steps": steps,
        "step_ms": 1e3 * seconds / steps,
        "share": share | {"rest": 1 - sum(share.values())},
        "sampling_and_priorities": share["sample"] + share["priorities"],
        "evaluation_s": evaluation,
        "extrapolated_minutes_of_100k": (FULL * seconds / steps + EVALUATIONS * evaluation) / 60,
        "machine": machine(),
    }
    text = json.dumps(result, indent=2)
    (Path(__file__).parent / "results" / "atari_loop.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["Pong"]))
