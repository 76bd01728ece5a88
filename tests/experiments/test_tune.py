"""Tuning chooses by the seeds of selection alone, loses no trial to a kill, and says what it chose by."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sunrise.cli import main
from sunrise.commands.train import parse
from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.preset_file import read_preset_file
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError
from sunrise.experiments import rungs, tune
from sunrise.experiments.executor import HERE
from sunrise.experiments.grid_runs import read_grids
from sunrise.experiments.runs import Run, configured
from sunrise.experiments.study import JOURNAL, Proposals, Sampler, held
from sunrise.experiments.tuning import Tuning
from sunrise.files.documents import sealed
from sunrise.store.logs import EVAL_FIELDS
from sunrise.store.run_folder import RunFolder

SEARCH = """\
algo: sac
env_id: Pendulum-v1
select_seeds: 2
report_seeds: 3
settings: {total_timesteps: 900, eval_freq: 100}
search:
  weight_temperature: [10, 20, 50]
  ucb_lambda: [1, 5, 10]
"""
Value = Callable[[Run, int], float]


def written(run: Run, value: Value) -> None:
    """A finished run's folder, as far as a tuning reads it; its evaluations are what we say."""
    config, total = flatten_config(configured(run)), run.settings["total_timesteps"]
    about = {"action_repeat": 1, "versions": {}, "machine": {}, "command": [], "arm": run.arm.name, **run.labels}
    run.folder.mkdir(parents=True, exist_ok=True)
    content = {"algo": run.arm.algo, "policy": "MlpPolicy", "settings": config, **about}
    (run.folder / "config.json").write_bytes(sealed(content))
    every = config["eval_freq"]
    rows = [f"{t},{value(run, t)!r},0,0,0,1" for t in range(every, total + 1, every)]
    (run.folder / "eval.csv").write_text("\n".join([",".join(EVAL_FIELDS), *rows, ""]))
    (run.folder / "status.json").write_bytes(sealed({"status": "finished", "timesteps": total, "env_steps": total}))


def liking(run: Run, timesteps: int) -> float:
    """Best at T = 20 and λ = 5; seeds differ, and everything grows with time."""
    settings = run.settings
    off = abs(settings["weight_temperature"] - 20) / 10 + abs(settings["ucb_lambda"] - 5)
    return float(timesteps / 100 - off + 0.01 * (run.seed % 7))


class Trainer:
    """Takes the place of training: writes what runs would leave, and remembers which they were."""

    def __init__(self, value: Value = liking) -> None:
        self.value, self.made = value, list[tuple[str, int]]()
        self.breaks_at = -1

    def __call__(self, runs: Sequence[Run], execution: object) -> list[Any]:
        for run in runs:
            if len(self.made) == self.breaks_at:
                raise KeyboardInterrupt
            written(run, self.value)
            self.made.append((run.folder.name, run.settings["total_timesteps"]))
        return []


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Trainer:
    own = Trainer()
    for module in (rungs, tune):
        monkeypatch.setattr(module, "execute", own)
    return own


def tuned(tmp_path: Path, text: str = SEARCH, out: str = "out", report: bool = False, **method: Any) -> Path:
    (tmp_path / "search.yaml").write_text(text)
    path = tmp_path / out
    tune.tune(tmp_path / "search.yaml", path, HERE, tune.Method(**method), report, False, ["sunrise", "tune"])
    return path


def preset(out: Path) -> Any:
    return read_preset_file(out / "best" / "Pendulum-v1.yaml")


def candidates(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "candidates.csv").read_text().splitlines()))


def refusal(tmp_path: Path, text: str) -> str:
    (tmp_path / "search.yaml").write_text(text)
    with pytest.raises(SunriseError) as error:
        Tuning(tmp_path / "search.yaml")
    return str(error.value).removeprefix(f"{tmp_path / 'search.yaml'}, ")


# -- the choice --------------------------------------------------------------------------------------------------------


