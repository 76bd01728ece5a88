"""MLflow: a server, or a local store in a file."""

import contextlib
import logging
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sunrise.errors import DamagedError
from sunrise.files.folder import Folder, require_kind
from sunrise.sinks.scalars import Kind, Scalars
from sunrise.sinks.tracker import Has, Status, Told

log = logging.getLogger("sunrise")
STORE, ARTIFACTS = "mlflow.db", "mlartifacts"
MARKS: dict[Kind, str] = {"metrics": "run/timesteps", "evaluation": "eval/episodes"}
"""A value that every row of a kind has; a row is stored whole or not at all."""
STATUS: dict[Status, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
LONGEST, AT_ONCE, MOST_VALUES = 500, 100, 1000
"""Characters of a parameter, parameters of a request, and values of a request."""


class MLflow:
    """A run there has the settings as parameters and the rows as metrics by timestep."""

    name, extra = "MLflow", "mlflow"

    def __init__(self) -> None:
        self.client: Any = None
        self.run_id = ""
        self.films: Path | None = None
        """Where a local store has its films."""

    def open(self, run: Told) -> Has:
        """Begin a run, or go on with the one that is remembered, where the store knows it."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # whoever wants to be counted by MLflow says so
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        for talkative in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(talkative).setLevel(logging.WARNING)
        beside = (run.path.parent if run.path is not None else Path()).absolute()
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{beside / STORE}"
        self.films = None if os.environ.get("MLFLOW_TRACKING_URI") else beside / ARTIFACTS
        if self.films is not None and (found := Folder(beside).status(STORE)) is not None:
            require_kind(found, stat.S_IFREG, beside / STORE)
        self.client = MlflowClient(tracking_uri=uri)
        own = run.memory.id("[0-9a-f]{32}")
        if own is not None:
            with contextlib.suppress(MlflowException):
                self.client.update_run(own, status="RUNNING")
                self.run_id = own
                steps = {kind: self._steps(mark) for kind, mark in MARKS.items()}
                return lambda kind, step: step in steps[kind]
        self._create(run)
        log.info("%s: run %s in %s", self.name, self.run_id, uri)
        return lambda kind, step: False

    def _create(self, run: Told) -> None:
        from mlflow.entities import Param

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "sunrise"
        found = self.client.get_experiment_by_name(name)
        local = None if self.films is None else self.films.as_uri()
        number = found.experiment_id if found else self.client.create_experiment(name, artifact_location=local)
        self.run_id = self.client.create_run(number, run_name=run.name).info.run_id
        parameters = [Param(key, str(value)[:LONGEST]) for key, value in run.settings.items()]
        for start in range(0, len(parameters), AT_ONCE):
            self.client.log_batch(self.run_id, params=parameters[start : start + AT_ONCE])
        run.memory.write({"id": self.run_id})

    def _steps(self, mark: str) -> set[int]:
        return {entry.step for entry in self.client.get_metric_history(self.run_id, mark)}

    def send(self, rows: Sequence[Scalars]) -> None:
        """As many whole rows at once as a request may have."""
        from mlflow.entities import Metric

        values: list[Metric] = []
        for row in rows:
            if len(values) + len(row.values) > MOST_VALUES:
                self.client.log_batch(self.run_id, metrics=values)
                values = []
            now = int(time.time() * 1000)
            values += [Metric(key, value, now, row.step) for key, value in row.values.items()]
        self.client.log_batch(self.run_id, metrics=values)

    def close(self, status: Status, films: list[Path]) -> None:
        """With the films of the run as artifacts; a local store says where those are, and may be a stranger's."""
        from mlflow.utils.file_utils import local_file_uri_to_path

        self.client.set_terminated(self.run_id, STATUS[status])
        place = self.client.get_run(self.run_id).info.artifact_uri
        if films and self.films is not None:
            own = self.films.parent.resolve() / self.films.name
            if not Path(local_file_uri_to_path(place)).resolve().is_relative_to(own):
                raise DamagedError(f"{STORE} would have films written to {place}, which is not in {own}")
        for film in films:
            self.client.log_artifact(self.run_id, str(film), "videos")
