"""What two runs must have in common to be the same run, bit for bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from sunrise.store.checkpoint import Checkpoints


def newest(folder: Path) -> Path:
    checkpoints = Checkpoints(folder / "checkpoints")
    return checkpoints.path(checkpoints.steps()[-1])


def replay_rows(folder: Path) -> dict[str, dict[int, bytes]]:
    """Every row of replay of the newest checkpoint by its number, whatever segments it came in."""
    found = Checkpoints(folder / "checkpoints").newest()
    assert found is not None
    rows: dict[str, dict[int, bytes]] = {}
    for segment in found.manifest.segments:
        for name, array in found.segment(segment).items():
            start = segment.spans[name.split("/")[0]].start
            rows.setdefault(name, {}).update({start + i: row.tobytes() for i, row in enumerate(array)})
    return rows


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on how often a run was stopped."""
    step = newest(folder)
    facts = json.loads((step / "state.json").read_text())
    del facts["logs"]  # rows have times in them
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {
        "step": step.name,
        "agents": {name: array.tobytes() for name, array in load_file(step / "agents.safetensors").items()},
        "state": {name: array.tobytes() for name, array in load_file(step / "state.safetensors").items()},
        "facts": facts,
        "replay": replay_rows(folder),
        "eval": (folder / "eval.csv").read_bytes() if (folder / "eval.csv").exists() else None,
        "metrics": [{k: v for k, v in row.items() if not k.startswith("time/")} for row in metrics],
    }


def assert_same(one: Path, other: Path) -> None:
    """Two runs are the same in every bit that does not depend on the clock."""
    first, second = outcome(one), outcome(other)
    for part in first:
        if part == "replay":  # what has been overwritten may have gone with its segment, or not
            common = {n: first[part][n].keys() & second[part][n].keys() for n in first[part]}
            assert first[part].keys() == second[part].keys()
            for name, numbers in common.items():
                assert numbers
                assert all(first[part][name][i] == second[part][name][i] for i in numbers), name
        else:
            assert first[part] == second[part], part
    assert np.all([(folder / "status.json").exists() for folder in (one, other)])
