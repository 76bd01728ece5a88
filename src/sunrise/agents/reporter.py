"""Who is told what happens while an agent learns: the screen, the run's folder, TensorBoard."""

from pathlib import Path
from typing import Any

from sunrise.console import ProgressLine, as_table, say
from sunrise.evaluate import Evaluation
from sunrise.events import Scalars
from sunrise.folder import Folder
from sunrise.record import RunFolder


class Reporter:
    """Passes each row of metrics and each evaluation to everyone who wants it."""

    def __init__(
        self, line: ProgressLine, folder: RunFolder | None, tensorboard_log: str | None, name: str, verbose: int
    ) -> None:
        self.line, self.folder, self.verbose = line, folder, verbose
        self.events: Scalars | None = None
        if tensorboard_log is not None:  # in a folder numbered as Stable-Baselines3 does
            root = Path(tensorboard_log)
            self.events = Scalars(Folder(root / f"{name}_{len(list(root.glob(f'{name}_*'))) + 1}"))

    def metrics(self, row: dict[str, Any]) -> None:
        self.line.metrics(row)
        if self.folder is not None:
            self.folder.metrics(row)
        if self.events is not None:
            self.events.add(row, row["timesteps"])
        if self.verbose:
            say(as_table(row))

    def evaluation(self, timesteps: int, env_steps: int, result: Evaluation) -> None:
        self.line.evaluation(timesteps, env_steps, result)
        if self.folder is not None:
            self.folder.evaluation(timesteps, env_steps, result)

    def close(self) -> None:
        if self.events is not None:
            self.events.close()
