"""The agents of a run with their optimisers: one object owns them, everybody else asks it.

An update takes the memory of the state it is given, so a second reference to that state would soon be a dead one.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from sunrise.ensemble import Choice, Ensemble, Placement, Report, Sunrise, Tally
from sunrise.randomness import root_key
from sunrise.run.state import LiveState
from sunrise.types import AnyArray, Observation, Sample


class LiveEnsemble:
    """An ensemble that acts and learns: its state, its compiled functions and the numbers that they take."""

    def __init__(self, functions: Sunrise, numbers: Any, seed: int, placement: Placement, initial: bool = True) -> None:
        """A new ensemble in its place; without `initial` only its shapes, until `restore`."""
        self.functions, self.placement = functions, placement
        self.ensemble: Ensemble
        self.tally: Tally
        key = root_key(seed, "init")
        with jax.default_device(placement.first):
            if initial:
                self.ensemble, self.tally = functions.init(key, numbers)
            else:
                self.ensemble, tally = jax.eval_shape(functions.init, key, numbers)
                self.tally = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), tally)
        # Put there, and not only made there: every call they are given to then runs on their devices.
        self.tally, self.numbers = placement.put_shared(self.tally), placement.put_shared(numbers)
        self.ensemble = placement.put(self.ensemble) if initial else self.ensemble

    def update(self, sample: Sample, key: PRNGKeyArray) -> Report:
        """One update of all members; the state before it is gone."""
        self.ensemble, self.tally, report = self.functions.update(self.ensemble, self.tally, sample, key, self.numbers)
        return report

    def observe(self, obs: Observation) -> None:
        """Take note of obs[E], which is acted on next, where the learner does so."""
        if self.functions.observe is not None:
            members = self.functions.observe(self.ensemble.members, obs, self.numbers)
            self.ensemble = self.ensemble._replace(members=members)

    def elapse(self, steps: int, envs: int) -> None:
        """Take note that `envs` environments have made so many steps, before a round of updates."""
        if self.functions.elapse is not None:
            members = self.functions.elapse(self.ensemble.members, np.int32(steps), np.int32(envs), self.numbers)
            self.ensemble = self.ensemble._replace(members=members)

    def explore(self, obs: Observation, acting: AnyArray, key: PRNGKeyArray, counter: int) -> Choice:
        """An exploring action[E] for obs[E]; `acting` is the member of each environment where one member acts."""
        return self.functions.explore(self.ensemble.members, obs, acting, key, np.int32(counter), self.numbers)

    def exploit(self, obs: Observation) -> np.ndarray:
        """The ensemble's action[E] for obs[E] without noise, in its own scale."""
        return np.asarray(self.functions.exploit(self.ensemble.members, obs, self.numbers))

    def uncertainty(self, obs: Observation, action: AnyArray) -> np.ndarray:
        """The standard deviation of all critics' values of action[B] at obs[B]: [B]."""
        return np.asarray(self.functions.uncertainty(self.ensemble.members, obs, action, self.numbers))

    def faults(self, sample: Sample, key: PRNGKeyArray, numbers: Any) -> list[str]:
        """Names what is not finite in an update that was refused."""
        return self.functions.faults(self.ensemble, sample, key, numbers)

    def set_learning_rate(self, rate: float) -> None:
        """Learn at this rate from the next update on."""
        learner = self.numbers.learner
        rate_now = self.placement.put_shared(jax.numpy.asarray(rate, learner.learning_rate.dtype))
        learner = learner._replace(learning_rate=rate_now)
        self.numbers = self.numbers._replace(learner=learner)

    def clear_tally(self) -> None:
        """Begin new sums."""
        self.tally = jax.tree.map(jax.numpy.zeros_like, self.tally)

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(np.asarray(self.ensemble.step))

    def state(self) -> LiveState:
        return LiveState(self.ensemble, self.tally)

    def restore(self, state: LiveState) -> None:
        self.ensemble = self.placement.put(state.ensemble)
        self.tally = self.placement.put_shared(jax.tree.map(jax.numpy.array, state.tally))
