"""Learning on the paper's Hopper: one SAC agent against SUNRISE with five, 3 seeds each, 20,000 timesteps.

`.venv/bin/python benchmarks/hopper.py` runs what is not finished yet (about 40 minutes on 2 cores) and writes
results.csv, table.md and figure.png to benchmarks/results/hopper/. The runs themselves stay in reproduce/hopper/.
"""

import sys
from pathlib import Path

from sunrise.experiments.outcome import write_outcome
from sunrise.experiments.paper import HOPPER, SAC, SUNRISE, Experiment, Scale
from sunrise.experiments.plan import execute, expand, protocol, results

HERE = Path(__file__).parent
SCALE = Scale((HOPPER,), timesteps=20_000, seeds=3, eval_freq=2_000, eval_episodes=5)
EXPERIMENT = Experiment(
    "hopper",
    "SAC (N = 1) and SUNRISE (N = 5) on the paper's Hopper, our default settings (T = 20, β = 1, λ = 1, not tuned)",
    (SAC, SUNRISE),
    SCALE,
    SCALE,
    note="A tenth of the paper's timesteps and three seeds.",
)

if __name__ == "__main__":
    runs = expand(EXPERIMENT, SCALE, HERE.parent / "reproduce" / "hopper", "ours", {})
    if sys.argv[1:] != ["--draw"]:
        execute(runs)
    rows = results(runs)
    label = protocol(EXPERIMENT, SCALE, runs, rows, "paper", "ours")
    write_outcome(EXPERIMENT, SCALE, rows, HERE / "results" / "hopper", label)
