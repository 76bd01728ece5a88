"""An algorithm that is not in the package, `examples/own_learner.py`, has all that ours have, and nobody imports it
unasked."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

import sunrise
from sunrise import SunriseError
from sunrise.agents import load_run, resume_run
from sunrise.cli import main
from sunrise.config.fields import fields
from sunrise.config.own import own_algorithm
from sunrise.config.settings import with_settings
from sunrise.run.building import ensemble_of
from tests.support import runs, tiny
from tests.support.example import EXAMPLES, example

SMALL: dict[str, Any] = {
    "ensemble_size": 3,
    "net_arch": (8,),
    "batch_size": 4,
    "buffer_size": 200,
    "learning_starts": 20,
    "seed": 5,
}
SMALL |= {"eval_freq": 30, "eval_episodes": 1, "log_freq": 20, "save_freq": 20, "bootstrap_prob": 0.7}
WORDS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value).strip("(),"))]
NAME = "own_learner:DDPG"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user's folder with their own module in it, and a run that was trained from there by the command."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copy(EXAMPLES / "own_learner.py", folder)
    with (folder / "own_learner.py").open("a") as file:  # whoever imports it leaves a trace
        file.write("\nfrom pathlib import Path\n\n(Path(__file__).parent / 'imported').touch()\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        patch.delitem(sys.modules, "own_learner", raising=False)
        run = ["--env-id", "Pendulum-v1", "--total-timesteps", "60", "--run-dir", "run"]
        main(["train", NAME, *run, *WORDS])
        yield folder
        sys.modules.pop("own_learner", None)


def test_it_trains_by_the_command_with_all_that_ours_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((folder / "run" / "config.json").read_text())
    assert (config["algo"], config["imported_from"]) == ("ddpg", NAME)
    row = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"train/critic_loss", "train/weight_mean", "train/disagreement_mean", "chosen/2"} <= row.keys()
    assert 0.5 < row["train/weight_mean"] < 1  # the confidence of three members
    assert len((folder / "run" / "eval.csv").read_text().splitlines()) == 3
    main(["evaluate", str(folder / "run"), "--episodes", "1", "--algorithm", NAME])
    assert json.loads(capsys.readouterr().out)["episodes"] == 1
    main(["inspect", str(folder / "run"), "--json"])
    findings = json.loads(capsys.readouterr().out)
    assert (findings["algo"], findings["problems"], findings["last_good_step"]) == ("ddpg", [], 60)


def test_stopped_and_resumed_it_is_the_run_never_stopped(folder: Path) -> None:
    broken = folder / "broken"

    def stop(now: dict[str, Any], _: Any) -> None:
        if now["self"].num_timesteps >= 48:
            raise KeyError("the power went")

    model = sunrise.agent(own_algorithm(NAME))("MlpPolicy", "Pendulum-v1", run_dir=str(broken), **SMALL)
    with pytest.raises(KeyError):
        model.learn(60, stop, progress_bar=False, log_interval=None)
    del model
    main(["resume", str(broken), "--total-timesteps", "60", "--algorithm", NAME])
    runs.assert_same(folder / "run", broken)


def test_a_strangers_code_is_imported_only_where_the_user_names_it(folder: Path) -> None:
    (folder / "imported").unlink()
    for command in (["evaluate", "run"], ["resume", "run", "--total-timesteps", "70"], ["train", "--config", "run"]):
        words = [sys.executable, "-m", "sunrise", *command]
        refused = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert "an algorithm that is not ours" in refused.stderr
        assert NAME in refused.stderr
        assert not (folder / "imported").exists()
    with pytest.raises(SunriseError, match=f"--algorithm {NAME}"):
        load_run(folder / "run")
    other = own_algorithm(NAME)._replace(name="other")
    for use in (load_run, resume_run):
        with pytest.raises(SunriseError, match="is a run of ddpg, not of other"):
            use(folder / "run", algorithm=other)
    (folder / "imported").touch()


def test_it_is_saved_and_loaded_as_ours_are(folder: Path, tmp_path: Path) -> None:
    model = load_run(folder / "run", algorithm=own_algorithm(NAME))
    model.save(tmp_path / "model")
    again = sunrise.agent(NAME).load(tmp_path / "model")
    assert tiny.same_bits(again.ensemble, model.ensemble)
    with pytest.raises(SunriseError, match="is a model of ddpg, not of sac"):
        sunrise.SAC.load(tmp_path / "model")


def test_its_settings_are_keywords_flags_and_files_like_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    algorithm = own_algorithm(NAME)
    assert [field.name for field in fields(algorithm.defaults) if not field.is_complete] == []
    with pytest.raises(SystemExit):
        main(["train", NAME, "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Standard deviation of the Gaussian noise that explores" in shown
    with pytest.raises(SunriseError, match=r"tau is 2\.0, but must be between 0 and 1"):
        sunrise.agent(algorithm)("MlpPolicy", None, tau=2)
    assert sunrise.settings_from(folder / "run", algorithm)["batch_size"] == 4
    with pytest.raises(SystemExit):
        main(["train", NAME, "--config", str(folder / "run"), "--gama", "1"])
    assert "--gamma" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("own_learner:DPG", r"no sunrise\.Algorithm\. Did you mean DDPG\?"),
        ("own_lerner:DDPG", "module 'own_lerner' of own_lerner:DDPG cannot be imported"),
        ("own_learner:", "it must be like"),
        (":DDPG", "it must be like"),
    ],
)
def test_a_misspelt_one_is_refused_with_a_sentence(folder: Path, path: str, words: str) -> None:
    with pytest.raises(SunriseError, match=words):
        own_algorithm(path)


@pytest.mark.parametrize(("name", "words"), [("sac", "one of ours"), ("../x", "must be of letters"), ("", "letters")])
def test_its_name_is_its_own_and_one_that_folders_can_have(name: str, words: str) -> None:
    with pytest.raises(SunriseError, match=words):
        sunrise.agent(example("own_learner").DDPG._replace(name=name))


def test_a_member_is_the_same_agent_whatever_the_size_and_one_is_the_plain_algorithm() -> None:
    """Two sizes with neither masks nor weights, and what must hold of the targets and of Adam's first step."""
    module = example("own_learner")
    sample = tiny.sample(np.random.default_rng(0), 2, prob=1.1)
    found = []
    for size in (1, 2):
        config = with_settings(
            module.DDPG.defaults, {"net_arch": (6,), "ensemble_size": size, "weighting": "none", "tau": 0.25}
        )
        functions, numbers = ensemble_of(module.DDPG.fit(config, *tiny.spaces()), config)
        state, tally = functions.init(jax.random.key(7), numbers)
        before = jax.tree.map(lambda leaf: np.asarray(leaf[0]), state.members)
        given = sample._replace(mask=sample.mask[:, :size])
        state, _, _ = functions.update(state, tally, given, jax.random.key(1), numbers)
        found.append((before, jax.tree.map(lambda leaf: np.asarray(leaf[0]), state.members)))
    tiny.assert_trees_close(found[0], found[1], 1e-5)
    before, after = found[0]
    moved = jax.tree.map(lambda t, o, n: t + 0.25 * (n - o), before.target, before.online, after.online)
    tiny.assert_trees_close(after.target, moved, 1e-6)
    steps = jax.tree.leaves(jax.tree.map(lambda a, b: np.abs(b - a), before.online, after.online))
    assert max(step.max() for step in steps) == pytest.approx(1e-3, rel=1e-2)  # Adam's first step is its size


def test_actions_that_it_cannot_take_are_refused() -> None:
    with pytest.raises(SunriseError, match="DDPG"):
        sunrise.agent(example("own_learner").DDPG)("MlpPolicy", gym.make("CartPole-v1"))
