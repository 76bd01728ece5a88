"""Who acts best in an ensemble that has learned: the mean action, one member alone, or UCB as in training.

`.venv/bin/python benchmarks/acting.py` reads the last checkpoint of every finished ensemble of evidence/ (not
committed, so on the machine that made them) and plays the ten episodes of the run's own evaluations once more with
each. Its rows go to `acting.csv` beside the other rows that are kept of the run; docs/results/ shows them.
"""

import argparse
import csv
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from evidence import Run, finished, ladder
from sunrise.agents import Agent, load_run
from sunrise.randomness import root_key
from sunrise.run.evaluate import Evaluator, Policy
from sunrise.types import Observation, rows

EPISODES = 10


class Way(NamedTuple):
    """How an ensemble acts."""

    name: str
    policy: Policy


def ways(model: Agent) -> Iterator[Way]:
    """The mean of all members' actions, what each of them does, both without noise, and UCB among noisy proposals."""
    live = model.live
    yield Way("mean", live.exploit)
    for member in range(model.config.ensemble.ensemble_size):
        yield Way(f"member {member + 1}", alone(model, member))
    yield Way("UCB", exploring(model))


def alone(model: Agent, member: int) -> Policy:
    """An ensemble of this member: its own action is the mean."""
    one = jax.tree.map(lambda leaf: leaf[member : member + 1], model.ensemble.members)

    def policy(obs: Observation) -> np.ndarray:
        return np.asarray(model.sunrise.exploit(one, obs, model.numbers))

    return policy


def exploring(model: Agent) -> Policy:
    """As in training."""
    key, steps = root_key(model.config.run.seed, "acting"), iter(range(10**9))

    def policy(obs: Observation) -> np.ndarray:
        nobody = np.zeros(rows(obs), np.int32)
        return np.asarray(model.live.explore(obs, nobody, key, next(steps)).action)

    return policy


def measure(run: Run) -> None:
    """Play with each way, and keep the returns."""
    model = load_run(run.folder)
    make = model.environments.make if model.environments else None
    assert make is not None, "a run that is loaded has its environment, by its id"
    with (run.kept / "acting.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["way", "episode", "return"])
        for way in ways(model):
            evaluator = Evaluator(make, way.policy, model.action_space, model.config.run, 0.0)
            returns = evaluator(EPISODES).returns
            evaluator.close()
            writer.writerows([way.name, episode, f"{value:.6g}"] for episode, value in enumerate(returns, 1))
            print(f"{run.name}  {way.name:9} {np.mean(returns):8.1f} ± {np.std(returns):.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rungs", nargs="*", default=["4-table1"], help="whose ensembles; default: 4-table1")
    options = parser.parse_args()
    for run in ladder():
        several = run.settings.get("ensemble_size") != 1
        if run.rung in options.rungs and several and finished(run) and not (run.kept / "acting.csv").exists():
            measure(run)


if __name__ == "__main__":
    main()