def test_the_best_mean_over_the_seeds_of_selection_wins_and_its_file_says_so(tmp_path: Path, trainer: Trainer) -> None:
    out = tuned(tmp_path, report=True)
    chosen = preset(out)
    assert (chosen.algo, chosen.env_id) == ("sac", "Pendulum-v1")
    assert chosen.settings == {"total_timesteps": 900, "eval_freq": 100, "weight_temperature": 20, "ucb_lambda": 5}
    labels = chosen.labels
    assert labels["tuned_on"] == [1001, 1002]
    assert labels["chosen_by"]["scores"] == [9.0, 9.01]  # 1001 is a multiple of 7
    assert labels["chosen_by"]["mean"] == pytest.approx(9.005)
    assert labels["chosen_by"]["report_seeds"] == [1, 2, 3]
    rows = candidates(out)
    assert len(rows) == 9
    assert max(rows, key=lambda row: float(row["mean"]))["candidate"] == "weight_temperature=20 ucb_lambda=5"
    assert [name for name, _ in trainer.made[18:]] == [f"Pendulum-v1__tuned__{seed}" for seed in (1, 2, 3)]
    config = json.loads((out / "report" / "runs" / "Pendulum-v1__tuned__1" / "config.json").read_text())
    assert config["tuned_on"] == [1001, 1002]
    assert config["chosen_by"]["scores"] == [9.0, 9.01]


