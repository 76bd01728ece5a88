"""A process that owns a run's folder and writes one small checkpoint after another until it is told that it is not."""

import itertools
import sys
from pathlib import Path

import numpy as np

from sunrise.store.checkpoint import Checkpoints, Snapshot
from sunrise.store.manifest import Span
from sunrise.store.ownership import LostError
from sunrise.store.run_folder import RunFolder


def snapshot(step: int, who: float) -> Snapshot:
    """A checkpoint whose every array says who wrote it."""
    rows = np.full((2, 3), who, np.float32)
    return Snapshot(
        timesteps=step,
        agents={"agent": np.full(4, who, np.float32)},
        about={"who": who},
        arrays={"state": np.full(2, who, np.float32)},
        facts={"who": who},
        rows={"ring/obs": rows},
        spans={"ring": Span(2 * step, 2 * step + 2)},
        oldest={"ring": max(2 * step - 6, 0)},
    )


def write(folder: Path, who: float, steps: int | None = None) -> None:
    """Take the folder and write, for so many steps or for ever."""
    run = RunFolder(folder)
    run.lock()
    checkpoints = Checkpoints(run.checkpoints, 2, run.ownership)
    checkpoints.sweep()
    try:
        for step in itertools.count(1) if steps is None else range(1, steps + 1):
            checkpoints.write(snapshot(step, who))
            with run.ownership.publishing():
                run.logs.append_metrics({"timesteps": step, "who": who})
            run.status("running", step, step, who=who)
    finally:
        run.close()


if __name__ == "__main__":
    try:
        write(Path(sys.argv[1]), 1.0)
    except LostError as error:
        print(error)
        sys.exit(3)
