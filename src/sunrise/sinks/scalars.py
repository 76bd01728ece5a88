"""Rows as scalars by name, the same in TensorBoard and in every tracker."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from sunrise.run.events import Evaluated, MetricsRow

Kind = Literal["metrics", "evaluation"]


class Scalars(NamedTuple):
    """What is to be shown of one row."""

    kind: Kind
    step: int
    """In timesteps."""
    values: dict[str, float]


def of_metrics(row: Mapping[str, Any]) -> Scalars:
    """A row of metrics.jsonl; a name that is in no group is in the group `run`."""
    values = {n if "/" in n else f"run/{n}": float(v) for n, v in row.items() if isinstance(v, int | float)}
    return Scalars("metrics", int(row["timesteps"]), values)


def of_evaluation(row: Mapping[str, Any], env_steps: int) -> Scalars:
    """A row of eval.csv."""
    values = {f"eval/{name}": float(value) for name, value in row.items() if name != "timesteps"}
    return Scalars("evaluation", int(row["timesteps"]), {**values, "eval/env_steps": float(env_steps)})


def of_event(event: MetricsRow | Evaluated) -> Scalars:
    """The same of what has just happened."""
    if isinstance(event, MetricsRow):
        return of_metrics(event.row)
    return of_evaluation({"timesteps": event.timesteps, **event.summary()}, event.env_steps)
