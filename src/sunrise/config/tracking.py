"""Where else a run is followed. None of it moves a number of a run, and all of it may change while one goes on."""

import dataclasses
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger("sunrise")


@dataclass(frozen=True)
class TrackingSettings:
    """Who follows the run besides its folder and TensorBoard."""

    track: bool = False
    """Follow the run in Weights & Biases (extra `wandb`); WANDB_MODE=offline keeps it on this machine."""
    wandb_project_name: str = "sunrise"
    """The project there."""
    wandb_entity: str = ""
    """The team or user there; default: your own."""
    mlflow: bool = False
    """Follow the run in MLflow (extra `mlflow`), at MLFLOW_TRACKING_URI; default: mlflow.db beside the run's folder."""


TRACKING = tuple(field.name for field in dataclasses.fields(TrackingSettings))
"""Their names: nobody else's file or folder says them for a new run."""


def for_own_team(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a folder, which sends nothing to a team that only it names: both may be a stranger's."""
    team = settings.get("wandb_entity")
    if not settings.get("track") or not team or team == os.environ.get("WANDB_ENTITY"):
        return dict(settings)
    log.warning(
        "%s asks to be shown to %r in Weights & Biases, and is not. If that is you or your team, say so by "
        "the variable WANDB_ENTITY=%s or by --track True: what is missing there is sent then.",
        path,
        team,
        team,
    )
    return {**settings, "track": False}
