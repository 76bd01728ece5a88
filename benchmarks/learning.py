"""What we ran for real, each at a stated size that two cores can carry.

`.venv/bin/python benchmarks/learning.py NAME` runs what of it is not finished yet, in reproduce/NAME/, with its report
beside the runs; what is kept of that goes to benchmarks/results/NAME/. With `--draw` it only writes, also of runs that
are not finished.
"""

import dataclasses
import shutil
import sys
from pathlib import Path

from sunrise.experiments.executor import execute
from sunrise.experiments.outcome import outcome_of
from sunrise.experiments.paper import (
    HOPPER,
    RAINBOW,
    SAC,
    SUNRISE,
    SUNRISE_RAD,
    SUNRISE_RAINBOW,
    Experiment,
    Scale,
    under,
)
from sunrise.experiments.runs import expand
from sunrise.report.report import Options, make_report, write_report
from sunrise.report.results import find_runs

HERE = Path(__file__).parent
KEPT = ("results.csv", "report.md", "curves.png")
UNTUNED = "our default settings (T = 20, β = 1, λ = 1, not tuned)"
HOPPER_SCALE = Scale((HOPPER,), timesteps=20_000, seeds=3, eval_freq=2_000, eval_episodes=5)
FREEWAY_SCALE = Scale(("ALE/Freeway-v5",), timesteps=30_000, seeds=1, eval_freq=5_000, eval_episodes=5)
SMALL_PICTURES = {"render_size": 48, "crop_size": 40, "filters": 16, "net_arch": (256, 256)}
PIXELS_SCALE = Scale(
    ("dmc/cartpole-swingup",),
    timesteps=72_000,
    seeds=1,
    eval_freq=4_000,
    eval_episodes=5,
    settings={**SMALL_PICTURES, "batch_size": 64, "buffer_size": 10_000, "learning_starts": 250},
    simulator_steps=True,
)
PIXELS128_SCALE = dataclasses.replace(
    PIXELS_SCALE, timesteps=100_000, eval_freq=5_000, settings={**SMALL_PICTURES, "batch_size": 128}
)
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "hopper",
            f"SAC (N = 1) and SUNRISE (N = 5) on the paper's Hopper, {UNTUNED}",
            (SAC, SUNRISE),
            HOPPER_SCALE,
            HOPPER_SCALE,
            note="A tenth of the paper's timesteps and three seeds.",
        ),
        Experiment(
            "freeway",
            f"Rainbow (N = 1) and SUNRISE (N = 5) on Freeway, {UNTUNED}",
            (RAINBOW, SUNRISE_RAINBOW),
            FREEWAY_SCALE,
            FREEWAY_SCALE,
            published_as="100,000 timesteps, 3 runs, the authors' protocol",
            note="Three tenths of the paper's timesteps for one agent, and 15,000 for five: what an hour of a busy "
            "machine carried. One seed: an observation, not a comparison.",
        ),
        Experiment(
            "pixels",
            "SUNRISE on RAD with two members on cartpole-swingup, T = 10, β = 1, λ = 1, not tuned",
            (under(SUNRISE_RAD, ensemble_size=2),),
            PIXELS_SCALE,
            PIXELS_SCALE,
            note="A size that two cores can carry: 48 x 48 pictures cropped to 40, 16 filters, heads of 256 units, "
            "batches of 64, the first update after 250 timesteps, a buffer of 10,000, 72,000 of the paper's 100,000 "
            "simulator steps. It shows that it learns, and compares with nothing.",
        ),
        Experiment(
            "pixels128",
            "SUNRISE on RAD with two members on cartpole-swingup, T = 10, β = 1, λ = 1, not tuned",
            (under(SUNRISE_RAD, ensemble_size=2),),
            PIXELS128_SCALE,
            PIXELS128_SCALE,
            note="The same small pictures and networks with batches of 128; all else is RAD's. Stopped by time before "
            "its 100,000 simulator steps.",
        ),
    )
}


def main(name: str, *options_given: str) -> None:
    """Run one of them and write its report."""
    experiment = EXPERIMENTS[name]
    runs = expand(experiment, experiment.paper, HERE.parent / "reproduce" / name, "ours", {})
    if "--draw" not in options_given:
        execute(runs)
    found = outcome_of(experiment, experiment.paper, runs, "paper", "ours")
    options = Options(unfinished="--draw" in options_given)
    report = make_report(find_runs(found.folders).runs, options, found.cautions, found.title, found.about, found.arms)
    folder = HERE.parent / "reproduce" / name / "report"
    write_report(report, folder)
    for file in KEPT:
        shutil.copyfile(folder / file, HERE / "results" / name / file)


if __name__ == "__main__":
    if not sys.argv[1:] or sys.argv[1] not in EXPERIMENTS:
        raise SystemExit(f"usage: learning.py {'|'.join(EXPERIMENTS)} [--draw]")
    main(*sys.argv[1:])
