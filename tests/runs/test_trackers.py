"""Weights & Biases and MLflow show what is in the run's own files, row by row, and no run waits for them."""

import contextlib
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sunrise import Random, settings_from
from sunrise.config.tracking import TRACKING, TrackingSettings
from sunrise.errors import MissingExtraError, SunriseError
from sunrise.files.documents import SEAL, SEALED, sealed
from sunrise.sinks import tracker as tracker_module
from sunrise.sinks.chosen import show_films
from sunrise.sinks.scalars import Kind, Scalars, of_evaluation, of_metrics
from sunrise.sinks.tracker import Has, Status, Told
from sunrise.sinks.wandb import WeightsAndBiases
from sunrise.store.checkpoint import Checkpoints
from sunrise.store.run_folder import RunFolder
from tests.support import runs, wandb_file

OFTEN: dict[str, Any] = {"log_freq": 10, "eval_freq": 20, "eval_episodes": 1, "eval_max_steps": 5, "save_freq": 20}
SECOND = 1.1
"""Weights & Biases names its files by the second."""
Rows = dict[tuple[str, int], dict[str, float]]


def learn(run: Path | str, steps: int = 40, **changes: Any) -> Random:
    settings = {"buffer_size": 90, "seed": 3} | OFTEN | changes
    model = Random("MlpPolicy", "Pendulum-v1", run_dir=str(run), **settings)
    return model.learn(steps, log_interval=None, progress_bar=False)


def written(run: Path) -> Rows:
    """What the run's own files have."""
    folder = RunFolder(run)
    rows = [of_metrics(row) for row in folder.read_metrics()]
    rows += [of_evaluation(row, int(row["timesteps"])) for row in folder.read_eval()]
    return {(row.kind, row.step): row.values for row in rows}


def remembered(run: Path, name: str) -> str:
    return str(json.loads((run / f"{name}.json").read_text())["id"])


def in_mlflow(run: Path, uri: str | None = None) -> dict[str, list[tuple[int, float]]]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri or f"sqlite:///{run.parent / 'mlflow.db'}")
    own = remembered(run, "mlflow")
    return {
        key: [(entry.step, entry.value) for entry in client.get_metric_history(own, key)]
        for key in client.get_run(own).data.metrics
    }


def by_name(rows: Rows) -> dict[str, list[tuple[int, float]]]:
    """The same by the name of each value."""
    found: dict[str, list[tuple[int, float]]] = {}
    for (_, step), values in sorted(rows.items(), key=lambda entry: entry[0][1]):
        for name, value in values.items():
            found.setdefault(name, []).append((step, value))
    return found


def without_clock(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if not name.startswith("time/")}


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Random]]:
    """A short run that both trackers follow, and one that nobody does."""
    folder = tmp_path_factory.mktemp("tracked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_DIR", str(folder))
        patch.setenv("MLFLOW_TRACKING_URI", "")
        model = learn(folder / "run", track=True, mlflow=True)
        learn(folder / "alone")
        yield folder, model


def test_mlflow_has_every_row_with_its_step_and_its_value(tracked: tuple[Path, Random]) -> None:
    folder, _ = tracked
    assert in_mlflow(folder / "run") == by_name(written(folder / "run"))
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    found = client.get_run(remembered(folder / "run", "mlflow"))
    assert (found.info.status, found.info.run_name) == ("FINISHED", "run")
    assert found.data.params["seed"] == "3"
    assert found.data.params["algo"] == "random"
    assert len(found.data.params) > 40


