"""Random corruptions and hostile edits of every file that a command reads: refused, passed over, or without effect.

`SUNRISE_ATTACKS` says how many; `make soak` asks for 11,000 and writes what came of them to `SUNRISE_COUNTS`.
"""

import json
import os
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sunrise import SunriseError
from tests.attack import corruption
from tests.attack.arena import BEFORE, LENGTH, Arena, silent

CASES = int(os.environ.get("SUNRISE_ATTACKS", "60"))
"""Corruptions; hostile edits are a tenth of them, and at least 40."""
COMMANDS = ("resume", "evaluate", "inspect", "reproduce")
SLOWEST = 20
MEMORY = 400 * 2**20
GOOD = ("refused", "passed over", "equal")


class HangError(Exception):
    """A command that did not come to an end."""


@contextmanager
def in_time() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SLOWEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Attack:
    """What commands make of a folder that was tampered with, against what they make of the untouched one."""

    def __init__(self, arena: Arena, folder: Path) -> None:
        self.arena, self.folder = arena, folder / "attacked"
        self.whole = {c: arena.read(arena.copy(self.folder), c) for c in COMMANDS[1:]} | {"load": self.load()}
        self.whole["early"] = arena.read(arena.copy(self.folder, arena.early), "resume")
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def load(self) -> Any:
        return self.arena.read(self.arena.model_file, "load")

    def outcome(self, command: str, folder: Path, early: bool, signed: bool) -> str:
        """How a command took it."""
        try:
            with in_time():
                found = self.arena.read(folder, command)
        except SunriseError:
            return "refused"
        except HangError:
            return "hang"
        except BaseException as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
        if self.same(command, found, early):
            return "equal"
        if command == "inspect" and (found["problems"] != "[]" or '"verifies": false' in found["checkpoints"]):
            return "refused" if found["problems"] != "[]" else "passed over"
        if command == "resume" and found == self.arena.at[BEFORE]:
            return "passed over"
        if command == "evaluate" and found[1] is not None and found[1][1] == BEFORE:
            return "passed over"
        if command == "reproduce" and found[1] == {} and found[0::2] == self.whole["reproduce"][0::2]:
            return "passed over"  # a status that is damaged is none
        return "another run, well signed" if signed else f"another result: {str(found)[-700:]}"

    def same(self, command: str, found: Any, early: bool) -> bool:
        if command == "resume":
            return bool(found == (self.whole["early"] if early else self.arena.at[LENGTH]))
        return bool(found == self.whole[command])

    def count(self, label: str, outcome: str, allowed: tuple[str, ...]) -> None:
        self.counts[outcome if outcome in allowed else "wrong"] += 1
        if outcome not in allowed:
            self.wrong.append(f"{label}: {outcome}")

    def commands(self, early: bool) -> tuple[str, ...]:
        return ("resume",) if early else COMMANDS

    def run(self, number: int, kind: str) -> None:
        """One attack, from its number alone."""
        rng = random.Random(f"{kind} {number}")
        files = [file for file in self.arena.files() if file.stat().st_size]  # one that is empty has nothing to damage
        files += [self.arena.model_file, self.arena.early / "config.json"]
        target = rng.choice(files)
        signed = kind == "edit" and rng.random() < 0.5
        early, model = target.is_relative_to(self.arena.early), target == self.arena.model_file
        root = self.arena.early if early else target.parent if model else self.arena.run
        allowed = (*GOOD, "another run, well signed") if signed else GOOD
        for command in ("load",) if model else self.commands(early):
            if model:
                self.folder.with_suffix(".safetensors").write_bytes(target.read_bytes())
                attacked = folder = self.folder.with_suffix(".safetensors")
            else:
                folder = self.arena.copy(self.folder, root)
                attacked = folder / target.relative_to(root)
            again = random.Random(f"{kind} {number} {target.name}")
            if kind == "edit":
                corruption.edit(attacked, again, signed)
            else:
                content = attacked.read_bytes()
                mutated = again.choice(corruption.MUTATIONS)(content, again)
                attacked.write_bytes(mutated)
            label = f"{kind} {number} of {target.name}{' signed' * signed}, {command}"
            self.count(label, self.outcome(command, folder, early, signed), allowed)


@pytest.mark.parametrize(("kind", "cases"), [("corruption", CASES), ("edit", max(CASES // 10, 40))])
def test_whatever_is_done_to_a_file_no_command_believes_it(kind: str, cases: int, arena: Arena, tmp_path: Path) -> None:
    start = time.perf_counter()
    with silent():
        attack = Attack(arena, tmp_path)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(cases):
            attack.run(number, kind)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    if counts := os.environ.get("SUNRISE_COUNTS"):
        path = Path(counts)
        before = json.loads(path.read_text()) if path.exists() else {}
        seconds = round(time.perf_counter() - start)
        own = {"cases": cases, "readings": dict(attack.counts), "seconds": seconds, "memory_mb": round(grown / 1e6)}
        path.write_text(json.dumps(before | {kind: own}, indent=2) + "\n")
    assert not attack.wrong, "\n".join(attack.wrong[:20])
    assert attack.counts["refused"]
    assert attack.counts["equal"]
    assert grown < MEMORY
