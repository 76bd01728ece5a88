"""A training of an agent: its trainer with what that begins with, who is told of it, and the run from first to last."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from sunrise.agents.environments import make_collector
from sunrise.compat import replay as replay_file
from sunrise.compat.callbacks import CallbackArgument, CallbackSink
from sunrise.compat.logger import LoggerSink
from sunrise.compat.sb3 import FromVecEnv
from sunrise.config.groups import NEVER
from sunrise.config.resolve import as_begun
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError
from sunrise.run.events import EventStream, Sink
from sunrise.run.loop import Trainer
from sunrise.run.supervise import supervise, why_nothing_was_learned
from sunrise.sinks.chosen import trackers
from sunrise.sinks.console import ConsoleSink
from sunrise.sinks.folder import FolderSink
from sunrise.sinks.tensorboard import TensorBoard

if TYPE_CHECKING:
    from sunrise.agents.agent import Agent

NO_SECOND_ENV = (
    "a second environment is needed and cannot be made from this one; give `eval_env`, or an id or a class as `env`."
)
log = logging.getLogger("sunrise")


def train(
    agent: "Agent",
    until: int,
    callback: CallbackArgument | None,
    log_interval: int | None,
    tb_log_name: str | None,
    reset_num_timesteps: bool,
    progress_bar: bool,
) -> None:
    """Train an agent until so many timesteps; the others are the arguments of `Agent.learn`."""
    tracked = trackers(agent.config.run.tracking, agent.algo, agent.folder)
    evaluator = agent._evaluator() if agent.config.run.eval_freq else None
    if evaluator is None and agent.config.run.eval_freq and not isinstance(agent.env, FromVecEnv):
        log.warning("No evaluation while training: %s", NO_SECOND_ENV)
    trainer = ready_trainer(agent, reset_num_timesteps)
    trainer.log_episodes = log_interval or 0
    sinks: list[Sink] = [FolderSink(agent.session)] if agent.session else []
    shown = watching(agent, until, progress_bar, tb_log_name or agent.algo.upper(), reset_num_timesteps) + tracked
    if callback is not None:
        told = {"total_timesteps": until, "log_interval": log_interval, "tb_log_name": tb_log_name}
        told |= {"reset_num_timesteps": reset_num_timesteps, "progress_bar": progress_bar}
        sinks.append(CallbackSink(callback, agent, told))
    sinks += shown  # the logger after the callback: what that records goes with the row of its step
    trainer.events, trainer.evaluator = EventStream(sinks), evaluator
    before = trainer.updates, trainer.timesteps
    try:
        supervise(trainer, until)
    finally:
        trainer.events = EventStream()
    learns = agent.config.training.learning_starts < NEVER
    if learns and trainer.updates == before[0] and trainer.timesteps > before[1]:
        log.warning("Nothing was learned, not one update was made: %s.", why_nothing_was_learned(trainer))


def watching(agent: "Agent", until: int, progress_bar: bool, name: str, anew: bool) -> list[Sink]:
    """The sinks that show a training: where the logger takes our rows, it alone writes them."""
    root = agent.tensorboard_log
    others = None if root is None else TensorBoard.numbered(Path(root), name, anew)
    agent.logging.begin(agent.verbose, root, name, anew, others)
    tables = agent.verbose > 0 and not agent.logging.takes_rows
    sinks: list[Sink] = [ConsoleSink(until, progress_bar, tables)]
    if others is not None and not agent.logging.takes_rows:
        sinks.append(others)
    return [*sinks, LoggerSink(agent.logging, agent.ep_info_buffer)]


def ready_trainer(agent: "Agent", reset_num_timesteps: bool) -> Trainer:
    """The trainer of an agent: a new one, or the one there is with its experience."""
    if agent.env is None:
        raise SunriseError("there is no environment to learn in: give `env`, or call set_env first.")
    if agent.trainer is None:
        agent.config = as_begun(agent.config)
        trainer = new_trainer(agent)
        prefill_replay(agent, trainer)
        if agent.folder:
            about = flatten_config(agent.config) | ({"learning_rate": "schedule"} if agent.schedule else {})
            agent.folder.create(
                agent.algo, agent.policy_name, about, agent.action_repeat, agent.algorithm.imported_from
            )
        trainer.updates = agent.live.step
        trainer.start_from(0 if reset_num_timesteps else agent._timesteps)
    else:
        trainer = agent.trainer
        if reset_num_timesteps:
            trainer.start_from(0)
        touched = getattr(agent._vec_env, "touched", False) or isinstance(agent.env, FromVecEnv)
        if touched or (reset_num_timesteps and trainer.decisions):  # one that has not begun is at a beginning
            trainer.collector.begin_anew()
    if agent._vec_env is not None and hasattr(agent._vec_env, "touched"):
        agent._vec_env.touched = False
    trainer.config = agent.config
    prefill_replay(agent, trainer)  # a run that goes on from before its first checkpoint
    return trainer


def new_trainer(agent: "Agent") -> Trainer:
    """A trainer for an agent in its environments, with the experience that was read from a file, if there is any."""
    assert agent.environments is not None
    replay = agent._new_replay()
    if agent._replay is not None:
        replay, agent._replay = replay_file.moved(agent._replay, replay), None
    agent.trainer = Trainer(
        agent.config,
        agent.live,
        make_collector(agent.environments, agent.config),
        replay,
        agent.schedule,
        agent.action_repeat,
        agent.parts.random_actions,
    )
    return agent.trainer


def prefill_replay(agent: "Agent", trainer: Trainer) -> None:
    """Begin an empty replay buffer with the dataset that was asked for."""
    if not agent.config.training.prefill or len(trainer.replay):
        return
    from sunrise.offline.prefill import prefill

    try:
        prefill(trainer.replay, agent.config, agent.observation_space, agent.action_space, trainer.collector.count)
    except BaseException:
        agent.trainer = None  # what is half full is of no use
        raise
