"""Weights & Biases: the steps of its history are timesteps."""

import contextlib
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sunrise.sinks.scalars import Kind, Scalars
from sunrise.sinks.tracker import LINGER, Has, Status, Told

log = logging.getLogger("sunrise")


class WeightsAndBiases:
    """A run there has the settings as its config; WANDB_MODE, WANDB_BASE_URL, WANDB_DIR and the like are heeded."""

    name, extra = "Weights & Biases", "wandb"

    def __init__(self, project: str, entity: str) -> None:
        self.project, self.entity = project, entity
        self.run: Any = None
        self.told: Told | None = None
        self.marks: dict[str, int] = {}
        """The last step of each kind of row that an offline run has written down."""
        self.last: dict[str, int] = {}
        self.films: list[str] = []
        """Those that it has."""

    def open(self, run: Told) -> Has:
        """Begin a run, or go on with the one that is remembered.

        A server says from which step it goes on. An offline run cannot: there the folder remembers.
        """
        import wandb

        if self.run is not None:
            with contextlib.suppress(Exception):
                self.run.finish(exit_code=1)
        before = run.memory.read()
        own = run.memory.id("[a-z0-9]{8,64}") or secrets.token_hex(4)
        self.told = run
        self.run = wandb.init(
            project=self.project,
            entity=self.entity or None,
            id=own,
            name=run.name,
            resume="allow",
            config=run.settings,
            allow_val_change=True,
            reinit="create_new",
            settings=wandb.Settings(
                console="off",
                silent=True,
                login_timeout=1,
                finish_timeout=LINGER,
                init_timeout=float(os.environ.get("WANDB_INIT_TIMEOUT") or LINGER),
            ),
        )
        self.marks = {kind: step for kind, step in before.items() if type(step) is int}
        self.last = dict(self.marks)
        self.films = [name for name in before.get("films", ()) if isinstance(name, str)]
        self._remember()
        where = f"offline, `wandb sync {Path(self.run.dir).parent}` sends it" if self.run.offline else self.run.url
        log.info("%s: %s", self.name, where)
        from_server = int(self.run.starting_step) - 1

        def has(kind: Kind, step: int) -> bool:
            return step <= (self.marks.get(kind, -1) if self.run.offline else from_server)

        return has

    def send(self, rows: Sequence[Scalars]) -> None:
        """Rows of its history; those of the same step become one."""
        for row in rows:
            self.run.log(row.values, step=row.step)
            # A row is written down when one of a later step comes: what a kill takes is sent again.
            self.marks |= {kind: step for kind, step in self.last.items() if step < row.step}
            self.last[row.kind] = row.step
        if self.run.offline:
            self._remember()

    def close(self, status: Status, films: list[Path]) -> None:
        """With the films of the run, and the exit code that makes the status there right."""
        import wandb

        new = [film for film in films if film.name not in self.films]
        for film in new:
            self.run.log({f"videos/{film.stem}": wandb.Video(str(film), format="mp4")})
        self.run.finish(exit_code=1 if status == "failed" else 0)
        self.marks, self.films = self.last, [*self.films, *(film.name for film in new)]
        self._remember()

    def _remember(self) -> None:
        assert self.told is not None
        self.told.memory.write({"id": self.run.id, "films": self.films, **self.marks})
