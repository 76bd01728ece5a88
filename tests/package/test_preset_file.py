"""Settings in a file: a run's config.json or a preset file gives settings, flags win, and nothing in it is believed."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import sunrise
from sunrise.cli import main
from sunrise.commands.train import parse
from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.preset_file import read_preset_file, write_preset_file
from sunrise.config.resolve import as_begun, resolve
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError
from sunrise.files.documents import sealed


def run_of(folder: Path, algo: str, env_id: str, **settings: Any) -> Path:
    """A run's folder with what `train` writes of these settings."""
    asked = {"env_id": env_id, "run_dir": str(folder), **settings}
    resolved = flatten_config(as_begun(resolve(ALGORITHMS[algo], asked, env_id)))
    about = {"action_repeat": 1, "versions": {}, "machine": {}, "command": []}
    folder.mkdir()
    content = {"algo": algo, "policy": "MlpPolicy", "settings": resolved, **about}
    (folder / "config.json").write_bytes(sealed(content))
    return folder


def parsed(algo: str, *words: str) -> dict[str, Any]:
    return parse(ALGORITHMS[algo], words).settings


@pytest.mark.parametrize(
    ("algo", "env_id"), [("sac", "Hopper-v5"), ("rainbow", "ALE/Pong-v5"), ("sac", "dmc/cartpole-swingup")]
)
def test_the_settings_of_a_run_make_the_same_run(tmp_path: Path, algo: str, env_id: str) -> None:
    changes: dict[str, Any] = {"learning_rate": 2e-3, "net_arch": (32, 16), "total_timesteps": 777, "seed": 9}
    run = run_of(tmp_path / "run", algo, env_id, **changes)
    first = json.loads((run / "config.json").read_text())["settings"]
    for path in (run, run / "config.json"):
        asked = parsed(algo, "--config", str(path))
        assert asked["run_dir"] == ""
        again = flatten_config(as_begun(resolve(ALGORITHMS[algo], asked, asked["env_id"])))
        assert json.loads(json.dumps(again)) == first | {"run_dir": ""}


def test_flags_win_and_what_follows_from_them_is_decided_anew(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "sac", "Hopper-v5", gamma=0.9)
    asked = parsed("sac", "--config", str(run), "--ensemble-size", "1", "--gamma", "0.8", "--env-id", "dmc/walker-walk")
    config = resolve(ALGORITHMS["sac"], asked, "dmc/walker-walk")
    assert (config.training.gamma, config.ensemble.ensemble_size, config.run.env_id) == (0.8, 1, "dmc/walker-walk")
    assert config.ensemble.weighting == "none"  # of five members it was the paper's
    assert config.env.action_repeat == 2  # the task's: it had no effect on Hopper
    chosen = run_of(tmp_path / "chosen", "sac", "Hopper-v5", weighting="relative", weight_temperature=3)
    asked = parsed("sac", "--config", str(chosen), "--ensemble-size", "1")
    assert (asked["weighting"], asked["weight_temperature"]) == ("relative", 3.0)


