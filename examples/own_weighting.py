"""A weighting scheme of your own: backups that the critics disagree on far more than usual count half.

    python examples/own_weighting.py

A scheme is a pure function of what the target critics think. What it remembers from update to update is an array in
the ensemble's state: it is saved in every checkpoint, and a resumed run goes on with it. A run's files hold the name of
the scheme and nothing that runs, so whoever resumes the run imports this module first.
"""

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import sunrise
from sunrise.ensemble import Evidence, RunningMean, Scheme, new_running_mean, register_weighting

UNUSUAL = 1.5
"""How many times the usual disagreement is too much."""


def cautious(evidence: Evidence, usual: RunningMean, key: PRNGKeyArray) -> tuple[Array, RunningMean]:
    """1, or 0.5 where critics disagree by more than `UNUSUAL` times their mean disagreement so far. [M, B]."""
    usual = usual.updated(evidence.spread.mean())
    return jnp.where(evidence.spread > UNUSUAL * usual.value, 0.5, 1.0), usual


register_weighting("cautious", Scheme(cautious, init=new_running_mean))


if __name__ == "__main__":
    model = sunrise.SAC(
        "MlpPolicy",
        "Pendulum-v1",
        weighting="cautious",
        ensemble_size=3,
        net_arch=(64, 64),
        learning_starts=500,
        run_dir="runs/own_weighting",
        verbose=1,
    )
    model.learn(3000)
    print(
        "trained with", model.config.ensemble.weighting, "weights; go on with `sunrise.SAC.resume` after importing this"
    )
