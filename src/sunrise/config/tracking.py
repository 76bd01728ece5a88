"""Where else a run is followed. None of it moves a number of a run, and all of it may change while one goes on."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sunrise.errors import SunriseError


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


def require_own_team(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse to send a run to a team that only its folder names: both may be a stranger's."""
    team = settings.get("wandb_entity")
    if settings.get("track") and team and team != os.environ.get("WANDB_ENTITY"):
        raise SunriseError(
            f"{path} asks to be shown to {team!r} in Weights & Biases. If that is you or your team, say so by the "
            f"variable WANDB_ENTITY={team} or by --track True; --track False goes on without."
        )
