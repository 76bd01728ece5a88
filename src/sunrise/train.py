"""The loop. It receives its parts and knows no algorithm."""

import logging
import time
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np

from sunrise.collect import Collector
from sunrise.config.groups import Config
from sunrise.ensemble import Report, bootstrap_mask, looks_at_disagreement
from sunrise.envs.make import to_env, uniform_actions
from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.evaluate import Evaluation, Evaluator
from sunrise.randomness import generator, root_key
from sunrise.replay.rings import Rows
from sunrise.run.events import CheckpointDue, Evaluated, EventStream, MetricsRow, Stepped
from sunrise.run.live import LiveEnsemble
from sunrise.run.state import Counters, LoopState, RunState
from sunrise.types import Episode, Replay, Sample

log = logging.getLogger("sunrise")
FLAT, FLAT_UPDATES = 0.01, 10_000
"""A weight whose 5 to 95 % range is below the first for so many updates tells no backup from another."""


class Pending(NamedTuple):
    """An update whose outcome has not been looked at yet."""

    report: Report
    sample: Sample
    numbers: Any
    timesteps: int


class Trainer:
    """What a run carries from step to step, and the loop that moves it."""

    def __init__(
        self,
        config: Config[Any],
        live: LiveEnsemble,
        collector: Collector,
        replay: Replay,
        learning_rate: Callable[[float], float] | None = None,
        action_repeat: int = 1,
    ) -> None:
        seed = config.run.seed
        self.config, self.live = config, live
        self.collector, self.replay = collector, replay
        self.evaluator: Evaluator | None = None
        self.events = EventStream()
        self.learning_rate, self.action_repeat = learning_rate, action_repeat
        self.action_space: gym.Space[Any] = collector.env.single_action_space
        self.explore_key, self.update_key = root_key(seed, "explore"), root_key(seed, "update")
        self.mask_rng, self.warmup_rng = generator(seed, "masks"), generator(seed, "warmup")
        self.decisions, self.updates, self.episodes = 0, 0, 0
        self.start_from(0)
        self.steps_since_round, self.rows_since_round = 0, 0
        self.log_episodes = 0
        """Log after this many episodes; 0: after `log_freq` timesteps."""
        self.candidates = ("chosen", config.ensemble.ensemble_size)
        """What exploration chooses between: the members, or the actions where all of a finite set are ranked."""
        if isinstance(self.action_space, gym.spaces.Discrete) and config.ensemble.exploration == "ucb":
            self.candidates = ("action", int(self.action_space.n))
        self.chosen = np.zeros(self.candidates[1], np.int64)
        self.finished: list[Episode] = []
        self.last_evaluation: Evaluation | None = None
        self.last_return: float | None = None
        self.evaluated_at = -1
        self.flat_updates = 0
        """Updates since the weight last told backups apart; -1 once that has been said."""
        self._pending: Pending | None = None
        self.between_steps = True
        """Whether all parts are at the same step, so that a snapshot is one moment of the run."""

    def start_from(self, timesteps: int) -> None:
        """Count timesteps from here, and log, evaluate and save at multiples of their intervals."""
        run = self.config.run
        self.timesteps = timesteps
        self.start_clock()
        intervals = (run.log_freq, run.eval_freq, run.save_freq)
        self.next_log, self.next_eval, self.next_save = (
            every * (timesteps // max(every, 1) + 1) for every in intervals
        )

    @property
    def env_steps(self) -> int:
        """Simulator steps so far."""
        return self.timesteps * self.action_repeat

    def start_clock(self) -> None:
        """Rates are counted from here."""
        self._start = time.perf_counter()
        self._clock = (self._start, self.timesteps, self.updates)

    def run(self, until: int) -> None:
        """Train until `until` timesteps, or until somebody asks to stop."""
        while self.timesteps < until:
            self.between_steps = False
            action = self.act()
            collected = self.collector.step(to_env(action, self.action_space), action, self.timesteps)
            rows = len(collected.batch.reward)
            ensemble = self.config.ensemble
            force = ensemble.empty_masks == "forced"
            mask = bootstrap_mask(self.mask_rng, rows, ensemble.ensemble_size, ensemble.bootstrap_prob, force)
            self.replay.add(collected, mask)
            self.timesteps += rows
            self.count(collected.episodes)
            self.learn(rows, until)
            self.watch()
            self.between_steps = True
            self.events.send(Stepped(self.timesteps, self.env_steps, collected.episodes))
            if self.collector.stopping.is_set():
                self.check_finite()
                raise KeyboardInterrupt
        self.check_finite()

    def act(self) -> np.ndarray:
        """The ensemble's exploring action in each environment; uniform random ones at first."""
        training = self.config.training
        self.decisions += 1
        self.live.observe(self.collector.obs)
        if self.timesteps < training.learning_starts and training.warmup == "uniform":
            return uniform_actions(self.warmup_rng, self.action_space, self.collector.count)
        acting = np.array(self.collector.acting, np.int32)
        choice = self.live.explore(self.collector.obs, acting, self.explore_key, self.decisions)
        self.chosen += np.bincount(np.asarray(choice.candidate), minlength=self.chosen.size)
        return np.asarray(choice.action)

    def learn(self, rows: int, until: int) -> None:
        """The updates that are due: `gradient_steps` after every `train_freq` steps."""
        training = self.config.training
        self.steps_since_round += 1
        self.rows_since_round += rows
        if self.steps_since_round < training.train_freq:
            return
        due = self.rows_since_round if training.gradient_steps < 0 else training.gradient_steps
        self.steps_since_round = self.rows_since_round = 0
        if self.timesteps <= training.learning_starts or not self.replay.ready_to_sample:
            return
        if self.learning_rate is not None:
            self.live.set_learning_rate(self.learning_rate(1 - self.timesteps / until))
        for _ in range(due):
            sample, index = self.replay.sample(training.batch_size, self.timesteps)
            self.check_finite()
            report = self.live.update(sample, self.update_key)
            self._pending = Pending(report, sample, self.live.numbers, self.timesteps)
            if self.replay.prioritised:
                self.replay.reprioritise(index, np.asarray(report.priority))
        self.updates += due

    def check_finite(self) -> None:
        """Stop at an update that was refused; the ensemble is still the one before it."""
        pending, self._pending = self._pending, None
        if pending is None or bool(pending.report.finite):
            return
        faults = self.live.faults(pending.sample, self.update_key, pending.numbers)
        error = NonFiniteError(
            f"{faults[0] if faults else 'a value'} in update {self.live.step + 1:,}",
            pending.timesteps,
            "The update was refused; a smaller learning_rate often helps.",
        )
        error.faults, error.sample = faults, pending.sample
        raise error

    def count(self, episodes: list[Episode]) -> None:
        self.finished += episodes
        self.episodes += len(episodes)
        if episodes:
            self.last_return = episodes[-1].total

    def watch(self) -> None:
        """Log, evaluate and save when it is time."""
        run = self.config.run
        if len(self.finished) >= self.log_episodes if self.log_episodes else self.timesteps >= self.next_log:
            self.next_log += run.log_freq
            self.log()
        if run.eval_freq and self.timesteps >= self.next_eval:
            self.next_eval += run.eval_freq
            self.evaluate()
        if run.save_freq and self.timesteps >= self.next_save:
            self.next_save += run.save_freq
            self.check_finite()
            self.events.send(self.checkpoint())

    def evaluate(self) -> None:
        """An evaluation, done again where an environment failed: it has no state, and is the same the next time."""
        self.check_finite()
        result: Evaluation | None = None
        while result is None:
            if self.evaluator is None:
                return
            try:
                result = self.evaluator(number=self.timesteps)
            except EnvironmentFailedError as error:
                self.collector.endure(error, "The evaluation is done again")
        self.last_evaluation, self.evaluated_at = result, self.timesteps
        self.events.send(Evaluated(self.timesteps, self.env_steps, Evaluation([*result.returns], [*result.lengths])))

    def finish(self) -> None:
        """The last row and the last evaluation, where they have not just been made."""
        if self.finished or int(self.live.tally.updates):
            self.log()
        if self.config.run.eval_freq and self.evaluated_at != self.timesteps:
            self.evaluate()

    def checkpoint(self) -> CheckpointDue:
        """The run is to be kept as it is now."""
        return CheckpointDue(self.timesteps, self.state)

    def log(self) -> None:
        """One row of what happened since the last."""
        self.check_finite()
        row = self.row()
        self.watch_weight(row)
        self.live.clear_tally()
        self.chosen[:], self.finished = 0, []
        self.events.send(MetricsRow(MappingProxyType(row)))

    def watch_weight(self, row: dict[str, Any]) -> None:
        """Say once that the weight is dead: every backup counts the same, whatever the critics think of it."""
        if self.flat_updates < 0 or "train/weight_mean" not in row or not looks_at_disagreement(self.config.ensemble):
            return
        flat = row["train/weight_p95"] - row["train/weight_p05"] < FLAT
        self.flat_updates = self.flat_updates + int(self.live.tally.updates) if flat else 0
        if self.flat_updates >= FLAT_UPDATES:
            log.warning(
                "The weight of backups is dead: for %s updates 90 %% of them were within %s of each other, at %.3f "
                'on average, while the critics disagree by %.3g. weighting="relative" (--weighting relative) does not '
                "depend on the scale of rewards.",
                *(f"{self.flat_updates:,}", FLAT, row["train/weight_mean"], row["train/disagreement_mean"]),
            )
            self.flat_updates = -1

    def row(self) -> dict[str, Any]:
        """Means since the last row; what depends on the clock begins with `time/`."""
        row: dict[str, Any] = {
            "timesteps": self.timesteps,
            "env_steps": self.env_steps,
            "episodes": self.episodes,
            "updates": self.updates,
            "replay_size": len(self.replay),
            "env_restarts": self.collector.restarts.total,
        }
        if self.finished:
            row["rollout/return_mean"] = float(np.mean([e.total for e in self.finished]))
            row["rollout/length_mean"] = float(np.mean([e.length for e in self.finished]))
        tally = jax.device_get(self.live.tally)
        if tally.updates:
            row |= {f"train/{name}": float(total / tally.updates) for name, total in tally.sums.items()}
        if self.chosen.sum():
            row |= {f"{self.candidates[0]}/{i}": float(f) for i, f in enumerate(self.chosen / self.chosen.sum())}
        now, (then, timesteps, updates) = time.perf_counter(), self._clock
        self._clock = (now, self.timesteps, self.updates)
        row["time/elapsed_s"] = now - self._start
        row["time/steps_per_s"] = (self.timesteps - timesteps) / (now - then)
        row["time/updates_per_s"] = (self.updates - updates) / (now - then)
        row["time/update_compilations"] = self.live.functions.update._cache_size()  # type: ignore[attr-defined]
        return row

    def state(self) -> RunState:
        """All of the run as it is now: of this object and of every part."""
        loop = LoopState(
            Counters(*(getattr(self, name) for name in Counters._fields)),
            chosen=self.chosen,
            finished=self.finished,
            last_evaluation=self.last_evaluation,
            mask_rng=self.mask_rng.bit_generator.state,
            warmup_rng=self.warmup_rng.bit_generator.state,
        )
        return RunState(self.live.state(), loop, self.collector.state(), self.replay.state())

    def restore(self, state: RunState, segments: Iterable[Rows]) -> None:
        """Become what the run was when `state` was taken; the rows of its replay buffer come apart."""
        loop = state.loop
        self.live.restore(state.live)
        self.replay.restore(state.replay, segments)
        self.collector.restore(state.collector, loop.counters.timesteps)
        for name, count in loop.counters._asdict().items():
            setattr(self, name, count)
        self.chosen, self.finished, self.last_evaluation = loop.chosen.copy(), list(loop.finished), loop.last_evaluation
        self.mask_rng.bit_generator.state, self.warmup_rng.bit_generator.state = loop.mask_rng, loop.warmup_rng
        self.start_clock()

    def repeat_episodes(self) -> None:
        """Bring the environments back to where they were; one that does not arrive begins a new episode."""
        for e, why in self.collector.repeat_episodes().items():
            log.warning(
                "Environment %d did not come back to where it was: %s. "
                "It goes on with a new episode, so this run is not bit for bit the one that was never stopped.",
                *(e, why),
            )
