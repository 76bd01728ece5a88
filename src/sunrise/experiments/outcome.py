"""Tables and figures as functions of rows, each labelled with steps, seeds and protocol."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from sunrise.experiments.paper import Experiment, Scale, human_normalised, published_score
from sunrise.folder import Folder

Rows = Sequence[dict[str, Any]]


def scores(rows: Rows, env: str, arm: str) -> tuple[list[float], list[float]]:
    """Each seed's last evaluation and its best one."""
    last, best = [], []
    for seed in sorted({r["seed"] for r in rows if (r["env"], r["arm"]) == (env, arm)}):
        own = [r for r in rows if (r["env"], r["arm"], r["seed"]) == (env, arm, seed)]
        last.append(max(own, key=lambda r: r["timesteps"])["mean_return"])
        best.append(max(r["mean_return"] for r in own))
    return last, best


def scores_at(rows: Rows, env: str, arm: str, env_steps: int) -> list[float]:
    """Each seed's last evaluation up to a number of simulator steps; of runs that went so far."""
    found = []
    for seed in sorted({r["seed"] for r in rows if (r["env"], r["arm"]) == (env, arm)}):
        own = [r for r in rows if (r["env"], r["arm"], r["seed"]) == (env, arm, seed)]
        until = [r for r in own if r["env_steps"] <= env_steps]
        if until and max(r["env_steps"] for r in own) >= env_steps:
            found.append(max(until, key=lambda r: r["env_steps"])["mean_return"])
    return found


def spread(values: Sequence[float]) -> str:
    """Mean ± sample standard deviation; of one seed, the number alone."""
    if not values:
        return "-"
    deviation = f" ± {np.std(values, ddof=1):.0f}" if len(values) > 1 else ""
    return f"{np.mean(values):.0f}{deviation}"


def is_atari(scale: Scale) -> bool:
    """Whether the scores are of games that humans have played."""
    return all(env.startswith("ALE/") for env in scale.envs)


def write_outcome(experiment: Experiment, scale: Scale, rows: Rows, out: Path, label: str) -> None:
    """results.csv, table.md and figure.png, and the table on the screen."""
    folder, text = Folder(out), io.StringIO(newline="")
    folder.make()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    folder.write("results.csv", text.getvalue().encode())
    header = ["environment", "arm", "last evaluation", "best evaluation"]
    header += ["human-normalised"] if is_atari(scale) else []
    for mark in experiment.marks:
        at = f"at {mark // 1000}k simulator steps"
        header += [at, f"paper {at}"]
    header += ["paper"] if experiment.published and not experiment.marks else []
    lines = []
    for env in scale.envs:
        for arm in experiment.arms:
            last, best = scores(rows, env, arm.name)
            line = [env, arm.name, spread(last), spread(best)]
            if is_atari(scale):
                shares = [human_normalised(score, env) for score in last]
                line.append(f"{np.mean([s for s in shares if s is not None]):.3f}" if shares else "-")
            for mark in experiment.marks:
                line.append(spread(scores_at(rows, env, arm.name, mark)))
                line.append(published_score(experiment, arm.published, env, mark) or "-")
            if experiment.published and not experiment.marks:
                line.append(published_score(experiment, arm.published, env) or "-")
            lines.append(line)
    table = Table(*(Column(name, overflow="fold") for name in header), title=experiment.name)
    for line in lines:
        table.add_row(*line)
    screen = Console(highlight=False)
    screen.print(table)
    screen.print(label)
    marks = ["|".join(["", *line, ""]) for line in [header, ["---"] * len(header), *lines]]
    folder.write("table.md", f"# {experiment.name}\n\n{label}\n\n{chr(10).join(marks)}\n".encode())
    folder.write_by("figure.png", lambda file: draw_curves(experiment, scale, rows, label, file))
    screen.print(f"Written: {out}/results.csv, table.md, figure.png")


def draw_curves(experiment: Experiment, scale: Scale, rows: Rows, label: str, picture: Path | BinaryIO) -> None:
    """A panel an environment, a curve an arm: the mean over seeds, and one standard deviation about it."""
    import textwrap

    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    clock = "env_steps" if scale.simulator_steps else "timesteps"
    count = len(scale.envs)
    figure, axes = plt.subplots(1, count, figsize=(5.5 * count, 4.6), squeeze=False, layout="constrained")
    for axis, env in zip(axes[0], scale.envs, strict=True):
        for arm in experiment.arms:
            own = [r for r in rows if (r["env"], r["arm"]) == (env, arm.name)]
            steps = sorted({r[clock] for r in own})
            values = [[r["mean_return"] for r in own if r[clock] == t] for t in steps]
            means = [float(np.mean(v)) for v in values]
            (line,) = axis.plot(steps, means, marker=".", label=arm.name)
            if scale.seeds > 1:
                bands = [float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 for v in values]
                low = [m - b for m, b in zip(means, bands, strict=True)]
                high = [m + b for m, b in zip(means, bands, strict=True)]
                axis.fill_between(steps, low, high, alpha=0.2, color=line.get_color())
        axis.set(
            title=env, xlabel="simulator steps" if scale.simulator_steps else "timesteps", ylabel="evaluation return"
        )
    axes[0][0].legend(fontsize=8)
    figure.supxlabel(textwrap.fill(label, 60 * count), fontsize=7)
    figure.savefig(picture, dpi=120, format="png")
    plt.close(figure)
