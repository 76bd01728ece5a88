"""Where else a run is followed. None of it moves a number of a run, and all of it may change while one goes on."""

import dataclasses
from dataclasses import dataclass


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
