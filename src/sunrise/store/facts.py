"""What a checkpoint says that is no array: looked at before a run is made of it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sunrise.errors import DamagedError
from sunrise.store.logs import read_vouched

NUMBER = (int, float)


@contextmanager
def readable() -> Iterator[None]:
    """Whatever a checkpoint says that makes no sense is damage."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedError(f"it cannot be understood: {type(error).__name__}: {error}") from None


def check_facts(facts: Mapping[str, Any], counters: Iterable[str], timesteps: int) -> None:
    """Refuse facts that are not of their kinds, or of another timestep."""
    with readable():
        loop = facts["loop"]
        for name in counters:
            kinds = (*NUMBER, type(None)) if name == "last_return" else (int,)
            of_kind(loop[name], *kinds)
        if loop["timesteps"] != timesteps:
            raise ValueError("its timesteps are not those of its manifest")
        for env, total, length in facts["finished"]:
            of_kind(env, int)
            of_kind(total, *NUMBER)
            of_kind(length, int)
        last = facts["last_evaluation"]
        if last is not None:
            for value, length in zip(last["returns"], last["lengths"], strict=True):
                of_kind(value, *NUMBER)
                of_kind(length, int)
        of_kind(facts["with_replay"], bool)
        for number in (facts["restarts"], *facts["failures"]):
            of_kind(number, int)
        read_vouched(facts["logs"])


def of_kind(value: Any, *kinds: type) -> None:
    """Refuse a value of another kind; a truth value is no number."""
    if type(value) not in kinds:
        raise ValueError(f"{value!r} is not of its kind")