def test_weights_and_biases_has_every_row_with_its_step_and_its_value(tracked: tuple[Path, Random]) -> None:
    folder, _ = tracked
    own = remembered(folder / "run", "wandb")
    rows = wandb_file.history(folder, own)
    expected: dict[int, dict[str, float]] = {}
    for (_, step), values in written(folder / "run").items():
        expected.setdefault(step, {}).update(values)
    assert [row["_step"] for row in rows] == sorted(expected)
    found = [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
    assert found == [expected[step] for step in sorted(expected)]
    assert wandb_file.config(folder, own)["seed"] == 3


def test_a_run_that_is_followed_is_the_run_that_is_not(tracked: tuple[Path, Random]) -> None:
    folder, _ = tracked
    ours = {"run_dir", "track", "mlflow"}
    settings = [json.loads((folder / name / "config.json").read_text())["settings"] for name in ("run", "alone")]
    assert {name for name in settings[0] if settings[0][name] != settings[1][name]} == ours
    runs.assert_same(folder / "run", folder / "alone")


def test_a_run_that_goes_on_continues_its_curves_and_trackers_may_change(tracked: tuple[Path, Random]) -> None:
    folder, _ = tracked
    run = folder / "longer"
    learn(run, track=True, mlflow=True)
    before = remembered(run, "mlflow")
    Random.resume(run, track=False).learn(20, None, None, reset_num_timesteps=False, progress_bar=False)
    assert remembered(run, "mlflow") == before
    assert in_mlflow(run) == by_name(written(run))
    assert json.loads((run / "config.json").read_text())["settings"]["track"] is False
    time.sleep(SECOND)
    Random.resume(run, track=True, mlflow=False).learn(20, None, None, reset_num_timesteps=False, progress_bar=False)
    steps = [row["_step"] for row in wandb_file.history(folder, remembered(run, "wandb"))]
    assert steps == [10, 20, 30, 40, 50, 60, 70, 80]  # what it missed was in the run's files


def test_a_film_is_shown_where_the_run_is_followed(tracked: tuple[Path, Random]) -> None:
    from mlflow.tracking import MlflowClient

    folder, _ = tracked
    run = folder / "filmed"
    learn(run, track=True, mlflow=True)
    (run / "videos").mkdir()
    (run / "videos" / "step-000000040.mp4").write_bytes(b"a film")
    before = in_mlflow(run)
    for _ in range(2):
        time.sleep(SECOND)
        show_films(run)
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    own = remembered(run, "mlflow")
    assert [file.path for file in client.list_artifacts(own, "videos")] == ["videos/step-000000040.mp4"]
    assert client.get_run(own).info.status == "FINISHED"
    assert in_mlflow(run) == before
    rows = wandb_file.history(folder, remembered(run, "wandb"))
    films = [row for row in rows if "videos/step-000000040/_type" in row or "videos/step-000000040" in row]
    assert len(films) == 1


@pytest.mark.slow
def test_a_run_killed_and_resumed_has_every_step_once(tmp_path: Path) -> None:
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "MLFLOW_TRACKING_URI": ""}
    run = tmp_path / "run"
    flags = (
        "--env-id Pendulum-v1 --total-timesteps 6000 --log-freq 50 --eval-freq 500 --eval-episodes 1 --save-freq 700"
    )
    begin = [sys.executable, "-m", "sunrise", "train", "random", *flags.split(), "--track", "--mlflow", "--run-dir"]
    process = subprocess.Popen([*begin, str(run)], env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and len(Checkpoints(run / "checkpoints").steps()) < 2:
        time.sleep(0.01)
    time.sleep(0.3)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    resume = [sys.executable, "-m", "sunrise", "resume", str(run)]
    done = subprocess.run(resume, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected, found = by_name(written(run)), in_mlflow(run)
    assert without_clock(found) == without_clock(expected)
    assert {n: [s for s, _ in rows] for n, rows in found.items()} == {
        n: [s for s, _ in rows] for n, rows in expected.items()
    }
    steps = [row["_step"] for row in wandb_file.history(tmp_path, remembered(run, "wandb"))]
    assert sorted(set(steps)) == [step for step, _ in expected["run/timesteps"]]
    assert len(steps) - len(set(steps)) <= 1  # the row at the kill, which W&B may or may not have written down


class Foreign:
    """A service that fails, or is slow, as told."""

    name, extra = "the foreign service", "json"

    def __init__(self, fails: int = 10**9, slow: float = 0.0) -> None:
        self.fails, self.slow = fails, slow
        self.rows: list[tuple[Kind, int]] = []
        self.status: Status | None = None

    def _do(self) -> None:
        time.sleep(self.slow)
        if self.fails > 0:
            self.fails -= 1
            raise ConnectionError("no network")

    def open(self, run: Told) -> Has:
        self._do()
        return lambda kind, step: (kind, step) in self.rows

    def send(self, rows: Sequence[Scalars]) -> None:
        self._do()
        self.rows += [(row.kind, row.step) for row in rows]

    def close(self, status: Status, films: list[Path]) -> None:
        self._do()
        self.status = status


def follow(monkeypatch: pytest.MonkeyPatch, service: Foreign, run: Path) -> float:
    """The seconds of a training that a service follows."""
    monkeypatch.setattr("sunrise.sinks.chosen.MLflow", lambda: service)
    began = time.perf_counter()
    learn(run, mlflow=True)
    return time.perf_counter() - began


def test_a_tracker_that_fails_at_every_call_is_named_once(
    tmp_path: Path, tracked: tuple[Path, Random], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "sunrise"):
        follow(monkeypatch, Foreign(), tmp_path / "run")
    assert [line for line in caplog.messages if "an evaluation" not in line] == [
        "the foreign service failed: ConnectionError: no network. The run goes on without it; this is said once."
    ]
    runs.assert_same(tmp_path / "run", tracked[0] / "alone")


def test_a_tracker_that_fails_for_a_while_has_everything_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fails in range(1, 5):
        service, run = Foreign(fails=fails), tmp_path / str(fails)
        follow(monkeypatch, service, run)
        assert service.rows == sorted(service.rows, key=lambda row: row[1])
        assert set(service.rows) == written(run).keys()
        assert len(service.rows) == len(set(service.rows))
        assert service.status == "finished"


def test_a_slow_tracker_costs_a_run_no_more_than_the_bound_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracker_module, "LINGER", 0.3)
    alone = follow(monkeypatch, Foreign(fails=0), tmp_path / "fast")
    with caplog.at_level(logging.WARNING, "sunrise"):
        took = follow(monkeypatch, Foreign(fails=0, slow=60.0), tmp_path / "slow")
    assert took < alone + 2.0
    assert "the foreign service did not take everything within 0 s and is left behind" in caplog.text


def test_what_does_not_fit_in_the_queue_is_read_from_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker_module, "MOST", 1)
    service, run = Foreign(fails=0, slow=0.02), tmp_path / "run"
    follow(monkeypatch, service, run)
    assert set(service.rows) == written(run).keys()


