"""`make demo`: five agents learn Pendulum in about a minute, and a picture shows how."""

import shutil
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sunrise.agents import SAC
from sunrise.console import console
from sunrise.errors import SunriseError
from sunrise.store.run_folder import RunFolder

SOLVED = -250.0
"""Mean return over ten episodes at which Pendulum-v1 counts as solved."""
LIMIT = 10_000


def run_demo(out: Path, seed: int) -> None:
    """Train until solved, print a table, draw the picture, and say what to try next."""
    run = out / "run"
    if run.exists() and not (run / "config.json").exists():
        raise SunriseError(f"{run} is not a demo of ours: choose another --out.")
    shutil.rmtree(run, ignore_errors=True)
    console.print("Five SAC agents learn Pendulum-v1 together: bootstrap masks, weighted backups, UCB exploration.")
    console.print(
        f"It ends when it is solved (a mean return of {SOLVED:.0f}), after {LIMIT:,} timesteps at the latest."
    )
    model = SAC(
        "MlpPolicy",
        "Pendulum-v1",
        learning_rate=1e-3,
        batch_size=64,
        learning_starts=500,
        policy_kwargs={"net_arch": [64, 64]},
        weighting="relative",
        eval_freq=1000,
        log_freq=250,
        save_freq=0,
        seed=seed,
        run_dir=str(run),
    )
    start = time.perf_counter()

    def unsolved(state: dict[str, object], _: dict[str, object]) -> bool:
        last = model.trainer.last_evaluation if model.trainer else None
        return last is None or last.mean < SOLVED

    model.learn(LIMIT, callback=unsolved, log_interval=None)
    seconds = time.perf_counter() - start
    if model.num_timesteps < LIMIT:
        console.print(f"Solved at timestep {model.num_timesteps:,}: training ends here.")
    folder = RunFolder(run)
    picture = out / "demo.png"
    draw(folder, picture)
    last = folder.read_eval()[-1]
    metrics = folder.read_metrics()[-1]
    table = Table(title="SUNRISE-SAC on Pendulum-v1", show_header=False)
    table.add_row("members", str(model.config.ensemble.ensemble_size))
    table.add_row("seed", str(seed))
    table.add_row("timesteps", f"{model.num_timesteps:,}")
    table.add_row(
        "mean return, 10 episodes", f"{last['mean_return']:.1f} ± {last['std_return']:.1f} (solved: {SOLVED:.0f})"
    )
    table.add_row("disagreement of 10 critics", f"{metrics['train/disagreement_mean']:.2f}")
    low, high = metrics["train/weight_p05"], metrics["train/weight_p95"]
    table.add_row("weight of a backup", f"{low:.2f} to {high:.2f} (5 % to 95 %, relative weighting)")
    table.add_row("time", f"{seconds:.0f} s")
    screen = Console(highlight=False)
    screen.print(table)
    screen.print(f"Picture: {picture}\n")
    if last["mean_return"] < SOLVED:
        raise SunriseError(f"Pendulum-v1 was not solved within {LIMIT:,} timesteps; try another --seed.")
    screen.print("Try next:")
    screen.print(f"  .venv/bin/sunrise evaluate {run}")
    screen.print("  .venv/bin/sunrise train sac --env-id Hopper-v5 --total-timesteps 200000")
    screen.print("  .venv/bin/sunrise train sac --help")


def draw(folder: RunFolder, picture: Path) -> None:
    """The learning curve above, the ensemble's disagreement and weights below."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    rows, evaluations = folder.read_metrics(), folder.read_eval()
    trained = [row for row in rows if "train/disagreement_mean" in row]
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
    episodes = [row for row in rows if "rollout/return_mean" in row]
    top.plot(
        [r["timesteps"] for r in episodes],
        [r["rollout/return_mean"] for r in episodes],
        color="0.7",
        label="training episodes (exploring)",
    )
    top.errorbar(
        [r["timesteps"] for r in evaluations],
        [r["mean_return"] for r in evaluations],
        yerr=[r["std_return"] for r in evaluations],
        marker="o",
        capsize=3,
        color="tab:blue",
        label="evaluation: mean ± std of 10 episodes",
    )
    top.axhline(SOLVED, color="tab:green", linestyle="--", linewidth=1, label=f"solved ({SOLVED:.0f})")
    top.set(ylabel="return", title="SUNRISE-SAC, 5 members, Pendulum-v1, 1 seed")
    top.legend(loc="lower right", fontsize=8)
    steps = [r["timesteps"] for r in trained]
    bottom.fill_between(
        steps,
        [r["train/disagreement_p05"] for r in trained],
        [r["train/disagreement_p95"] for r in trained],
        alpha=0.25,
        color="tab:orange",
        label="5 % to 95 % of rows",
    )
    bottom.plot(steps, [r["train/disagreement_mean"] for r in trained], color="tab:orange", label="mean")
    bottom.set(xlabel="timesteps", ylabel="disagreement\n(std of 10 target critics)")
    bottom.set_ylim(bottom=0)
    bottom.legend(loc="upper left", fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
