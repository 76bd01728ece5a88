"""The trackers that a run's settings ask for."""

from pathlib import Path

from sunrise.config.tracking import TRACKING, TrackingSettings, for_own_team
from sunrise.sinks.mlflow import MLflow
from sunrise.sinks.tracker import Tracker, TrackerSink
from sunrise.sinks.wandb import WeightsAndBiases
from sunrise.store.run_folder import RunFolder


def trackers(settings: TrackingSettings, algo: str, folder: RunFolder | None) -> list[TrackerSink]:
    """A sink for each; one whose extra is missing is refused."""
    chosen: list[Tracker] = []
    if settings.track:
        chosen.append(WeightsAndBiases(settings.wandb_project_name, settings.wandb_entity))
    if settings.mlflow:
        chosen.append(MLflow())
    return [TrackerSink(tracker, algo, folder) for tracker in chosen]


def show_films(run: Path) -> None:
    """Bring the films of a run to those who follow it; while it goes on, its end does."""
    from sunrise.store.reading import read_run

    folder, config = RunFolder(run), read_run(run)
    status = folder.read_status().get("status")
    asked = {name: value for name, value in config["settings"].items() if name in TRACKING}
    asked = for_own_team(asked, run)
    if status in ("finished", "stopped", "failed"):
        for sink in trackers(TrackingSettings(**asked), config["algo"], folder):
            sink.complete(config["settings"], status)
