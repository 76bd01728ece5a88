"""A film shows the episode that an evaluation would run."""

import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement

from sunrise import SAC, SunriseError
from sunrise.agents.video import find_ffmpeg, record_run
from sunrise.cli import main
from sunrise.errors import MissingExtraError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    tiny: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "learning_starts": 20}
    tiny |= {"buffer_size": 100, "eval_freq": 0, "action_repeat": 40, "run_dir": str(folder)}
    SAC("MlpPolicy", "dmc/cartpole-swingup", **tiny).learn(30, progress_bar=False)
    return folder


def test_every_step_of_the_episode_is_a_picture_of_the_film(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["record", str(run)])
    path = Path(capsys.readouterr().out.strip())
    assert path == run / "videos" / "step-000000030.mp4"
    decode = [find_ffmpeg(), "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(decode, capture_output=True, check=True).stdout
    pictures = np.frombuffer(raw, np.uint8).reshape(-1, 256, 256, 3)
    assert len(pictures) == 26  # 1000 simulator steps, 40 a timestep, and the first picture
    assert pictures[0].std() > 10  # there is something to see
    assert np.abs(pictures[0].astype(int) - pictures[-1]).max() > 20  # and it moves
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_return_of_the_film_is_that_of_the_evaluation(run: Path, tmp_path: Path) -> None:
    from sunrise.agents import load_run

    path, mean = record_run(run, tmp_path / "deep" / "film.mp4")
    assert path.exists()
    assert mean == pytest.approx(load_run(run).evaluate(1).mean, rel=1e-3)
    with pytest.raises(SunriseError, match="episodes is 0"):
        record_run(run, episodes=0)


def test_the_demos_own_task_is_filmed_with_the_extra_that_the_message_names(tmp_path: Path) -> None:
    tiny: dict[str, Any] = {"ensemble_size": 1, "net_arch": (8, 8), "learning_starts": 100, "buffer_size": 100}
    model = SAC("MlpPolicy", "Pendulum-v1", **tiny, eval_freq=0, run_dir=str(tmp_path / "run"), batch_size=8)
    model.learn(10, progress_bar=False)
    path, mean = record_run(tmp_path / "run")
    assert path.stat().st_size > 1000
    assert mean < 0
    needed = [Requirement(line) for line in metadata.requires("sunrise-rl") or ()]
    video = {part.name for part in needed if part.marker is not None and part.marker.evaluate({"extra": "video"})}
    message = str(MissingExtraError("a film", "video"))
    assert video == {"imageio-ffmpeg", "gymnasium"}
    assert all(name in message for name in video)
    assert "gymnasium[classic-control]" in message
    assert "sunrise-rl" not in message  # which is on no index
