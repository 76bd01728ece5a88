"""The loop of a run. It receives its parts and knows no algorithm: read `Trainer.run` first."""

import logging
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sunrise.config.groups import Config
from sunrise.ensemble import Report, bootstrap_mask
from sunrise.envs.make import to_env, uniform_actions
from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.randomness import generator, root_key
from sunrise.rings import Rows
from sunrise.run.collect import Collector
from sunrise.run.evaluate import Evaluation, Evaluator
from sunrise.run.events import CheckpointDue, Evaluated, EventStream, MetricsRow, Stepped
from sunrise.run.live import LiveEnsemble
from sunrise.run.meter import Meter
from sunrise.run.reward_scale import RewardScale
from sunrise.run.state import Counters, LoopState, RunState
from sunrise.types import Episode, Replay, Sample

log = logging.getLogger("sunrise")


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
        random_actions: Callable[[float], float] | None = None,
    ) -> None:
        seed = config.run.seed
        self.config, self.live, self.collector, self.replay = config, live, collector, replay
        self.learning_rate, self.action_repeat = learning_rate, action_repeat
        self.random_actions = random_actions
        """The part of the training that is done -> the chance of a random action."""
        self.action_space: gym.Space[Any] = collector.env.single_action_space
        training = config.training
        self.reward_scale = RewardScale(collector.count, training.gamma) if training.normalise_rewards else None
        self.meter = Meter(config, self.action_space, live)
        self.evaluator: Evaluator | None = None
        self.events = EventStream()
        self.explore_key, self.update_key = root_key(seed, "explore"), root_key(seed, "update")
        self.mask_rng, self.warmup_rng = generator(seed, "masks"), generator(seed, "warmup")
        self.decisions, self.updates, self.episodes = 0, 0, 0
        self.start_from(0)
        self.steps_since_round, self.rows_since_round = 0, 0
        self.log_episodes = 0
        """Log after this many episodes; 0: after `log_freq` timesteps."""
        self.last_evaluation: Evaluation | None = None
        self.last_return: float | None = None
        self.evaluated_at = -1
        self._pending: Pending | None = None
        self.between_steps = True
        """Whether all parts are at the same step, so that a snapshot is one moment of the run."""

    def run(self, until: int) -> None:
        """Train until `until` timesteps, or until somebody asks to stop."""
        while self.timesteps < until:
            self.between_steps = False
            action, fresh = self.act(until), self.collector.length == 0
            collected = self.collector.step(to_env(action, self.action_space), action, self.timesteps)
            rows = len(collected.batch.reward)
            self.replay.add(collected, self.mask(rows))
            if self.reward_scale is not None:
                self.reward_scale.note(collected, fresh)
            self.timesteps += rows
            self.count(collected.episodes)
            self.learn(rows, len(collected.episodes), until)
            self.report()
            self.between_steps = True
            self.events.send(Stepped(self.timesteps, self.env_steps, collected.episodes, collected.seen))
            if self.collector.stopping.is_set():
                self.check_finite()
                raise KeyboardInterrupt
        self.check_finite()

    def act(self, until: int) -> np.ndarray:
        """The ensemble's exploring action in each environment; uniform random ones at first, or now and then."""
        training = self.config.training
        self.decisions += 1
        self.live.observe(self.collector.obs)
        if self.timesteps < training.learning_starts and training.warmup == "uniform":
            return uniform_actions(self.warmup_rng, self.action_space, self.collector.count)
        acting = np.array(self.collector.acting, np.int32)
        choice = self.live.explore(self.collector.obs, acting, self.explore_key, self.decisions)
        self.meter.count_choices(np.asarray(choice.candidate))
        action = np.asarray(choice.action)
        if self.random_actions is None:
            return action
        anything = uniform_actions(self.warmup_rng, self.action_space, self.collector.count)
        chance = self.random_actions(self.timesteps / until)
        return np.where(self.warmup_rng.random(self.collector.count) < chance, anything, action)

    def mask(self, rows: int) -> np.ndarray:
        """Which member may learn from which of the new transitions: [rows, N]."""
        settings = self.config.ensemble
        force = settings.empty_masks == "forced"
        return bootstrap_mask(self.mask_rng, rows, settings.ensemble_size, settings.bootstrap_prob, force)

    def count(self, episodes: list[Episode]) -> None:
        """Note the episodes that ended."""
        self.meter.finished += episodes
        self.episodes += len(episodes)
        if episodes:
            self.last_return = episodes[-1].total

    def learn(self, rows: int, episodes: int, until: int) -> None:
        """The updates that are due: `gradient_steps` after every `train_freq` steps, or episodes."""
        training = self.config.training
        self.steps_since_round += 1 if training.train_freq_unit == "step" else episodes
        self.rows_since_round += rows
        if self.steps_since_round < training.train_freq:
            return
        due = self.rows_since_round if training.gradient_steps < 0 else training.gradient_steps
        self.live.elapse(
            self.steps_since_round if training.train_freq_unit == "step" else self.rows_since_round,
            self.collector.count,
        )
        self.steps_since_round = self.rows_since_round = 0
        if self.timesteps <= training.learning_starts or not self.replay.ready_to_sample:
            return
        if self.learning_rate is not None:
            self.live.set_learning_rate(self.learning_rate(1 - self.timesteps / until))
        for _ in range(due):
            sample, index = self.replay.sample(training.batch_size, self.timesteps)
            sample = sample if self.reward_scale is None else self.reward_scale.scaled(sample)
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

    # -- what is told of it --------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Log, evaluate and save when it is time."""
        run = self.config.run
        if len(self.meter.finished) >= self.log_episodes if self.log_episodes else self.timesteps >= self.next_log:
            self.next_log += run.log_freq
            self.log()
        if run.eval_freq and self.timesteps >= self.next_eval:
            self.next_eval += run.eval_freq
            self.evaluate()
        if run.save_freq and self.timesteps >= self.next_save:
            self.next_save += run.save_freq
            self.check_finite()
            self.events.send(self.checkpoint())

    def log(self) -> None:
        """One row of what happened since the last."""
        self.check_finite()
        row = self.row()
        self.meter.watch_weight(row)
        self.meter.clear()
        self.events.send(MetricsRow(MappingProxyType(row)))

    def row(self) -> dict[str, Any]:
        """What there is to log now."""
        scale = {} if self.reward_scale is None else {"rollout/reward_deviation": self.reward_scale.deviation}
        return scale | self.meter.row(
            {
                "timesteps": self.timesteps,
                "env_steps": self.env_steps,
                "episodes": self.episodes,
                "updates": self.updates,
                "replay_size": len(self.replay),
                "env_restarts": self.collector.restarts.total,
            }
        )

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
                self.collector.count_failure(error, "The evaluation is done again")
        self.last_evaluation, self.evaluated_at = result, self.timesteps
        self.events.send(Evaluated(self.timesteps, self.env_steps, Evaluation([*result.returns], [*result.lengths])))

    def checkpoint(self) -> CheckpointDue:
        """The run is to be saved as it is now."""
        return CheckpointDue(self.timesteps, self.state)

    def finish(self) -> None:
        """The last row and the last evaluation, where they have not just been made."""
        if self.meter.has_something:
            self.log()
        if self.config.run.eval_freq and self.evaluated_at != self.timesteps:
            self.evaluate()

    @property
    def env_steps(self) -> int:
        """Simulator steps so far."""
        return self.timesteps * self.action_repeat

    # -- state ---------------------------------------------------------------------------------------------------------

    def start_from(self, timesteps: int) -> None:
        """Count timesteps from here, and log, evaluate and save at multiples of their intervals."""
        run = self.config.run
        self.timesteps = timesteps
        self.meter.start_clock(timesteps, self.updates)
        intervals = (run.log_freq, run.eval_freq, run.save_freq)
        self.next_log, self.next_eval, self.next_save = (
            every * (timesteps // max(every, 1) + 1) for every in intervals
        )

    def state(self) -> RunState:
        """All of the run as it is now: of this object and of every part."""
        loop = LoopState(
            Counters(*(getattr(self, name) for name in Counters._fields)),
            last_evaluation=self.last_evaluation,
            mask_rng=self.mask_rng.bit_generator.state,
            warmup_rng=self.warmup_rng.bit_generator.state,
        )
        parts = self.live.state(), loop, self.meter.state(), self.collector.state(), self.replay.state()
        return RunState(*parts, rewards=self.reward_scale.state() if self.reward_scale else None)

    def restore(self, state: RunState, segments: Iterable[Rows]) -> None:
        """Become what the run was when `state` was taken; the rows of its replay buffer come apart."""
        loop = state.loop
        self.live.restore(state.live)
        self.replay.restore(state.replay, segments)
        self.collector.restore(state.collector, loop.counters.timesteps)
        self.meter.restore(state.meter)
        if self.reward_scale is not None and state.rewards is not None:
            self.reward_scale.restore(state.rewards)
        for name, count in loop.counters._asdict().items():
            setattr(self, name, count)
        self.last_evaluation = loop.last_evaluation
        self.mask_rng.bit_generator.state, self.warmup_rng.bit_generator.state = loop.mask_rng, loop.warmup_rng
        self.meter.start_clock(self.timesteps, self.updates)

    def repeat_episodes(self) -> None:
        """Bring the environments back to where they were; one that does not arrive begins a new episode."""
        for e, why in self.collector.repeat_episodes().items():
            log.warning(
                "Environment %d did not come back to where it was: %s. "
                "It goes on with a new episode, so this run is not bit for bit the one that was never stopped.",
                *(e, why),
            )