def test_a_preset_file_is_a_mapping_of_settings_or_says_more(tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text("# ours\nlearning_rate: 1e-3\nnet_arch: [64, 64]\nweighting: none\nbuffer_size: 1e5\n")
    asked = parsed("sac", "--config", str(plain), "--env-id", "Hopper-v5", "--preset", "redq")
    assert (asked["learning_rate"], asked["net_arch"], asked["weighting"]) == (1e-3, (64, 64), "none")
    assert asked["buffer_size"] == 100_000
    assert asked["n_critics"] == 10  # of the preset, about which the file says nothing
    for name in ("best.yaml", "best.json"):
        if name.endswith("yaml"):
            write_preset_file(tmp_path / name, "td3", "1e6", {"net_arch": (8, 8), "tau": 1e-07, "warmup": "uniform"})
        else:
            content = {
                "algo": "td3",
                "env_id": "1e6",
                "settings": {"net_arch": [8, 8], "tau": 1e-7, "warmup": "uniform"},
            }
            (tmp_path / name).write_text(json.dumps(content, indent="\t"))
        asked = parsed("td3", "--config", str(tmp_path / name))
        assert (asked["env_id"], asked["net_arch"], asked["tau"]) == ("1e6", (8, 8), 1e-7)
        assert sunrise.settings_from(tmp_path / name) == {"net_arch": (8, 8), "tau": 1e-7, "warmup": "uniform"}
    assert read_preset_file(tmp_path / "best.yaml").algo == "td3"


def test_keywords_of_an_agent_are_what_it_takes(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "random", "Pendulum-v1", total_timesteps=50, seed=4)
    found = sunrise.settings_from(run)
    assert not found.keys() & {"env_id", "total_timesteps", "run_dir"}
    assert sunrise.Random("MlpPolicy", "Pendulum-v1", **found).config.run.seed == 4
    with pytest.raises(SunriseError, match="is a run of random, not of sac"):
        sunrise.settings_from(run, "sac")


WRONG = {
    "gama: 0.9": r"line 1: there is no setting 'gama'\. Did you mean gamma\?",
    "gamma: 0.9\n\nbatchsize: 3": r"line 3: there is no setting 'batchsize'\. Did you mean batch_size\?",
    "algo: sac\nsettings:\n  tau: 0.1\n  gamma: 2": "line 4: gamma is 2.0, but must be between 0 and 1",
    "net_arch: wide": "line 1: net_arch is 'wide', but must be",
    "algo: td3\nsettings: {}": "is a preset of td3, not of sac",
    "algo: sac\ngamma: 0.9": "has 'gamma' beside algo, env_id and settings",
    "algo: [sac]": "algo is .* but must be of type str",
    "- gamma": "must be a mapping of settings",
    "gamma: !!python/object/apply:os.system [echo]": "line 1: the tag .* is not taken",
    "a: &a [1]\nb: *a": "anchors and aliases",
    "gamma: 1\ngamma: 2": "'gamma' is there twice",
    "gamma: [": "line 1",
    "": "is empty",
    "run_dir: /somewhere": "run_dir is not for a file to say",
    "env_id: evil:Env-v0\nsettings: {}": "imports the module 'evil'.*--env-id evil:Env-v0",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_a_file_is_named_with_where_it_stands(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(SystemExit):
        main(["train", "sac", "--config", str(path)])
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}")
    with pytest.raises(SunriseError, match=WRONG[text]):
        raise SunriseError(said)


def test_a_run_of_another_algorithm_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "sac", "Hopper-v5")
    with pytest.raises(SunriseError, match=r"config\.json is a run of sac, not of td3"):
        parsed("td3", "--config", str(run))
    path = run / "config.json"
    path.write_text(path.read_text().replace('"gamma": 0.99', '"gamma": 0.98'))
    with pytest.raises(SunriseError, match="it does not have its checksum"):
        parsed("sac", "--config", str(run))
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(SunriseError, match="too many for what it is"):
        parsed("sac", "--config", str(run))
    for text, why in (("{", "cannot be read as JSON"), ('{\n "gama": 1}', "line 2: there is no setting 'gama'")):
        path.write_text(text)
        with pytest.raises(SunriseError, match=why):
            parsed("sac", "--config", str(run))


def test_a_file_that_says_its_algorithm_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_preset_file(tmp_path / "one.yaml", "random", "Pendulum-v1", {"total_timesteps": 20, "eval_freq": 0})
    main(["train", "--config", str(tmp_path / "one.yaml"), "--run-dir", str(tmp_path / "run")])
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert (status["status"], status["timesteps"]) == ("finished", 20)
    (tmp_path / "two.yaml").write_text("gamma: 0.9\n")
    with pytest.raises(SystemExit):
        main(["train", "--config", str(tmp_path / "two.yaml")])
    assert "does not say for which algorithm it is" in capsys.readouterr().err


def test_a_json_file_of_many_lines_is_read_at_once(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(50_000)]
    (tmp_path / "x.json").write_text("{" + ",".join(f'"{name}":\n1' for name in names) + "}")
    begun = time.monotonic()
    found = read_preset_file(tmp_path / "x.json")
    assert time.monotonic() - begun < 5  # counted from the start for each name, it took half a minute
    assert (found.lines["a0"], found.lines["a49999"]) == (1, 50_000)
    (tmp_path / "y.json").write_text('{"algo": "sac", "settings": {\n"gamma"\n: 0.9, "tau" : 0.1}}')
    assert (read_preset_file(tmp_path / "y.json").lines) == {"algo": 1, "settings": 1, "gamma": 2, "tau": 3}
