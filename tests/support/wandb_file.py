"""Reads what an offline run of Weights & Biases wrote: blocks of a log, each record a protocol buffer."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER, BLOCK, HEAD = 7, 32768, 7


def records(path: Path) -> Iterator[Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    content, place, whole = path.read_bytes(), HEADER, b""
    while place + HEAD <= len(content):
        left = BLOCK - place % BLOCK
        if left < HEAD:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + HEAD])
        whole += content[place + HEAD : place + HEAD + length]
        place += HEAD + length
        if kind in (1, 4):  # a record, or the end of one
            yield Record.FromString(whole)
            whole = b""


def history(folder: Path, run_id: str) -> list[dict[str, Any]]:
    """The rows of all offline files of a run, in the order they were begun."""
    rows = []
    for path in sorted(folder.glob(f"wandb/offline-run-*-{run_id}/run-{run_id}.wandb")):
        for record in records(path):
            if record.HasField("history"):
                items = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
                rows.append(items)
    return rows


def config(folder: Path, run_id: str) -> dict[str, Any]:
    """The settings that a run was begun with."""
    (path,) = folder.glob(f"wandb/offline-run-*-{run_id}/run-{run_id}.wandb")
    for record in records(path):
        if record.HasField("run"):
            return {item.key: json.loads(item.value_json) for item in record.run.config.update}
    return {}
