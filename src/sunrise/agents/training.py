"""Training an agent: the parts of a run put together, and the loop with all that surrounds it."""

import threading
from collections.abc import Callable
from typing import Any

from sunrise.agents.environments import Environments
from sunrise.agents.life import Life
from sunrise.agents.reporter import Reporter
from sunrise.collect import A_MOMENT, Collector
from sunrise.config.groups import Config
from sunrise.errors import EnvironmentFailedError
from sunrise.evaluate import Evaluator
from sunrise.randomness import generator
from sunrise.signals import Waiting, interruptible
from sunrise.train import Trainer, Watchers
from sunrise.types import Episode


def make_collector(environments: Environments, config: Config[Any]) -> Collector:
    """What steps the environments that are learned in."""
    training, run = config.training, config.run
    return Collector(
        environments.vector,
        run.seed,
        config.ensemble.ensemble_size,
        generator(run.seed, "members"),
        training.gamma,
        training.truncation,
        training.reward_noise,
        run.max_env_restarts,
    )


class CallbackExit(SystemExit):
    """The user's own callback ended the program: the run is stopped. In an environment, it is a failure."""


def called(on_step: Callable[[list[Episode]], bool], episodes: list[Episode]) -> bool:
    """What the callback says."""
    try:
        return on_step(episodes)
    except SystemExit as error:
        raise CallbackExit(error.code) from None


def stop(trainer: Trainer, life: Life) -> None:
    """Save where all parts are at the same step, and say that the run is stopped."""
    try:
        if trainer.between_steps:  # a second Ctrl-C does not wait for that: the last checkpoint holds
            life.save(trainer)
        life.end(trainer, "stopped")
    except KeyboardInterrupt:
        life.end(trainer, "stopped")


def train(
    trainer: Trainer,
    until: int,
    evaluator: Evaluator | None,
    reporter: Reporter,
    life: Life,
    on_step: Callable[[list[Episode]], bool],
) -> None:
    """Train until `until` timesteps or until `on_step` says no; saved on the way, at the end and at Ctrl-C.

    A failure leaves the checkpoints as they are and is recorded beside them.
    """
    run, collector = trainer.config.run, trainer.collector
    evaluate = None if evaluator is None else lambda at: evaluator(number=at)
    trainer.watchers = Watchers(evaluate, reporter.metrics, reporter.evaluation, life.save)
    waiting: list[Waiting] = [collector] if evaluator is None else [collector, evaluator]
    try:
        with reporter.line, interruptible(waiting, run.env_timeout) as asked:
            collector.stopping = asked
            try:
                for episodes in trainer.run(until):
                    reporter.line.step(trainer)
                    life.poll()
                    wanted = called(on_step, episodes)
                    if asked.is_set():
                        trainer.check_finite()
                        raise KeyboardInterrupt
                    if not wanted:
                        break
                # Saved before the last row and the last evaluation: if the run is extended, they are made elsewhere.
                life.save(trainer)
                trainer.finish()
                life.end(trainer, "finished", run.keep_replay)
            except (KeyboardInterrupt, CallbackExit, EnvironmentFailedError) as error:
                # What fails at the moment of a signal was struck by it too.
                if isinstance(error, EnvironmentFailedError) and not asked.wait(A_MOMENT):
                    raise
                stop(trainer, life)
                if isinstance(error, CallbackExit):
                    raise
                raise KeyboardInterrupt from None
    except CallbackExit:
        raise
    except SystemExit as error:
        failure = EnvironmentFailedError(f"the environment raised SystemExit at timestep {trainer.timesteps:,}.")
        raise life.fail(trainer, failure) from error
    except Exception as error:
        raise life.fail(trainer, error) from error.__cause__
    finally:
        collector.stopping = threading.Event()
        reporter.close()
        life.close()
        if evaluator is not None:
            evaluator.close()
