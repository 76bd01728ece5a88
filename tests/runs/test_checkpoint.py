"""Checkpoints are whole or not there: torn, damaged and hostile files are found out, and nothing in them runs."""

import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from sunrise import SAC, SunriseError
from sunrise.agents import load_run
from sunrise.cli import main
from sunrise.errors import DamagedError
from sunrise.store.checkpoint import Checkpoints, Snapshot
from sunrise.store.manifest import Manifest, Span, Sum
from sunrise.store.tensors import read_arrays

SMALL: dict[str, Any] = {"ensemble_size": 2, "net_arch": (8, 8), "batch_size": 8, "buffer_size": 1000, "seed": 3}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    model = SAC("MlpPolicy", "Pendulum-v1", **SMALL, learning_starts=20, eval_freq=0, save_freq=30, run_dir=str(folder))
    model.learn(100, progress_bar=False)
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def newest_files(run: Path) -> list[Path]:
    """The files that only the newest checkpoint needs."""
    checkpoints = Checkpoints(run / "checkpoints")
    found = checkpoints.newest()
    assert found is not None
    last = found.manifest.segments[-1].file
    return [*sorted(found.path.iterdir()), checkpoints.replay.path / last]


def test_the_newest_is_used_and_old_ones_are_gone(run: Path) -> None:
    checkpoints = Checkpoints(run / "checkpoints")
    assert checkpoints.steps() == [90, 100]
    found = checkpoints.newest()
    assert found is not None
    assert found.manifest.timesteps == 100
    assert [segment.spans["transitions"] for segment in found.manifest.segments] == [
        Span(0, 30),
        Span(29, 60),
        Span(59, 90),
        Span(89, 100),
    ]
    assert not list(run.rglob("*.part"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 4), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_flipped_bit_or_a_missing_end_is_found_and_the_one_before_is_used(
    run: Path, which: int, place: float, bit: int, cut: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = newest_files(run)[which]
    whole = file.read_bytes()
    at = int(place * len(whole))
    damaged = whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    caplog.clear()
    try:
        file.write_bytes(damaged)
        found = Checkpoints(run / "checkpoints").newest()
    finally:
        file.write_bytes(whole)
    assert found is not None
    assert found.manifest.timesteps == 90
    assert "The checkpoint at step 100: " in caplog.text
    assert "the one before it is used" in caplog.text


@pytest.mark.parametrize("which", range(5))
def test_a_missing_file_is_found(copy: Path, which: int) -> None:
    newest_files(copy)[which].unlink()
    found = Checkpoints(copy / "checkpoints").newest()
    assert found is not None
    assert found.manifest.timesteps == 90


def test_a_torn_checkpoint_is_passed_over_by_every_command(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = copy / "checkpoints" / "step-000000100" / "agents.safetensors"
    torn.write_bytes(torn.read_bytes()[:-7])
    assert load_run(copy).num_timesteps == 90
    main(["inspect", str(copy), "--json"])
    findings = json.loads(capsys.readouterr().out)
    assert findings["last_good_step"] == 90
    assert [entry["verifies"] for entry in findings["checkpoints"]] == [True, False]
    assert "agents.safetensors has" in findings["checkpoints"][1]["problem"]
    again = SAC.resume(copy)
    assert again.num_timesteps == 90
    again.learn(10, reset_num_timesteps=False, progress_bar=False)
    assert Checkpoints(copy / "checkpoints").steps() == [90, 100]
    assert load_run(copy).num_timesteps == 100


def test_where_nothing_is_whole_it_says_what_is_wrong(copy: Path) -> None:
    first = copy / "checkpoints" / "replay" / "segment-000000.safetensors"
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(DamagedError, match=r"no checkpoint that is whole: step 100: segment-000000.safetensors has"):
        Checkpoints(copy / "checkpoints").newest()
    with pytest.raises(SystemExit, match="2"):
        main(["resume", str(copy), "--total-timesteps", "200"])


def test_paths_cannot_leave_the_folder(copy: Path) -> None:
    path = copy / "checkpoints" / "step-000000100"
    good = Manifest.decode((path / "manifest.json").read_bytes())
    for name in ("../config.json", "/etc/passwd", "..", "a/b", ".hidden", ""):
        bad = good._replace(segments=[good.segments[0]._replace(file=name)])
        (path / "manifest.json").write_bytes(bad.encode())
        with pytest.raises(DamagedError, match="no file of a checkpoint"):
            Checkpoints(copy / "checkpoints").read(100)
        bad = good._replace(files={**good.files, name: Sum(1, "")})
        (path / "manifest.json").write_bytes(bad.encode())
        with pytest.raises(DamagedError):
            Checkpoints(copy / "checkpoints").read(100)


def test_a_link_is_not_followed(copy: Path, tmp_path: Path) -> None:
    file = copy / "checkpoints" / "step-000000100" / "state.json"
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(DamagedError, match=r"state\.json is a link"):
        Checkpoints(copy / "checkpoints").read(100)


class Trap:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (self.folder,)

    def __init__(self, folder: str) -> None:
        self.folder = folder


def hostile_files(folder: Path, trap: Path) -> Iterator[Path]:
    """Files that ask to be executed, or that claim to be much larger than they are."""
    code = pickle.dumps(Trap(str(trap)))
    yield write(folder / "pickle.safetensors", code)
    with zipfile.ZipFile(folder / "zip.safetensors", "w") as archive:  # as PyTorch and Stable-Baselines3 save
        archive.writestr("data.pkl", code)
        archive.writestr("../../escape", "x")
    yield folder / "zip.safetensors"
    np.save(folder / "array.npy", np.array([Trap(str(trap))]), allow_pickle=True)
    yield (folder / "array.npy").rename(folder / "array.safetensors")
    yield write(folder / "header.safetensors", struct.pack("<Q", 2**60) + b"{}")
    claim = b'{"x":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}'
    yield write(folder / "claim.safetensors", struct.pack("<Q", len(claim)) + claim)
    array = {"x": np.zeros(2, np.float32)}
    save_file(array, folder / "stranger.safetensors")
    yield folder / "stranger.safetensors"
    for number, about in enumerate(({}, {"format": "sunrise-model-1"}, {"format": "sunrise-model-1", "algo": "sac"})):
        save_file(array, folder / f"about-{number}.safetensors", {"about": json.dumps(about)})
        yield folder / f"about-{number}.safetensors"
    whole: dict[str, Any] = {
        "format": "sunrise-model-1",
        "algo": "sac",
        "policy": "MlpPolicy",
        "settings": SMALL,
        "timesteps": 1,
    }
    huge = {"kind": "box", "shape": [10**12], "dtype": "float32", "low": ["0"], "high": ["1"]}
    for number, space in enumerate((huge, {"kind": "box"}, {"kind": "discrete", "n": "x", "start": 0}, 7)):
        text = json.dumps({**whole, "observation_space": space, "action_space": space})
        save_file(array, folder / f"space-{number}.safetensors", {"about": text})
        yield folder / f"space-{number}.safetensors"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_loading_a_hostile_file_is_an_error_and_executes_nothing(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    for path in hostile_files(tmp_path, trap):
        with pytest.raises(SunriseError):
            SAC.load(path)
    assert not trap.exists()


def test_a_hostile_array_in_a_checkpoint_does_not_reach_a_run(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A checkpoint that verifies, but whose arrays are of another shape: the one before it is used."""
    checkpoints = Checkpoints(copy / "checkpoints")
    found = checkpoints.newest()
    assert found is not None
    arrays = found.arrays() | {"episode": np.zeros(1_000, np.int64)}
    with found.open_agents() as file:
        agents, segments = read_arrays(file, "agents"), found.manifest.segments
    facts = found.facts()
    facts["loop"]["timesteps"] = 110
    checkpoints.segments = segments
    checkpoints.write(Snapshot(110, agents, found.about(), arrays, facts, {}, segments[-1].spans, {"transitions": 0}))
    assert checkpoints.steps() == [100, 110]
    assert SAC.resume(copy).num_timesteps == 100
    assert "The checkpoint at step 110: episode of the checkpoint does not fit this run" in caplog.text
