"""A training from its first event to its last: the loop with all that may end it early."""

import threading

from sunrise.errors import EnvironmentFailedError, NonFiniteError
from sunrise.run.collect import A_MOMENT
from sunrise.run.events import CallbackExit, Ended, Failed, Started, StopRunError
from sunrise.run.loop import Trainer
from sunrise.signals import Waiting, interruptible


def supervise(trainer: Trainer, until: int) -> None:
    """Train until `until` timesteps or until a callback says no; saved on the way, at the end and at Ctrl-C.

    A failure leaves the checkpoints as they are and is told to the sinks.
    """
    events, evaluator = trainer.events, trainer.evaluator
    try:
        events.send(Started(trainer.config, trainer.timesteps, until, trainer.action_repeat))
        try:
            train(trainer, until)
        except CallbackExit:
            raise
        except SystemExit as error:
            failure = EnvironmentFailedError(f"the environment raised SystemExit at timestep {trainer.timesteps:,}.")
            events.send(Failed(trainer.timesteps, failure, trainer.live.ensemble))
            raise failure from error
        except Exception as error:
            events.send(Failed(trainer.timesteps, error, trainer.live.ensemble))
            if isinstance(error, NonFiniteError) and error.saved_in is None:
                error.say_where_the_state_is()
            raise
    finally:
        trainer.collector.stopping = threading.Event()
        try:
            events.close()
        finally:
            if evaluator is not None:
                evaluator.close()


def train(trainer: Trainer, until: int) -> None:
    """The loop to its end, or to where a signal, a callback or an environment ends it."""
    events, collector, evaluator = trainer.events, trainer.collector, trainer.evaluator
    waiting: list[Waiting] = [collector] if evaluator is None else [collector, evaluator]
    with interruptible(waiting, trainer.config.run.env_timeout) as asked:
        collector.stopping = asked
        try:
            try:
                trainer.run(until)
            except StopRunError:
                trainer.check_finite()
            # Saved before the last row and the last evaluation: if the run is extended, they are made elsewhere.
            events.send(trainer.checkpoint())
            trainer.finish()
            events.send(Ended(trainer.timesteps, "finished", trainer.state))
        except (KeyboardInterrupt, CallbackExit, EnvironmentFailedError) as error:
            # What fails at the moment of a signal was struck by it too.
            if isinstance(error, EnvironmentFailedError) and not asked.wait(A_MOMENT):
                raise
            stop(trainer)
            if isinstance(error, CallbackExit):
                raise
            raise KeyboardInterrupt from None


def stop(trainer: Trainer) -> None:
    """Save where all parts are at the same step, and say that the run is stopped."""
    ended = Ended(trainer.timesteps, "stopped", trainer.state)
    try:
        if trainer.between_steps:  # a second Ctrl-C does not wait for that: the last checkpoint holds
            trainer.events.send(trainer.checkpoint())
        trainer.events.send(ended)
    except KeyboardInterrupt:
        trainer.events.send(ended)


def why_nothing_was_learned(trainer: Trainer) -> str:
    """A training without a single update is not what anybody asked for: what was in its way."""
    training = trainer.config.training
    if trainer.timesteps <= training.learning_starts:
        starts = f"learning_starts is {training.learning_starts:,}"
        return f"{starts} and the training ended at timestep {trainer.timesteps:,}"
    count = trainer.collector.count
    if training.train_freq_unit == "episode" or trainer.timesteps < training.train_freq * count:
        each = f" of {count} environments" if count > 1 else ""
        return f"train_freq is {training.train_freq:,} {training.train_freq_unit}s{each}"
    return "the replay buffer never held what an update needs"
