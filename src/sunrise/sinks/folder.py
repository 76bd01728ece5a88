"""The run's folder as a sink: the record of a run, written as it happens."""

from sunrise.config.settings import flatten_config
from sunrise.run.events import CheckpointDue, Ended, Evaluated, Event, Failed, MetricsRow, Started, Stepped
from sunrise.sinks.tensorboard import TensorBoard
from sunrise.store.logs import EVAL_FIELDS
from sunrise.store.session import Session


class FolderSink:
    """metrics.jsonl, eval.csv, TensorBoard events, checkpoints, status.json and what is known of a failure."""

    name, essential = "the run's folder", True

    def __init__(self, session: Session) -> None:
        self.session, self.folder = session, session.folder
        self.tensorboard = TensorBoard(self.folder.files, self.folder.purge_step)
        self.keeps_replay = True

    def __call__(self, event: Event) -> None:
        session = self.session
        match event:
            case Stepped():
                session.poll()
            case MetricsRow() | Evaluated():
                self._append(event)
            case CheckpointDue(timesteps, state):
                session.save(timesteps, state)
            case Started():
                self.keeps_replay = event.config.run.keep_replay
                session.begin(flatten_config(event.config.run), event.timesteps, event.action_repeat)
            case Ended(timesteps, status, state):
                session.end(timesteps, status)
                if status == "finished" and not self.keeps_replay:
                    session.save(timesteps, state, with_replay=False)
                    session.settle()
            case Failed(timesteps, error, ensemble):
                session.fail(timesteps, error, ensemble)

    def _append(self, event: MetricsRow | Evaluated) -> None:
        with self.session.explained():
            self.folder.files.require_in_place()
            with self.folder.ownership.publishing():
                if isinstance(event, MetricsRow):
                    self.folder.logs.append_metrics(event.row)
                else:
                    row = {"timesteps": event.timesteps, **event.summary()}
                    self.folder.logs.append_evaluation([row[name] for name in EVAL_FIELDS])
            self.tensorboard(event)

    def close(self) -> None:
        try:
            self.tensorboard.close()
        finally:
            self.session.close()
