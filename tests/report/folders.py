"""Run folders made by writing files: what a run leaves behind, without running it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sunrise.files.documents import sealed
from sunrise.store.logs import EVAL_FIELDS

VERSIONS = {"sunrise-rl": "0.2.0", "jax": "0.10.2"}
MACHINE = {"cpu": "a processor", "cores": 2, "device": "cpu", "python": "3.11.7"}


def make_run(
    path: Path,
    returns: Sequence[float] = (1.0, 2.0, 3.0),
    algo: str = "sac",
    status: str | None = "finished",
    config: dict[str, Any] | None = None,
    metrics: Sequence[dict[str, Any]] | None = None,
    episodes: int = 10,
    repeat: int = 1,
    error: str = "",
    **settings: Any,
) -> Path:
    """A run that was evaluated every 1,000 timesteps."""
    path.mkdir(parents=True)
    steps = [1000 * (number + 1) for number in range(len(returns))]
    own = {"env_id": "Hopper-v5", "seed": 1, "total_timesteps": steps[-1] if steps else 1000, "ensemble_size": 5}
    own |= {"weighting": "confidence", "exploration": "ucb", "run_dir": str(path), **settings}
    about = {"algo": algo, "policy": "MlpPolicy", "settings": own, "action_repeat": repeat}
    about |= {"versions": VERSIONS, "machine": MACHINE, "command": ["sunrise", "train", algo], **(config or {})}
    (path / "config.json").write_bytes(sealed(about))
    if returns:
        rows = [
            f"{t},{value!r},0.5,{value - 1!r},{value + 1!r},{episodes}" for t, value in zip(steps, returns, strict=True)
        ]
        (path / "eval.csv").write_text("\n".join([",".join(EVAL_FIELDS), *rows, ""]))
    if metrics is None:
        metrics = [{"timesteps": t, "time/elapsed_s": t * 3.6, "train/critic_loss": 0.1} for t in steps]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    if status:
        why = {"error": error} if error else {}
        reached = steps[-1] if steps else 0
        (path / "status.json").write_bytes(
            sealed({"status": status, "timesteps": reached, "env_steps": reached * repeat, **why})
        )
    return path


def make_arms(root: Path, seeds: int = 5, envs: Sequence[str] = ("Hopper-v5",), **settings: Any) -> Path:
    """One agent and five, on some environments: the five score ten more."""
    for env in envs:
        for size in (1, 5):
            for seed in range(1, seeds + 1):
                base = 10.0 * size + seed
                weighting = "none" if size == 1 else "confidence"
                make_run(
                    root / f"{env.replace('/', '-')}-{size}-{seed}",
                    (base, base + 5, base + 2),
                    **{"env_id": env, "ensemble_size": size, "weighting": weighting, "seed": seed, **settings},
                )
    return root
