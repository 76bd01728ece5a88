"""Runs are found below folders and read as they are, whatever else lies there."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from sunrise.errors import SunriseError
from sunrise.files.documents import sealed
from sunrise.report.arms import arms, differences
from sunrise.report.report import Options, evaluation_rows, make_report
from sunrise.report.results import Run, find_runs, read_run
from tests.report.folders import make_arms, make_run

ROOT = Path(__file__).parents[2]


def labels(root: Path) -> dict[str, str]:
    return {run.name: run.arm for run in arms(find_runs([root]).runs)}


def test_a_run_is_read_with_all_it_says_of_itself(tmp_path: Path) -> None:
    make_run(tmp_path / "a/b", (1.5, 2.5), seed=7, repeat=4, config={"tuned_on": [7, 8]})
    (tmp_path / "a/b/videos").mkdir()
    (tmp_path / "a/b/videos/one.mp4").touch()
    (run,) = find_runs([tmp_path]).runs
    assert (run.name, run.algo, run.env, run.seed, run.action_repeat) == ("a/b", "sac", "Hopper-v5", 7, 4)
    assert (run.status, run.timesteps, run.total_timesteps, run.tuned_on) == ("finished", 2000, 2000, (7, 8))
    np.testing.assert_array_equal(run.evaluations["mean_return"], [1.5, 2.5])
    np.testing.assert_array_equal(run.evaluations["env_steps"], [4000, 8000])
    np.testing.assert_allclose(run.evaluations["hours"], [1.0, 2.0])
    np.testing.assert_array_equal(run.metrics["train/critic_loss"], [0.1, 0.1])
    assert run.command == ("sunrise", "train", "sac")
    assert [video.name for video in run.videos] == ["one.mp4"]


def test_the_clock_of_a_run_that_was_resumed_goes_on(tmp_path: Path) -> None:
    times = ((1000, 3600.0), (2000, 7200.0), (3000, 1800.0))  # resumed after the second row
    rows = [{"timesteps": t, "time/elapsed_s": s} for t, s in times]
    run = read_run(make_run(tmp_path / "run", metrics=rows))
    np.testing.assert_allclose(run.evaluations["hours"], [1.0, 2.0, 2.5])


def test_a_half_written_row_is_left_out_and_a_lacking_number_is_nan(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", status=None, metrics=[{"timesteps": 1, "x": 1.0}, {"timesteps": 2, "y": None}])
    for name, part in (("eval.csv", "4000,9.9"), ("metrics.jsonl", '{"timesteps": 3, "x"')):
        with (run / name).open("a") as file:
            file.write(part)
    found = read_run(run)
    assert len(found.evaluations["timesteps"]) == 3
    np.testing.assert_array_equal(found.metrics["x"], [1.0, np.nan])
    assert np.isnan(found.metrics["y"]).all()


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        ("finished", "", ("finished", "")),
        ("failed", "reward is not finite", ("failed", "reward is not finite")),
        ("stopped", "", ("stopped", "")),
        ("running", "", ("stopped", "killed")),  # nobody holds its lock
        (None, "", ("finished", "")),  # a kept record has no status; it reached its end
    ],
)
def test_how_a_run_ended_is_known(tmp_path: Path, status: str | None, error: str, expected: tuple[str, str]) -> None:
    run = read_run(make_run(tmp_path / "run", status=status, error=error))
    assert (run.status, run.reason) == expected


def test_what_cannot_be_read_is_named_and_the_rest_is_reported(tmp_path: Path) -> None:
    make_run(tmp_path / "good")
    (make_run(tmp_path / "cut") / "config.json").write_text('{"algo": "sac", "sett')
    (make_run(tmp_path / "garbled") / "eval.csv").write_text("timesteps\nnonsense\n")
    (make_run(tmp_path / "backward") / "eval.csv").write_text(
        "timesteps,mean_return,std_return,min_return,max_return,episodes\n2000,1,0,1,1,5\n1000,1,0,1,1,5\n"
    )
    (make_run(tmp_path / "endless") / "eval.csv").write_text(
        "timesteps,mean_return,std_return,min_return,max_return,episodes\ninf,1,0,1,1,5\n"
    )
    make_run(tmp_path / "huge", (1e300, 1.0))
    (make_run(tmp_path / "deep") / "metrics.jsonl").write_text("[" * 100_000 + "\n")
    found = find_runs([tmp_path])
    assert [run.name for run in found.runs] == ["good"]
    assert [problem.split(" cannot be read")[0].rpartition("/")[2] for problem in found.problems] == [
        "backward",
        "cut",
        "deep",
        "endless",
        "garbled",
        "huge",
    ]


def test_a_config_that_was_changed_afterwards_is_read_and_that_is_said(tmp_path: Path) -> None:
    path = make_run(tmp_path / "edited") / "config.json"
    path.write_text(path.read_text().replace('"ensemble_size": 5', '"ensemble_size": 6'))
    (run,) = find_runs([tmp_path]).runs
    assert run.settings["ensemble_size"] == 6
    told = [caution.text for caution in make_report([run], Options(reps=10)).cautions if caution.kind == "altered"]
    assert told == ["edited: config.json is not as the run wrote it."]


def test_links_fifos_and_large_files_lead_nowhere(tmp_path: Path) -> None:
    secret = make_run(tmp_path / "elsewhere/secret")
    root = tmp_path / "root"
    make_run(root / "good")
    (root / "link").symlink_to(secret)
    (root / "up").symlink_to(root)
    (make_run(root / "stolen") / "eval.csv").unlink()
    (root / "stolen/eval.csv").symlink_to(secret / "eval.csv")
    (make_run(root / "fifo") / "metrics.jsonl").unlink()
    os.mkfifo(root / "fifo/metrics.jsonl")
    with (make_run(root / "large") / "config.json").open("a") as file:
        file.truncate(2**31)
    found = find_runs([root])
    assert [run.name for run in found.runs] == ["good"]
    assert len(found.problems) == 3


def test_names_that_are_no_text_can_be_written(tmp_path: Path) -> None:
    weird = tmp_path / os.fsdecode(b"\xff\xfe")
    make_run(weird / "run\n", env_id="half \ud800 of a letter")
    (run,) = find_runs([tmp_path]).runs
    run.name.encode()
    run.env.encode()
    evaluation_rows([run]).encode()


def test_a_place_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SunriseError, match="no run in or below"):
        find_runs([tmp_path])
    with pytest.raises(SunriseError, match="nothing at"):
        find_runs([tmp_path / "nowhere"])
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SunriseError, match="no table of evaluations"):
        find_runs([tmp_path / "table.csv"])


def test_a_folder_with_a_reports_table_alone_is_read_and_said_to_be(tmp_path: Path) -> None:
    runs = arms(find_runs([make_arms(tmp_path / "runs", seeds=2)]).runs)
    (tmp_path / "report").mkdir()
    table = tmp_path / "report" / "results.csv"
    table.write_text(evaluation_rows(runs))
    again, problems = find_runs([tmp_path / "report"])
    assert [(run.env, run.arm, run.seed) for run in again] == [(run.env, run.arm, run.seed) for run in runs]
    assert problems == (f"There is no run in or below {table.parent}: its results.csv, of a report, is read instead.",)
    table.write_text(table.read_text().replace("env_steps", "steps"))  # somebody else's
    with pytest.raises(SunriseError, match=r"results\.csv is no report's.*name that file"):
        find_runs([tmp_path / "report"])
    table.unlink()
    table.symlink_to(ROOT / "benchmarks/results/fig3b/results.csv")
    with pytest.raises(SunriseError, match="is a link"):
        find_runs([tmp_path / "report"])


def test_a_run_named_twice_is_one_run_and_several_folders_are_told_apart(tmp_path: Path) -> None:
    make_run(tmp_path / "one/run", seed=1)
    make_run(tmp_path / "two/run", seed=2)
    assert len(find_runs([tmp_path, tmp_path / "one"]).runs) == 2
    assert [run.name for run in find_runs([tmp_path / "one", tmp_path / "two"]).runs] == ["one/run", "two/run"]


def test_arms_are_named_by_the_fewest_settings_that_tell_them_apart(tmp_path: Path) -> None:
    make_arms(tmp_path / "sizes", seeds=2)
    assert set(labels(tmp_path / "sizes").values()) == {"ensemble_size=1", "ensemble_size=5"}
    make_run(tmp_path / "mixed/a", algo="sac", gamma=0.9)
    make_run(tmp_path / "mixed/b", algo="td3", gamma=0.9)
    make_run(tmp_path / "mixed/c", algo="td3", gamma=0.8)
    assert set(labels(tmp_path / "mixed").values()) == {"sac, gamma=0.9", "td3, gamma=0.9", "td3, gamma=0.8"}
    make_run(tmp_path / "alone/a", seed=1)
    make_run(tmp_path / "alone/b", seed=2, save_freq=7, log_freq=9)
    assert set(labels(tmp_path / "alone").values()) == {"sac"}


def test_settings_that_belong_to_an_environment_make_no_arm(tmp_path: Path) -> None:
    make_run(tmp_path / "a", env_id="dmc/cheetah-run", action_repeat=4)
    make_run(tmp_path / "b", env_id="dmc/walker-walk", action_repeat=2)
    assert set(labels(tmp_path).values()) == {"sac"}
    assert differences(find_runs([tmp_path]).runs) == {}


def test_a_setting_that_a_run_does_not_have_is_not_known_to_differ(tmp_path: Path) -> None:
    make_run(tmp_path / "older")
    make_run(tmp_path / "newer", seed=2, a_new_setting=3)
    assert set(labels(tmp_path).values()) == {"sac"}


def test_a_sweeps_own_names_stay(tmp_path: Path) -> None:
    make_run(tmp_path / "Hopper-v5__SUNRISE_without_UCB__1", exploration="member")
    make_run(tmp_path / "x", seed=2, config={"arm": "mine"})
    make_run(tmp_path / "Hopper-v5__sac__3__20260101-000000", seed=3)  # `sunrise train` names by the time
    make_run(tmp_path / "Hopper-v5__N=1__noise__4", seed=4)
    found = ["N=1 noise", "SUNRISE without UCB", "exploration=ucb", "mine"]
    assert sorted(labels(tmp_path).values()) == sorted(found)


def test_runs_of_one_name_and_seed_that_differ_are_told_apart(tmp_path: Path) -> None:
    make_run(tmp_path / "1-base/Hopper-v5__ours__1", ensemble_size=1, weighting="none")
    make_run(tmp_path / "2-five/Hopper-v5__ours__1")
    make_run(tmp_path / "3-again/Hopper-v5__ours__1")
    assert list(labels(tmp_path).values()) == [
        "ours, ensemble_size=1",
        "ours, ensemble_size=5, 2-five",
        "ours, ensemble_size=5, 3-again",
    ]


def test_the_committed_records_of_real_runs_are_read() -> None:
    runs, problems = find_runs([ROOT / "benchmarks/results/evidence"])
    assert problems == ()
    run = next(run for run in runs if run.name == "1-base/Hopper-v5__ours__1")
    assert run.finished
    assert run.evaluations["mean_return"].size == 12
    assert np.isfinite(run.metrics["train/critic_loss"]).any()
    table = find_runs([ROOT / "benchmarks/results/hopper/results.csv"]).runs
    assert {run.arm for run in table} == {"SAC", "SUNRISE"}
    assert len(table) == 6


def test_a_reports_own_table_of_evaluations_is_read_back_exactly(tmp_path: Path) -> None:
    runs = arms(find_runs([make_arms(tmp_path / "runs", seeds=2, reward_noise=0.1)]).runs)
    runs = (*runs, runs[0]._replace(arm="=1+1"), runs[0]._replace(arm='a, "b"'))
    (tmp_path / "results.csv").write_text(evaluation_rows(runs))
    again = find_runs([tmp_path / "results.csv"]).runs

    def facts(run: Run) -> tuple[str, str, int, list[float], list[float]]:
        own = run.evaluations
        return run.env, run.arm, run.seed, own["timesteps"].tolist(), own["mean_return"].tolist()

    assert list(map(facts, again)) == list(map(facts, runs))


def test_a_config_without_a_checksum_is_of_an_older_version_and_is_read(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run") / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in config.items() if name not in ("sealed", "sha256")}))
    assert read_run(path.parent).env == "Hopper-v5"
    path.write_bytes(sealed({"algo": 3}))
    with pytest.raises(SunriseError, match="names no algorithm"):
        read_run(path.parent)


def test_the_temperature_of_a_weight_is_a_part_of_the_weight_and_alone_a_setting(tmp_path: Path) -> None:
    make_run(tmp_path / "a", weighting="confidence", weight_temperature=20.0)
    make_run(tmp_path / "b", weighting="relative", weight_temperature=1.0)
    assert list(differences(find_runs([tmp_path]).runs)) == ["weighting"]
    make_run(tmp_path / "c", weighting="relative", weight_temperature=2.0)
    assert list(differences(find_runs([tmp_path]).runs)) == ["weighting", "weight_temperature"]


def test_the_lambda_of_a_run_that_does_not_explore_by_ucb_is_no_difference(tmp_path: Path) -> None:
    make_run(tmp_path / "a", exploration="member", ucb_lambda=1.0)
    make_run(tmp_path / "b", exploration="ucb", ucb_lambda=10.0)
    assert list(differences(find_runs([tmp_path]).runs)) == ["exploration"]
    make_run(tmp_path / "c", exploration="ucb", ucb_lambda=5.0)
    assert sorted(differences(find_runs([tmp_path]).runs)) == ["exploration", "ucb_lambda"]
