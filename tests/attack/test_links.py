"""A stranger's run folder reads, overwrites and removes nothing of the user's, and nothing in it makes us wait."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sunrise import SAC, SunriseError
from sunrise.agents import load_run
from sunrise.agents.video import record_run
from sunrise.cli import main
from sunrise.files.folder import Folder
from tests.attack.arena import LENGTH, SMALL, Arena

STEP = f"checkpoints/step-{LENGTH:09d}"
FILES = ("config.json", "status.json", "metrics.jsonl", "eval.csv", ".lock", ".status.json.part", ".config.json.part")
INSIDE = (f"{STEP}/manifest.json", f"{STEP}/agents.safetensors", f"{STEP}/state.json", f"{STEP}/state.safetensors")
PARTS = ("checkpoints/replay/.segment-000004.safetensors.part", "checkpoints/replay/segment-000004.safetensors")
FOLDERS = ("checkpoints/replay", STEP, f"checkpoints/.step-{LENGTH + 10:09d}.part", "checkpoints/.gone-000000090")


@pytest.fixture
def theirs(tmp_path: Path, arena: Arena) -> Path:
    """A folder of the user's, with names that we also use."""
    folder = tmp_path / "theirs"
    shutil.copytree(arena.run / STEP, folder)
    for name in (
        "thesis.tex",
        "segment-000000.safetensors",
        "segment-000009.safetensors",
        ".segment-000001.safetensors.part",
    ):
        (folder / name).write_text("years of work\n")
    return folder