def test_a_missing_extra_is_said_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="Weights & Biases needs the extra `wandb`"):
        learn(tmp_path / "run", track=True)
    assert not (tmp_path / "run").exists()


def test_an_identity_that_is_not_one_is_not_believed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    memory = tracker_module.Memory(folder, "mlflow.json")
    memory.write({"id": "../../etc/passwd"})
    assert memory.id("[0-9a-f]{32}") is None
    (tmp_path / "mlflow.json").write_text('{"id": "' + "a" * 32 + '"}')  # without a checksum
    assert memory.id("[0-9a-f]{32}") is None


def test_nobody_elses_file_says_who_follows_a_run(tracked: tuple[Path, Random], tmp_path: Path) -> None:
    folder, model = tracked
    assert settings_from(folder / "run").keys().isdisjoint(TRACKING)
    (tmp_path / "mine.yaml").write_text("track: true")
    with pytest.raises(SunriseError, match="track is not for a file to say"):
        settings_from(tmp_path / "mine.yaml", "sac")
    model.save(tmp_path / "model")
    assert Random.load(tmp_path / "model").config.run.tracking == TrackingSettings()


def test_a_run_is_not_sent_to_a_team_that_only_its_folder_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    learn(run, 20)
    config = json.loads((run / "config.json").read_text())
    config["settings"] |= {"track": True, "wandb_entity": "theirs"}
    (run / "config.json").write_bytes(sealed({n: v for n, v in config.items() if n not in (SEALED, SEAL)}))
    monkeypatch.delenv("WANDB_ENTITY", raising=False)
    monkeypatch.setattr(WeightsAndBiases, "open", None)
    show_films(run)
    assert "asks to be shown to 'theirs'" in caplog.text
    assert "failed" not in caplog.text
    for said, asked, sent in (("", None, False), ("", False, False), ("", True, True), ("theirs", None, True)):
        monkeypatch.setenv("WANDB_ENTITY", said)
        model = Random.resume(run, track=asked)
        assert model.config.run.tracking.track is sent
        assert model.session is not None
        model.session.close()


def test_films_stay_where_the_local_store_is(tracked: tuple[Path, Random], caplog: pytest.LogCaptureFixture) -> None:
    folder, _ = tracked
    run, elsewhere = folder / "strangers", folder / "elsewhere"
    learn(run, mlflow=True)
    (run / "videos").mkdir()
    (run / "videos" / "a.mp4").write_bytes(b"a film")
    for uri in (elsewhere.as_uri(), (folder / "mlartifacts" / ".." / "elsewhere").as_uri(), "http://localhost:9/x"):
        with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as store, store:
            store.execute("UPDATE runs SET artifact_uri = ? WHERE name = 'strangers'", (uri,))
        caplog.clear()
        show_films(run)
        assert f"would have films written to {uri}" in caplog.text
    assert not elsewhere.exists()


def test_a_local_store_that_is_a_link_is_not_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine").write_bytes(b"")
    (tmp_path / "mlflow.db").symlink_to("mine")
    learn(tmp_path / "run", 20, mlflow=True)
    assert "mlflow.db is a link, not a file of its own" in caplog.text
    assert (tmp_path / "mine").read_bytes() == b""
