"""TensorBoard's event files, written by the thread that has something to say: a fault is heard of where it happens."""

import itertools
import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sunrise.folder import Folder

NUMBERS = itertools.count()


class Scalars:
    """One scalar of one name at one step, in a new file. What is later than `purge_step` was written in vain."""

    def __init__(self, folder: Folder, purge_step: int | None = None) -> None:
        folder.make()
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(NUMBERS)}"
        self._open = ExitStack()
        self._records = RecordWriter(self._open.enter_context(folder.create(name)))
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=purge_step, session_log=start))

    def add(self, row: Mapping[str, Any], step: int) -> None:
        values = [
            Summary.Value(tag=name if "/" in name else f"run/{name}", simple_value=float(value))
            for name, value in row.items()
            if isinstance(value, int | float)
        ]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())

    def close(self) -> None:
        self._open.close()
