"""The settings of a run are those it was begun with: its checkpoints have them, config.json is held against them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sunrise import SAC, SunriseError
from sunrise.agents import load_run
from sunrise.cli import main
from sunrise.config.settings import with_settings
from sunrise.envs.spaces import restore
from sunrise.files.documents import decode, sealed, unsealed
from sunrise.store.inspection import inspect_path
from sunrise.store.reading import read_run
from sunrise.store.tensors import open_model, read_about, write_arrays
from tests.attack.arena import Arena


@pytest.fixture
def run(arena: Arena, tmp_path: Path) -> Path:
    return arena.copy(tmp_path / "run")


def change(run: Path, seal: bool, **settings: Any) -> None:
    """Edit config.json as a person would, or with a checksum that fits."""
    config = json.loads((run / "config.json").read_text())
    config["settings"] |= settings
    text = sealed(unsealed(config)[0]) if seal else json.dumps(config).encode()
    (run / "config.json").write_bytes(text)


CHANGES = {"gamma": 0.5, "learning_rate": 0.1, "batch_size": 7, "buffer_size": 61, "seed": 4, "env_id": "Hopper-v5"}


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_was_edited_is_named_and_refused(run: Path, name: str, seal: bool) -> None:
    change(run, seal, **{name: CHANGES[name]})
    for use in (SAC.resume, load_run):
        with pytest.raises(
            SunriseError, match=f"config.json says {name} = {json.dumps(CHANGES[name])}, but the run was begun"
        ):
            use(run)
    assert f"config.json says {name} = " in inspect_path(run)["problems"][0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tensorboard_log", "elsewhere"),
        ("policy_kwargs", {"net_arch": [9]}),
        ("device", "gpu"),
        ("eval_env", "Hopper-v5"),
        ("verbose", 1),
        ("preset", "authors"),
        ("env", "Hopper-v5"),
    ],
)
def test_only_settings_are_taken_from_a_file(
    arena: Arena, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    early = arena.copy(tmp_path / "early", arena.early)
    for folder in (run, early):
        change(folder, True, **{name: value})
        with pytest.raises(SunriseError, match=f"{name}"):
            SAC.resume(folder)
    model = tmp_path / "model.safetensors"
    with model.open("wb") as file:
        arrays = load_file(arena.model_file)
        with open_model(arena.model_file) as whole:
            about = read_about(whole, "model")
        del about["sealed"]
        about["settings"][name] = value
        write_arrays(file, arrays, about)
    with pytest.raises(SunriseError, match=f"has a setting '{name}'"):
        SAC.load(model)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("damage", ["missing", "empty", "not json", "of another version", "a flipped bit"])
def test_a_config_that_cannot_be_read_is_made_again(
    arena: Arena, run: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = run / "config.json"
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        contents = {"empty": b"", "not json": b"{", "of another version": whole.replace(b'"jax": "', b'"jax": "7')}
        path.write_bytes(contents.get(damage, whole.replace(b'"command"', b'"commane"')))
    assert load_run(run).config == with_settings(arena.model.config, {"run_dir": ""})
    assert path.exists() == (damage != "missing")  # who only reads writes nothing
    assert arena.read(run, "resume") == arena.at[100]
    assert path.read_bytes() == whole
    assert "What the checkpoint says is used instead" in caplog.text.replace("what", "What")


def test_a_run_without_a_checkpoint_does_not_go_on_with_a_flipped_bit(arena: Arena, tmp_path: Path) -> None:
    early = arena.copy(tmp_path / "early", arena.early)
    whole = (early / "config.json").read_bytes()
    (early / "config.json").write_bytes(whole.replace(b'"gamma": 0.99', b'"gamma": 0.98'))
    with pytest.raises(SunriseError, match=r"config\.json is damaged: it does not have its checksum"):
        SAC.resume(early)
    config = unsealed(json.loads(whole))[0]  # as an older version wrote it
    (early / "config.json").write_text(json.dumps(config))
    assert read_run(early) == config


def test_a_run_of_an_older_version_goes_on(arena: Arena, run: Path) -> None:
    """Neither its config.json nor its checkpoints know of checksums of settings and of logs."""
    config = unsealed(json.loads((run / "config.json").read_text()))[0]
    (run / "config.json").write_text(json.dumps(config))
    from tests.attack.corruption import sign_checkpoint, with_header

    def without(header: Any) -> str:
        about = json.loads(header["__metadata__"]["about"])
        del about["begun"]
        header["__metadata__"]["about"] = json.dumps(about)
        return json.dumps(header)

    for path in run.glob("checkpoints/step-*/agents.safetensors"):
        path.write_bytes(with_header(path.read_bytes(), without))
        facts = json.loads((path.parent / "state.json").read_text())
        facts["logs"] = {name: size for name, (size, _) in facts["logs"].items()}
        (path.parent / "state.json").write_text(json.dumps(facts))
        sign_checkpoint(path)
    config["settings"]["total_timesteps"] = 150  # which was believed
    (run / "config.json").write_text(json.dumps(config))
    assert read_run(run) == config
    assert arena.read(run, "resume") == arena.at[100]
    assert unsealed(json.loads((run / "config.json").read_text())) == (config, "whole")
    (run / "config.json").write_text(json.dumps(config | {"settings": config["settings"] | {"gamma": 0.5}}))
    with pytest.raises(SunriseError, match=r"config\.json says gamma"):
        SAC.resume(run)


def test_only_the_command_extends_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(run, False, total_timesteps=500)
    with pytest.raises(SunriseError, match="says total_timesteps = 500, but the run was begun with 100"):
        SAC.resume(run)
    change(run, False, total_timesteps=100)
    main(["resume", str(run), "--total-timesteps", "104"])
    assert json.loads((run / "config.json").read_text())["settings"]["total_timesteps"] == 104
    assert json.loads((run / "status.json").read_text())["timesteps"] == 104
    assert read_run(run)["settings"]["total_timesteps"] == 104


def test_a_space_is_refused_before_it_takes_memory(tmp_path: Path, arena: Arena) -> None:
    box: dict[str, Any] = {"kind": "box", "shape": [2**13, 2**13], "dtype": "float32", "low": ["0"], "high": ["1"]}
    many = {"kind": "dict", "spaces": {str(i): {**box, "shape": [2**20]} for i in range(5)}}
    for space in (
        box,
        many,
        {**box, "shape": [-1, -(2**30)]},
        {**box, "dtype": "O"},
        {**box, "low": ["x"]},
        {**box, "shape": [3], "high": ["1e308"]},
    ):
        with pytest.raises(SunriseError, match="no description of a space"):
            restore(space)
    assert restore({**box, "shape": [3]}).shape == (3,)


def test_documents_are_read_strictly() -> None:
    refused = {
        "[" * 10**6: "nested too deeply",
        "[" * 40 + "]" * 40: "nested too deeply",
        "NaN": "NaN is no number",
        "[1e999]": "too large",
        "9" * 5000: "too long",
        '{"a": 1, "a": 2}': "occurs twice",
        "{": "Expecting",
        b"\xff": "can't decode",
    }
    for text, why in refused.items():
        with pytest.raises(ValueError, match=why):
            decode(text)  # type: ignore[arg-type]
    assert decode('{"a": [1, 2.5, null, "x", 0.99]}') == {"a": [1, 2.5, None, "x", 0.99]}
    assert decode(str(2**128 - 1)) == 2**128 - 1
    assert np.isnan(decode("[NaN]", constants=True)[0])


def test_tensors_are_files_that_the_library_of_the_format_reads(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.array(3, np.int64),
        "truth": np.array([[True, False]]),
        "bytes": np.arange(7, dtype=np.uint8),
        "half": np.ones((2, 2), np.float16).T,
        "double": np.arange(6.0).reshape(2, 3)[:, ::-1],
    }
    with (tmp_path / "ours").open("wb") as file:
        write_arrays(file, arrays, {"a": 1})
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, tmp_path / "theirs")
    ours, theirs = load_file(tmp_path / "ours"), load_file(tmp_path / "theirs")
    assert ours.keys() == arrays.keys()
    for name, array in arrays.items():
        assert ours[name].dtype == theirs[name].dtype == array.dtype
        np.testing.assert_array_equal(ours[name], array)
