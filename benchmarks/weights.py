"""Which weights survive another scale of rewards: TD3 on Pendulum with its rewards times 0.01, 1 and 100.

Nothing else in TD3 depends on the scale (SAC's entropy does). Writes `results/weights.json`, and the picture of the
documents with `--draw`. About ten minutes on two cores.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym

from sunrise import TD3
from sunrise.config.ensemble import Weighting
from sunrise.store.run_folder import RunFolder

HERE = Path(__file__).parent
OUT = HERE / "results" / "weights.json"
PICTURE = HERE.parent / "docs" / "images" / "weights.png"
SCHEMES: tuple[Weighting, ...] = ("confidence", "relative", "signal", "inverse_variance")
SCALES = (0.01, 1.0, 100.0)
TIMESTEPS, SEEDS = 5000, (1, 2, 3)
LAST = 2000
"""Timesteps at the end over which the quantiles are averaged."""


def run(scheme: Weighting, scale: float, seed: int, timesteps: int = TIMESTEPS) -> dict[str, float]:
    """The quantiles of the weight and of the disagreement over the last timesteps of a training."""
    env = gym.wrappers.TransformReward(gym.make("Pendulum-v1"), lambda reward: scale * float(reward))
    folder = tempfile.TemporaryDirectory()
    model = TD3(
        "MlpPolicy",
        env,
        weighting=scheme,
        seed=seed,
        learning_starts=500,
        batch_size=128,
        policy_kwargs={"net_arch": [64, 64]},
        eval_freq=0,
        log_freq=250,
        save_freq=0,
        keep_replay=False,
        run_dir=folder.name,
    )
    model.learn(timesteps, log_interval=None, progress_bar=False)
    late = [row for row in RunFolder(Path(folder.name)).read_metrics() if row["timesteps"] > timesteps - LAST]
    folder.cleanup()
    names = [f"train/{what}_{at}" for what in ("weight", "disagreement") for at in ("p05", "p50", "p95", "mean")]
    names.append("train/effective_batch")
    return {name.removeprefix("train/"): sum(row[name] for row in late) / len(late) for name in names}


def measure() -> list[dict[str, Any]]:
    rows = []
    for scheme in SCHEMES:
        for scale in SCALES:
            for seed in SEEDS:
                rows.append({"weighting": scheme, "scale": scale, "seed": seed, **run(scheme, scale, seed)})
                print(rows[-1], flush=True)
    return rows


def draw(rows: list[dict[str, Any]], picture: Path) -> None:
    """A bar from 5 % to 95 % of the weight for each scheme and scale."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(SCHEMES), figsize=(9, 3.2), layout="constrained", sharey=False)
    for axis, scheme in zip(axes, SCHEMES, strict=True):
        for place, scale in enumerate(SCALES):
            own = [row for row in rows if (row["weighting"], row["scale"]) == (scheme, scale)]
            for offset, row in enumerate(own):
                x = place + 0.18 * (offset - (len(own) - 1) / 2)
                axis.plot([x, x], [row["weight_p05"], row["weight_p95"]], color="tab:blue", linewidth=5, alpha=0.45)
                axis.plot(x, row["weight_p50"], "o", color="tab:blue", markersize=4)
        axis.set(title=scheme, xticks=range(len(SCALES)), xticklabels=[f"× {scale:g}" for scale in SCALES])
        axis.set_ylim(0, 1.05 if scheme != "inverse_variance" else None)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("weight of a backup\n(5 %, median, 95 %)")
    figure.supxlabel(f"rewards of Pendulum (TD3, N = 5, {TIMESTEPS:,} timesteps; a bar a seed)", fontsize=9)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="only draw the picture from the last results")
    if not parser.parse_args().draw:
        OUT.write_text(json.dumps(measure(), indent=1) + "\n")
    draw(json.loads(OUT.read_text()), PICTURE)
