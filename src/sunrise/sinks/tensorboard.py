"""TensorBoard's event files, written by the thread that has something to say: a fault is heard of where it happens."""

import itertools
import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event as Record
from tensorboard.compat.proto.event_pb2 import SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sunrise.files.folder import Folder
from sunrise.run.events import Evaluated, Event, MetricsRow
from sunrise.sinks.scalars import of_event

NUMBERS = itertools.count()


class TensorBoard:
    """Rows of metrics and evaluations as scalars, in a new file that is made with the first of them."""

    name, essential = "TensorBoard", False

    def __init__(self, folder: Folder, purge_step: int | None = None) -> None:
        """What older files have later than `purge_step` was written in vain."""
        self.folder, self.purge_step = folder, purge_step
        self._open = ExitStack()
        self._records: RecordWriter | None = None

    @classmethod
    def numbered(cls, root: Path, name: str, new: bool = True) -> "TensorBoard":
        """In a folder numbered as Stable-Baselines3 does; a training that is not `new` goes on in the last one."""
        made = len(list(root.glob(f"{name}_*")))
        return cls(Folder(root / f"{name}_{made + 1 if new else max(made, 1)}"))

    def __call__(self, event: Event) -> None:
        if isinstance(event, MetricsRow | Evaluated):
            _, step, values = of_event(event)
            self.add(values, step)

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Write numbers at a timestep."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._write(Record(wall_time=time.time(), step=step, summary=summary))

    def _write(self, record: Any) -> None:
        if self._records is None:
            self.folder.make()
            name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(NUMBERS)}"
            self._records = RecordWriter(self._open.enter_context(self.folder.create(name)))
            self._write(Record(wall_time=time.time(), file_version="brain.Event:2"))
            if self.purge_step is not None:
                start = SessionLog(status=SessionLog.START)
                self._write(Record(wall_time=time.time(), step=self.purge_step, session_log=start))
        self._records.write(record.SerializeToString())

    def close(self) -> None:
        self._open.close()
        self._records = None