def everything(folder: Path) -> dict[str, Any]:
    found = {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
    return found | {"inodes": sorted(path.stat().st_ino for path in folder.rglob("*"))}


def plant(path: Path, target: Path) -> None:
    """A link in place of whatever is there."""
    if path.is_dir():
        path.rename(path.parent.parent / "moved away")
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", [*FILES, *INSIDE, *PARTS])
def test_a_file_that_is_a_link_leads_nowhere(name: str, arena: Arena, theirs: Path, tmp_path: Path) -> None:
    run = arena.copy(tmp_path / "run")
    target = theirs / "thesis.tex"
    content = (run / name).read_bytes() if (run / name).exists() else b"years of work\n"
    target.write_bytes(content)  # what is read through the link would even be right
    plant(run / name, target)
    before = everything(theirs)
    if name in ("metrics.jsonl", "eval.csv", ".lock"):
        with pytest.raises(SunriseError, match="is a link"):
            arena.go_on(run)
    else:  # what is written anew takes the link's place, and what is damaged is passed over
        arena.go_on(run)
    assert everything(theirs) == before


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_a_link_leads_nowhere(name: str, arena: Arena, theirs: Path, tmp_path: Path) -> None:
    run = arena.copy(tmp_path / "run")
    plant(run / name, theirs)
    before = everything(theirs)
    if name.endswith(".part"):  # nobody can know where a checkpoint will be written until it is whole
        arena.go_on(run)
    else:
        with pytest.raises(SunriseError, match="is a link") if name != STEP else pytest.raises(SunriseError):
            arena.go_on(run)
    assert everything(theirs) == before


def test_checkpoints_that_are_a_link_are_not_gone_on_from(arena: Arena, theirs: Path, tmp_path: Path) -> None:
    run = arena.copy(tmp_path / "run")
    (run / "checkpoints").rename(theirs / "checkpoints")
    (run / "checkpoints").symlink_to(theirs / "checkpoints")
    before = everything(theirs)
    for use in (arena.go_on, load_run):
        with pytest.raises(SunriseError, match="is a link"):
            use(run)
    with pytest.raises(SunriseError, match="is a link"):
        new_run(run)
    (run / "config.json").unlink()
    with pytest.raises(SunriseError, match="is a link"):
        new_run(run)
    assert everything(theirs) == before


def new_run(folder: Path) -> None:
    SAC("MlpPolicy", "Pendulum-v1", run_dir=str(folder), **SMALL).learn(1, progress_bar=False)


@pytest.mark.parametrize("name", ["metrics.jsonl", "eval.csv", ".lock"])
def test_a_file_with_a_second_name_elsewhere_is_not_written_to(
    name: str, arena: Arena, theirs: Path, tmp_path: Path
) -> None:
    run = arena.copy(tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    os.link(theirs / "thesis.tex", run / name)
    before = everything(theirs)
    with pytest.raises(SunriseError, match="second name"):
        arena.go_on(run)
    assert everything(theirs) == before


def no_fifo(path: Path) -> None:
    os.mkfifo(path)


def no_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def no_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        listener.bind(path.name)
        os.chdir(here)


@pytest.mark.parametrize("kind", [no_fifo, no_device, no_socket])
@pytest.mark.parametrize("name", [*FILES[:5], *INSIDE, "checkpoints/replay/segment-000003.safetensors"])
def test_what_would_be_waited_for_is_not_opened(
    kind: Callable[[Path], None], name: str, arena: Arena, tmp_path: Path
) -> None:
    run = arena.copy(tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    kind(run / name)
    for command in ("inspect", "evaluate", "reproduce", "resume"):
        try:
            arena.read(run, command)
        except SunriseError:
            assert command != "inspect"


def test_a_model_file_that_is_no_file_is_not_opened(tmp_path: Path) -> None:
    for kind in (no_fifo, no_socket, no_device):
        kind(tmp_path / f"{kind.__name__}.safetensors")
        with pytest.raises(SunriseError, match=r"is a (FIFO|socket|device)"):
            SAC.load(tmp_path / kind.__name__)
        with pytest.raises(SystemExit, match="2"):
            main(["inspect", str(tmp_path / f"{kind.__name__}.safetensors")])


def test_a_checkpoint_that_claims_more_than_its_settings_need_is_not_summed_up(arena: Arena, tmp_path: Path) -> None:
    """A sparse file takes no room in an archive, and for ever to read."""
    run = arena.copy(tmp_path / "run")
    for path in [*run.glob("checkpoints/replay/segment-000003*"), *run.glob("checkpoints/step-000000090/agents*")]:
        os.truncate(path, 2**40)
    with pytest.raises(SunriseError, match="bytes: too many for what it is"):
        arena.read(run, "resume")


def test_a_film_is_not_written_through_a_link(arena: Arena, theirs: Path, tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    run = arena.copy(tmp_path / "run")
    (run / "videos").symlink_to(theirs)
    before = everything(theirs)
    with pytest.raises(SunriseError, match="is a link"):
        record_run(run)
    assert everything(theirs) == before


def test_what_is_not_ours_stays(arena: Arena, tmp_path: Path) -> None:
    run = arena.copy(tmp_path / "run")
    notes = [run / "checkpoints" / "replay" / "notes.txt", run / "checkpoints" / "step-000000090" / "notes.txt"]
    for note in notes:
        note.write_text("mine")
    arena.go_on(run)
    assert notes[0].read_text() == "mine"
    (kept,) = run.glob("checkpoints/.gone-000000090*/notes.txt")
    assert kept.read_text() == "mine"


def test_what_a_kill_left_is_swept(arena: Arena, tmp_path: Path) -> None:
    run = arena.copy(tmp_path / "run")
    checkpoints = run / "checkpoints"
    shutil.copytree(checkpoints / "step-000000090", checkpoints / ".gone-000000060")
    shutil.copytree(checkpoints / "step-000000090", checkpoints / ".step-000000120.part")
    (checkpoints / ".step-000000120.part" / ".manifest.json.part").write_text("half")
    for name in ("checkpoints/replay/.segment-000004.safetensors.part", ".status.json.part", ".config.json.part"):
        (run / name).write_text("half")
    arena.read(run, "resume")
    assert not [path for path in run.rglob("*") if "part" in path.name or "gone" in path.name]


def test_a_folder_takes_names_and_no_paths(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for name in ("", ".", "..", "a/b", "/etc/passwd", "a\0b"):
        for use in (folder.sub, folder.remove, lambda name: folder.read(name, 9), lambda name: folder.write(name, b"")):
            with pytest.raises(SunriseError, match="is no name of a file"):
                use(name)