def test_no_seed_of_the_report_ever_influences_a_choice(
    tmp_path: Path, trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = preset(tuned(tmp_path))
    (tmp_path / "search.yaml").write_text(SEARCH)
    tuning, out = Tuning(tmp_path / "search.yaml"), tmp_path / "planted"
    for candidate in tuning.grid_of("Pendulum-v1"):  # the worst on selection is the best by far on the others
        for seed in tuning.report_seeds:
            for where in (out / "select", out / "report", out):
                written(tuning.run("Pendulum-v1", candidate, seed, where), lambda run, t: 1e6 - liking(run, t))
    read: list[str] = []
    before = RunFolder.read_eval

    def noted(folder: RunFolder) -> list[dict[str, float]]:
        read.append(folder.path.name.rpartition("__")[2])
        return before(folder)

    monkeypatch.setattr(RunFolder, "read_eval", noted)
    for sampler in ("grid", "random"):
        chosen = preset(tuned(tmp_path, out="planted", sampler=sampler, trials=30, rungs=2))
        assert chosen.labels["chosen_by"]["scores"] == first.labels["chosen_by"]["scores"], sampler
        assert chosen.settings == first.settings
    assert set(read) == {"1001", "1002"}


def test_seeds_of_selection_and_of_the_report_are_never_the_same(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text(SEARCH)
    tuning = Tuning(tmp_path / "search.yaml")
    assert (tuning.select_seeds, tuning.report_seeds) == ([1001, 1002], [1, 2, 3])
    said = refusal(tmp_path, SEARCH.replace("select_seeds: 2", "select_seeds: [3, 7]"))
    assert said.startswith("line 4: the seed 3 is one of selection and of the report")
    assert "line 4: the seed 1001" in refusal(tmp_path, SEARCH.replace("report_seeds: 3", "report_seeds: 2000"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ucb_lambda: [1", "ucb_lamda: [1", "line 8: sac has no setting 'ucb_lamda'. Did you mean ucb_lambda?"),
        ("[1, 5, 10]", "[1, 5, -10]", "line 8: ucb_lambda is -10.0, but must be at least 0."),
        ("[1, 5, 10]", "[1, 5, 1]", "line 8: a value of ucb_lambda is there twice."),
        ("[1, 5, 10]", "{low: 5, high: 1}", "line 8: a range of ucb_lambda is {low: 0.1, high: 10, log: true}."),
        ("[1, 5, 10]", "{low: 0, high: 1, log: true}", "line 8: a range of ucb_lambda is"),
        ("select_seeds", "seeds", "line 3: there is no key 'seeds'."),
        ("eval_freq: 100", "eval_freq: 0", "line 6: eval_freq is 0"),
        ("algo: sac", "algo: [sac, td3]", "line 1: one algorithm is tuned at a time."),
        ("algo: sac", "algo: sac\nscore: best", "line 2: score must be one of last, area."),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert refusal(tmp_path, SEARCH.replace(old, new)).startswith(said)


def test_a_grid_beyond_all_use_is_refused_before_it_is_listed(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(1, 21)))
    many = "".join(
        f"  {name}: [{values}]\n" for name in ("ucb_lambda", "batch_size", "gradient_steps", "weight_temperature")
    )
    (tmp_path / "search.yaml").write_text(f"algo: sac\nenv_id: Pendulum-v1\nsearch:\n{many}")
    with pytest.raises(SunriseError, match="the grid has more than 100,000 candidates"):
        list(Tuning(tmp_path / "search.yaml").grid_of("Pendulum-v1"))


def test_a_journal_that_is_a_link_is_not_written_to(tmp_path: Path, trainer: Trainer) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("years of work")
    (tmp_path / "out" / "journal.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(SunriseError, match="is a link"):
        tuned(tmp_path, sampler="random", trials=1)
    assert (tmp_path / "mine").read_text() == "years of work"


def test_without_a_search_the_papers_sets_are_searched(tmp_path: Path) -> None:
    for env, count in (("Hopper-v5", 3 * 2 * 3), ("ALE/Pong-v5", 2 * 2 * 2)):
        algo = "rainbow" if env.startswith("ALE") else "sac"
        (tmp_path / "search.yaml").write_text(f"algo: {algo}\nenv_id: {env}\n")
        found = list(Tuning(tmp_path / "search.yaml").grid_of(env))
        assert len(found) == count
        assert set(found[0].settings) == {"weight_temperature", "bootstrap_prob", "ucb_lambda"}


def test_the_area_can_choose_otherwise_than_the_last_evaluation(tmp_path: Path, trainer: Trainer) -> None:
    def late(run: Run, t: int) -> float:
        return float(run.settings["ucb_lambda"] if t == 900 else -run.settings["ucb_lambda"])

    trainer.value = late
    assert preset(tuned(tmp_path)).settings["ucb_lambda"] == 10
    assert preset(tuned(tmp_path, "score: area\n" + SEARCH, "area")).settings["ucb_lambda"] == 1


def test_a_tuning_of_other_settings_is_refused_by_name(tmp_path: Path, trainer: Trainer) -> None:
    tuned(tmp_path)
    with pytest.raises(SunriseError, match=r"with batch_size = 256, not 128: choose another --out"):
        tuned(tmp_path, SEARCH.replace("eval_freq: 100", "eval_freq: 100, batch_size: 128"))


# -- successive halving ------------------------------------------------------------------------------------------------


def test_rungs_are_thirds_at_evaluations() -> None:
    assert rungs.rungs(900, 100, 1) == (900,)
    assert rungs.rungs(900, 100, 3) == (100, 300, 900)
    assert rungs.rungs(1000, 150, 3) == (150, 450, 1000)
    assert rungs.rungs(900, 900, 3) == (900,)


def test_a_third_goes_on_to_the_next_rung_and_is_extended(tmp_path: Path, trainer: Trainer) -> None:
    out = tuned(tmp_path, rungs=3)
    lengths = [length for _, length in trainer.made]
    assert lengths == [100] * 18 + [300] * 6 + [900] * 2  # two seeds each
    assert preset(out).settings["ucb_lambda"] == 5
    states = [row["state"] for row in candidates(out)]
    assert sorted(states) == ["finished"] + ["given up"] * 8
    trainer.made.clear()
    tuned(tmp_path, rungs=3)
    assert trainer.made == []  # all of it is in the folders


# -- Optuna ------------------------------------------------------------------------------------------------------------


def trials_of(out: Path) -> dict[str, tuple[str, str, str]]:
    """Every candidate with its settings, state and scores."""
    return {row["candidate"]: (row["settings"], row["state"], row["scores"]) for row in candidates(out)}


RANGE = SEARCH.replace("ucb_lambda: [1, 5, 10]", "ucb_lambda: {low: 0.5, high: 10, log: true}")


@pytest.mark.parametrize(("sampler", "parallel"), [("tpe", 1), ("random", 3)])
def test_a_tuning_stopped_anywhere_has_the_trials_of_one_that_never_was(
    tmp_path: Path, trainer: Trainer, sampler: str, parallel: int
) -> None:
    method: dict[str, Any] = {"sampler": sampler, "trials": 7, "parallel": parallel, "rungs": 2}
    whole = trials_of(tuned(tmp_path, RANGE, "whole", **method))
    made = sorted(trainer.made)
    assert len(whole) == 7
    assert len({settings for settings, _, _ in whole.values()}) == 7
    trainer.made.clear()
    for stop in range(1, len(made), 4):
        trainer.breaks_at = stop
        with pytest.raises(KeyboardInterrupt):
            tuned(tmp_path, RANGE, **method)
    with (tmp_path / "out" / JOURNAL).open("ab") as file:
        file.write(b'{"op_code":4,"worker')  # a kill in the middle of a line
    trainer.breaks_at = -1
    assert trials_of(tuned(tmp_path, RANGE, **method)) == whole
    assert sorted(trainer.made) == made  # nothing is made twice


def proposed(out: Path, tuning: Tuning, sampler: Sampler) -> dict[str, tuple[Any, Any]]:
    """Twelve trials, two at a time, each told a score at once; those told before are kept."""
    proposals = Proposals(out, tuning, "Pendulum-v1", sampler, 0)
    while batch := proposals.batch(12, 2, set()):
        for trial, candidate in batch:
            mean = -abs(candidate.settings["ucb_lambda"] - 5) - 10 * candidate.settings["gamma"]
            proposals.tell(trial, rungs.Result(candidate, {900: mean}, (mean,), (900,)))
    return {result.candidate.name: (result.candidate.settings, result.mean) for result in proposals.results()}


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_kill_after_any_line_of_the_journal_changes_no_proposal(tmp_path: Path, sampler: Sampler) -> None:
    """Also between two draws of one trial. The first ten are random, and only then does TPE look at the others."""
    (tmp_path / "search.yaml").write_text(
        RANGE + "  bootstrap_prob: [0.5]\n  gamma: {low: 0.9, high: 0.99}\n"  # of one value nothing is drawn
    )
    tuning, whole = Tuning(tmp_path / "search.yaml"), tmp_path / "whole"
    whole.mkdir()
    expected = proposed(whole, tuning, sampler)
    assert len(expected) == 12
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if b'"trial_id":10' in line.replace(b" ", b""))
    for kept in range(last, len(lines)):  # while the last two are asked for, drawn and told
        out = tmp_path / str(kept)
        out.mkdir()
        (out / JOURNAL).write_bytes(b"".join(lines[:kept]))
        assert proposed(out, tuning, sampler) == expected, lines[kept]


def test_more_trials_go_on_and_another_search_is_refused(tmp_path: Path, trainer: Trainer) -> None:
    few = trials_of(tuned(tmp_path, RANGE, sampler="tpe", trials=2))
    more = trials_of(tuned(tmp_path, RANGE, sampler="tpe", trials=4))
    assert few.items() <= more.items()
    assert len(more) == 4
    with pytest.raises(SunriseError, match="is a tuning with search"):
        tuned(tmp_path, RANGE.replace("[10, 20, 50]", "[10, 20]"), sampler="tpe", trials=4)
    with pytest.raises(SunriseError, match="is a tuning with sampler"):
        tuned(tmp_path, RANGE, sampler="random", trials=4)


def test_a_folder_is_tuned_by_one_process_at_a_time(tmp_path: Path, trainer: Trainer) -> None:
    with held(tmp_path / "out"), pytest.raises(SunriseError, match="is being tuned by another process"):
        tuned(tmp_path)


TINY = """\
algo: random
env_id: Pendulum-v1
select_seeds: 2
settings:
  {total_timesteps: 60, eval_freq: 20, eval_episodes: 1, eval_max_steps: 20, learning_starts: 10, save_freq: 10}
search:
  reward_noise: {low: 0.1, high: 10, log: true}
"""


@pytest.mark.slow
def test_a_process_killed_between_ask_and_tell_loses_no_trial_and_doubles_none(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text(TINY)

    def command(out: str) -> list[str]:
        words = ["tune", str(tmp_path / "search.yaml"), "--out", str(tmp_path / out), "--sampler", "tpe"]
        return [sys.executable, "-m", "sunrise", *words, "--trials", "3"]

    subprocess.run(command("whole"), check=True, capture_output=True)
    for number in range(3):  # once in each trial, when its first run is on its way
        process = subprocess.Popen(command("out"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = tmp_path / "out" / "select" / "runs" / f"Pendulum-v1__trial_{number:04d}__1001"
        until = time.monotonic() + 300
        while not (begun / "trial.log").exists() and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    done = subprocess.run(command("out"), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert trials_of(tmp_path / "out") == trials_of(tmp_path / "whole")
    folders = [sorted(path.name for path in (tmp_path / out / "select" / "runs").iterdir()) for out in ("out", "whole")]
    assert folders[0] == folders[1]
    for name in folders[0]:
        rows = [(tmp_path / out / "select" / "runs" / name / "eval.csv").read_bytes() for out in ("out", "whole")]
        assert rows[0] == rows[1]


# -- the preset --------------------------------------------------------------------------------------------------------


def test_train_and_sweep_take_the_winner_and_say_on_which_seeds_it_was_chosen(tmp_path: Path, trainer: Trainer) -> None:
    out = tuned(tmp_path)
    asked = parse(ALGORITHMS["sac"], ["--config", str(out / "best" / "Pendulum-v1.yaml")])
    assert (asked.settings["weight_temperature"], asked.settings["env_id"]) == (20, "Pendulum-v1")
    assert asked.labels["tuned_on"] == [1001, 1002]
    text = "algo: sac\nenv_id: Pendulum-v1\nseeds: 2\narms:\n  plain: {}\n  tuned: {config: 'out/best/{env_id}.yaml'}\n"
    (tmp_path / "grid.yaml").write_text(text)
    plain, best, *_ = read_grids(tmp_path / "grid.yaml", tmp_path / "sweep")
    assert (best.settings["ucb_lambda"], best.settings["seed"]) == (5, 1)
    assert best.labels["tuned_on"] == [1001, 1002]
    assert not plain.labels
    (tmp_path / "grid.yaml").write_text(
        text.replace("env_id: Pend", "env_id: [Hopper-v5, Pend")
        .replace("v1\ns", "v1]\ns")
        .replace("{env_id}", "Pendulum-v1")
    )
    with pytest.raises(SunriseError, match=r"line 6: .*Pendulum-v1.yaml is for Pendulum-v1, not for Hopper-v5"):
        read_grids(tmp_path / "grid.yaml", tmp_path / "sweep")


def test_a_run_from_a_tuned_preset_has_its_scores_in_config_json(tmp_path: Path) -> None:
    text = "algo: random\nenv_id: Pendulum-v1\ntuned_on: [1001]\nchosen_by: {score: last, scores: [7.5]}\n"
    (tmp_path / "best.yaml").write_text(text + "settings: {eval_freq: 0, learning_starts: 5}\n")
    flags = ["--total-timesteps", "10", "--run-dir", str(tmp_path / "run")]
    main(["train", "--config", str(tmp_path / "best.yaml"), *flags])
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["tuned_on"] == [1001]
    assert config["chosen_by"] == {"score": "last", "scores": [7.5]}
    (tmp_path / "best.yaml").write_text(text.replace("[1001]", "[one]"))
    with pytest.raises(SunriseError, match="tuned_on must be a list of seeds"):
        read_preset_file(tmp_path / "best.yaml")
