"""Who acts best in an ensemble that has learned: the mean action, one member alone, or what explores in training.

`.venv/bin/python benchmarks/acting.py` reads the last checkpoint of every finished ensemble of evidence/ (not
committed, so on the machine that made them) and plays the episodes of the run's own evaluations once more with each.
Its rows go to `acting.csv` beside the other rows that are kept of the run; docs/results/ shows them.
"""

import argparse
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from evidence import Run, finished, ladder
from sunrise.agents import Agent, load_run
from sunrise.randomness import root_key
from sunrise.run.evaluate import Evaluator, Policy
from sunrise.types import Observation, rows


class Way(NamedTuple):
    """How an ensemble acts."""

    name: str
    policy: Policy


def ways(model: Agent) -> Iterator[Way]:
    """The mean of all members' actions, what each of them does, both without noise, and what explores in training."""
    yield Way("mean", model.live.exploit)
    for member in range(model.config.ensemble.ensemble_size):
        yield Way(f"member {member + 1}", alone(model, member))
    yield Way("exploring", exploring(model))


def alone(model: Agent, member: int) -> Policy:
    """An ensemble of this member: its own action is the mean."""
    one = jax.tree.map(lambda leaf: leaf[member : member + 1], model.ensemble.members)

    def policy(obs: Observation) -> np.ndarray:
        return np.asarray(model.sunrise.exploit(one, obs, model.numbers))

    return policy


def exploring(model: Agent) -> Policy:
    """As in training: with noise, by UCB, or in each environment another member."""
    key, steps = root_key(model.config.run.seed, "acting"), itertools.count()

    def policy(obs: Observation) -> np.ndarray:
        acting = np.arange(rows(obs), dtype=np.int32) % model.config.ensemble.ensemble_size
        return np.asarray(model.live.explore(obs, acting, key, next(steps)).action)

    return policy


def measure(run: Run) -> None:
    """Play with each way, and keep the returns."""
    model = load_run(run.folder)
    make = model.environments.make if model.environments else None
    assert make is not None, "a run that is loaded has its environment, by its id"
    lines = ["way,episode,return"]
    for way in ways(model):
        evaluator = Evaluator(make, way.policy, model.action_space, model.config.run, 0.0)
        returns = evaluator().returns
        evaluator.close()
        lines += [f"{way.name},{episode},{value:.6g}" for episode, value in enumerate(returns, 1)]
        print(f"{run.name}  {way.name:9} {np.mean(returns):8.1f} ± {np.std(returns):.1f}", flush=True)
    (run.kept / "acting.csv").write_text("\n".join([*lines, ""]))  # all of it or nothing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    rungs = sorted({run.rung for run in ladder()})
    parser.add_argument("--rungs", nargs="*", default=["4-table1"], choices=rungs, help="default: 4-table1")
    options = parser.parse_args()
    for run in ladder():
        several = run.settings.get("ensemble_size") != 1
        if run.rung in options.rungs and several and finished(run) and not (run.kept / "acting.csv").exists():
            measure(run)


if __name__ == "__main__":
    main()
