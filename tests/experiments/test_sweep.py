"""A sweep's file is what it says, wrong ones are refused at their line, and its runs are made once and for all."""

import io
import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sunrise.cli import main
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError
from sunrise.experiments.cores import usable
from sunrise.experiments.executor import leave
from sunrise.experiments.grid_runs import part_of, read_grids
from sunrise.experiments.live import folders_of, glance, picture
from sunrise.experiments.local import Here
from sunrise.experiments.runs import configured
from sunrise.experiments.trial import agent_of, keep_failure
from sunrise.signals import kept_signals
from sunrise.store.run_folder import RunFolder
from tests.support import runs

EXAMPLE = """\
name: hopper
algo: sac
env_id: [Hopper-v5, sunrise/Walker-v0]
seeds: 5
settings: {total_timesteps: 20000, eval_freq: 2000}
arms:
  SAC: {ensemble_size: 1}
  SUN RISE: {}
"""
TINY = """\
algo: sac
env_id: Pendulum-v1
seeds: {seeds}
settings:
  {{total_timesteps: {length}, eval_freq: 100, eval_episodes: 1, log_freq: 50, save_freq: 25, learning_starts: 20,
   batch_size: 8, net_arch: [8, 8], buffer_size: 400, ensemble_size: 2{more}}}
"""


def tiny(path: Path, seeds: str = "[3]", length: int = 200, more: str = "") -> Path:
    path.write_text(TINY.format(seeds=seeds, length=length, more=more))
    return path


def expand(tmp_path: Path, text: str) -> list[Any]:
    (tmp_path / "grid.yaml").write_text(text)
    return read_grids(tmp_path / "grid.yaml", tmp_path / "out")


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(SunriseError) as error:
        expand(tmp_path, text)
    return str(error.value).removeprefix(f"{tmp_path / 'grid.yaml'}, ")


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_contracts_example_is_arms_x_environments_x_seeds(tmp_path: Path) -> None:
    found = expand(tmp_path, EXAMPLE)
    names = {
        f"{env}__{arm}__{seed}"
        for env in ("Hopper-v5", "sunrise-Walker-v0")
        for arm in ("SAC", "SUN_RISE")
        for seed in range(1, 6)
    }
    assert {run.folder.relative_to(tmp_path / "out" / "runs").name for run in found} == names
    assert len(found) == 20
    assert [run.seed for run in found[:5]] == [1, 1, 1, 1, 2]  # every arm has a seed before one has the next
    first = found[0]
    assert (first.env, first.arm.name, first.arm.algo) == ("Hopper-v5", "SAC", "sac")
    assert first.settings["ensemble_size"] == 1
    assert "ensemble_size" not in found[1].settings
    assert first.settings["total_timesteps"] == 20000


def test_a_list_is_an_axis_and_a_list_of_lists_is_one_of_a_setting_that_is_a_list(tmp_path: Path) -> None:
    found = expand(
        tmp_path,
        "algo: sac\nenv_id: Hopper-v5\nsettings: {net_arch: [64, 64], ucb_lambda: [1, 5]}\n"
        "arms:\n  a: {}\n  b: {net_arch: [[8, 8], [16]]}\n",
    )
    assert {(run.arm.name, run.settings["net_arch"], run.settings["ucb_lambda"]) for run in found} == {
        ("a ucb_lambda=1", (64, 64), 1),
        ("a ucb_lambda=5", (64, 64), 5),
        ("b net_arch=8x8 ucb_lambda=1", (8, 8), 1),
        ("b net_arch=8x8 ucb_lambda=5", (8, 8), 5),
        ("b net_arch=16 ucb_lambda=1", (16,), 1),
        ("b net_arch=16 ucb_lambda=5", (16,), 5),
    }


def test_several_grids_and_algorithms_are_told_apart_by_name(tmp_path: Path) -> None:
    found = expand(
        tmp_path,
        "- {algo: [sac, td3], env_id: Hopper-v5, seeds: [1, 4], arms: {N1: {ensemble_size: 1}}}\n"
        "- {algo: rainbow, env_id: ALE/Pong-v5}\n",
    )
    assert [run.folder.name for run in found] == [
        "Hopper-v5__sac_N1__1",
        "Hopper-v5__td3_N1__1",
        "Hopper-v5__sac_N1__4",
        "Hopper-v5__td3_N1__4",
        "ALE-Pong-v5__rainbow__1",
    ]


def test_numbers_are_as_on_the_command_line_and_presets_are_taken(tmp_path: Path) -> None:
    (one,) = expand(
        tmp_path,
        "algo: sac\nenv_id: dmc/walker-walk\nsettings:\n  {total_env_steps: 1e4, learning_rate: 3e-4,"
        " buffer_size: 20_000, preset: authors, gamma: 0.9, layer_norm: on}\n",
    )
    assert one.settings["total_timesteps"] == 5000  # an action lasts two steps of the simulator
    assert one.settings["learning_rate"] == 3e-4
    assert one.settings["buffer_size"] == 20000
    assert one.settings["layer_norm"] is True
    assert one.settings["truncation"] == "terminal"  # the authors'
    assert one.settings["gamma"] == 0.9


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (EXAMPLE.replace("eval_freq", "eval_frek"), "line 5: sac has no setting 'eval_frek'. Did you mean eval_freq?"),
        (EXAMPLE.replace("{ensemble_size: 1}", "{ensembel_size: 1}"), "line 7: sac has no setting 'ensembel_size'."),
        (EXAMPLE.replace("size: 1", "size: 0"), "line 7: ensemble_size is 0, but must be at least 1."),
        (EXAMPLE.replace("2000}", "often}"), "line 5: eval_freq is 'often', but must be of type int."),
        (EXAMPLE.replace("seeds", "seed"), "line 4: there is no key 'seed'. Did you mean seeds?"),
        (EXAMPLE.replace("algo: sac", "algo: sack"), "line 2: there is no algorithm 'sack'. Did you mean sac"),
        (EXAMPLE.replace("seeds: 5", "seeds: 0"), "line 4: seeds must be how many"),
        (EXAMPLE.replace("seeds: 5", "seeds: [1, 1]"), "line 4: a seed is there twice."),
        (EXAMPLE.replace("SUN RISE: {}", "SAC: {}"), "line 8: 'SAC' is there twice, first on line 7."),
        (EXAMPLE.replace("SUN RISE: {}", "SUN RISE: {}\n  SUN_RISE: {}"), "line 9: the run Hopper-v5__SUN_RISE__1"),
        (EXAMPLE.replace("{}", "{seed: 3}"), "line 8: seed is no setting of a sweep: it is `seeds`."),
        (EXAMPLE.replace("{}", "{gamma: []}"), "line 8: gamma is an empty list."),
        (EXAMPLE.replace("{}", "{gamma: {a: 1}}"), "line 8: gamma must be a value, or a list of values"),
        (EXAMPLE.replace("env_id:", "env:"), "line 3: there is no key 'env'. Did you mean env_id?"),
        (EXAMPLE.replace("name: hopper", "gamma: 0.9"), "line 1: there is no key 'gamma'. It is a setting: write it"),
        (EXAMPLE.replace("{}", "!!python/object/apply:os.system [true]"), "line 8: the tag tag:yaml.org"),
        (EXAMPLE.replace("{}", "&a {}"), "line 8: anchors and aliases"),
        (EXAMPLE.replace("{}", "*a"), "line 8: anchors and aliases"),
        (EXAMPLE.replace("{}", "{"), "line 9: "),
        (EXAMPLE.replace("{}", "[[[[[[[[[[[["), "line 8: it is nested too deeply."),
        (EXAMPLE.replace("{}", "{preset: authers}"), "line 8: there is no preset 'authers' for sac"),
        ("[]", "{path} has no grid."),
        ("", "{path} is empty."),
        ("algo: sac\n", "line 1: the grid has no `env_id`."),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_nearest_right_name(
    text: str, problem: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, text).startswith(problem.replace("{path}", str(tmp_path / "grid.yaml")))


def test_a_part_of_a_sweep_is_every_nth_run_and_the_parts_are_the_whole(tmp_path: Path) -> None:
    found = expand(tmp_path, EXAMPLE)
    parts = [part_of(found, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(run.folder.name for part in parts for run in part) == sorted(run.folder.name for run in found)
    assert [len(part) for part in parts] == [7, 7, 6]
    for wrong in ("0/3", "4/3", "1", "a/b"):
        with pytest.raises(SunriseError, match="must be i/n"):
            part_of(found, wrong)


def test_200_trials_are_listed_in_under_two_seconds_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(EXAMPLE.replace("seeds: 5", "seeds: 50"))
    command = [sys.executable, "-m", "sunrise", "sweep", "grid.yaml", "--out", "out", "--dry-run"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2  # whatever else the machine does
    assert re.search(r"200 runs, 200 of them to do: about [\d.]+ hours", done.stdout)
    assert re.search(r"take about [\d.,]+ [MG]B of disk", done.stdout)
    assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"]


# -- the runs ----------------------------------------------------------------------------------------------------------


def sweep(file: Path, out: Path, *flags: str, code: int = 0) -> str:
    """Run a sweep as a user does; what it said."""
    command = [sys.executable, "-m", "sunrise", "sweep", str(file), "--out", str(out), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def status_of(folder: Path) -> tuple[str, int]:
    status = RunFolder(folder).read_status()
    return status["status"], status["timesteps"]


@pytest.mark.slow
def test_more_seeds_and_more_timesteps_go_on_with_what_there_is(tmp_path: Path) -> None:
    """And a run that was extended is the run that was long from the beginning."""
    file, out = tiny(tmp_path / "grid.yaml", "1", 100), tmp_path / "out"
    said = sweep(file, out, "--workers", "2")
    assert "1 of 1 trials are finished" in said
    assert (out / "report" / "index.html").exists()
    assert "mean" in (out / "report" / "scores.md").read_text()
    first = out / "runs" / "Pendulum-v1__sac__1"
    config = json.loads((first / "config.json").read_text())
    assert config["arm"] == "sac"
    assert config["machine"]["cores"] == max(len(usable()) // 2, 1)
    assert config["command"][:3] == ["sunrise", "train", "sac"]
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    tiny(file, "2", 100)
    sweep(file, out, "--workers", "2")
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == before
    assert "All 2 runs were finished before" in sweep(file, out, "--workers", "2")
    tiny(file, "2", 200)
    sweep(file, out, "--workers", "2")
    sweep(file, tmp_path / "whole", "--workers", "2")
    for seed in (1, 2):
        name = f"Pendulum-v1__sac__{seed}"
        assert status_of(out / "runs" / name) == ("finished", 200)
        runs.assert_same(out / "runs" / name, tmp_path / "whole" / "runs" / name)
    tiny(file, "2", 200, ", gamma: 0.9")
    refused = sweep(file, out, code=2)
    assert f"{first} is a finished run with gamma = 0.99, not 0.9: choose another --out, or remove it." in refused
    tiny(file, "2", 100)
    assert "total_timesteps = 200, not 100" in sweep(file, out, code=2)


def start(file: Path, out: Path, *flags: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "sunrise", "sweep", str(file), "--out", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def owner_pid(folder: Path) -> int:
    """The process that holds a run, once it has made a checkpoint."""
    while not list(folder.glob("checkpoints/step-*")):
        time.sleep(0.02)
    return int(json.loads((folder / ".lock").read_text())["pid"])


@pytest.mark.slow
def test_a_killed_trial_and_a_killed_driver_change_nothing(tmp_path: Path) -> None:
    file, out = tiny(tmp_path / "grid.yaml", length=1500), tmp_path / "out"
    folder = out / "runs" / "Pendulum-v1__sac__3"
    driver = start(file, out, "--workers", "2")
    os.kill(owner_pid(folder), signal.SIGKILL)
    while json.loads((folder / ".lock").read_text() or "{}").get("attempt") != 2:
        time.sleep(0.02)
    assert glance(folder).state == "running"
    driver.kill()
    _, said = driver.communicate()
    assert "its process was killed by SIGKILL; it is tried again" in said
    sweep(file, out, "--workers", "2")
    sweep(file, tmp_path / "whole", "--workers", "2")
    runs.assert_same(folder, tmp_path / "whole" / "runs" / folder.name)


@pytest.mark.slow
def test_ctrl_c_saves_every_trial_and_says_how_to_go_on(tmp_path: Path) -> None:
    file, out = tiny(tmp_path / "grid.yaml", length=100_000), tmp_path / "out"
    driver = start(file, out)
    folder = out / "runs" / "Pendulum-v1__sac__3"
    owner_pid(folder)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=300)
    assert driver.returncode == 130
    assert f"Go on: sunrise sweep {file} --out {out}" in said
    assert status_of(folder)[0] == "stopped"


def test_a_second_ctrl_c_does_not_wait_for_trials_that_save(capsys: pytest.CaptureFixture[str]) -> None:
    class Slow(Here):
        def stop(self) -> bool:
            signal.raise_signal(signal.SIGINT)
            time.sleep(60)
            return True

    began = time.monotonic()
    with kept_signals():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the first has left it
        leave(Slow())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert time.monotonic() - began < 10
    assert "a trial that had not saved goes back to its last checkpoint" in capsys.readouterr().err


@pytest.mark.slow
def test_a_trial_that_fails_is_kept_with_its_traceback_and_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "grid.yaml", tmp_path / "out"
    text = (
        tiny(file, length=60)
        .read_text()
        .replace("env_id: Pendulum-v1", "env_id: [tests.support.toys:Gone-v0, Pendulum-v1]")
    )
    file.write_text(text)
    said = sweep(file, out, code=1)
    assert "1 of 2 trials are finished" in said
    assert re.search(r"1 failed:\n  tests.support.toys:Gone-v0__sac__3: .+", said)
    assert f"Go on with them: sunrise sweep {file} --out {out}" in said
    assert status_of(out / "runs" / "Pendulum-v1__sac__3") == ("finished", 60)
    kept = (out / "runs" / "tests.support.toys:Gone-v0__sac__3" / "failure.txt").read_text()
    assert "Traceback" in kept
    main(["sweep", "--watch", str(out)])
    shown = capsys.readouterr().out
    assert "Pendulum-v1__sac__3: finished" in shown
    assert "tests.support.toys:Gone-v0__sac__3: failed" in shown
    assert kept.partition("\n")[0] in shown
    assert "2 trials: 1 failed, 1 finished" in shown


@pytest.mark.slow
def test_a_trial_that_takes_more_memory_than_it_may_is_killed_and_tried_again(tmp_path: Path) -> None:
    file, out = tiny(tmp_path / "grid.yaml", length=60), tmp_path / "out"
    said = sweep(file, out, "--memory", "0.1", "--retries", "1", code=1)
    assert "its process was killed by SIGKILL; it is tried again" in said
    assert re.search(r"it had [\d,]+ MiB of memory, more than the 102 MiB it was granted.*\(tried 2 times\)", said)


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    said = sweep(tiny(tmp_path / "grid.yaml"), tmp_path / "out", "--ray-address", "127.0.0.1:1", code=2)
    assert "there is no Ray cluster at '127.0.0.1:1'" in said


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--workers", "0"], "workers is 0, but must be at least 1"),
        (["--workers", "2", "--ray-address", "auto"], "give one of them"),
        (["--gpus", "1"], "--gpus is for a cluster"),
        (["--memory", "-1"], "memory is -1.0, but must be above 0"),
        (["--only", "2"], "--only is '2', but must be i/n"),
        (["--retries", "-1"], "retries is -1"),
    ],
)
def test_wrong_flags_are_one_sentence(
    flags: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", str(tiny(tmp_path / "grid.yaml")), "--out", str(tmp_path / "out"), *flags])
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("part", "value", "named"),
    [
        ("env_id", "strangers:Env-v0", "env_id = strangers:Env-v0, not Pendulum-v1"),
        ("env_id", None, "env_id = , not Pendulum-v1"),
        ("wrapper", ["strangers:Wrapper"], r"wrapper = \['strangers:Wrapper'\], not \[\]"),
        ("algo", "strangers:MINE", "algo = strangers:MINE, not sac"),
    ],
)
def test_a_strangers_folder_imports_nothing_that_the_file_does_not_name(
    part: str, value: object, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strangers.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file, out = tiny(tmp_path / "grid.yaml"), tmp_path / "out"
    (run,) = read_grids(file, out)
    settings = json.loads(json.dumps(flatten_config(configured(run)))) | ({part: value} if part != "algo" else {})
    settings = {name: setting for name, setting in settings.items() if setting is not None}
    algo = {"algo": value, "imported_from": value} if part == "algo" else {"algo": "sac"}
    folder = RunFolder(run.folder)
    folder.files.make()
    about = {"policy": "MlpPolicy", "versions": {}, "machine": {}, "action_repeat": 1, "command": []}
    folder.write_config({**algo, **about, "settings": settings})
    folder.close()
    with pytest.raises(SunriseError, match=named):  # also where it was put there after the first look
        agent_of(run)
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", str(file), "--out", str(out)])
    assert not (tmp_path / "imported").exists()
    assert "strangers" not in sys.modules


# -- the view ----------------------------------------------------------------------------------------------------------


def make_run(folder: Path, status: str, timesteps: int, total: int, speed: float = 0.0, score: str = "") -> RunFolder:
    """A run's folder as a training of so far would have left it."""
    run = RunFolder(folder)
    run.files.make()
    settings = {"total_timesteps": total}
    about = {"algo": "sac", "policy": "MlpPolicy", "settings": settings, "versions": {}, "machine": {}}
    run.lock()
    run.write_config({**about, "action_repeat": 1})
    run.logs.append_metrics({"timesteps": timesteps, "time/steps_per_s": speed})
    if score:
        run.files.append("eval.csv", f"timesteps,mean_return\n100,1.0\n{timesteps},{score}\n".encode())
    run.status(status, timesteps, timesteps)  # type: ignore[arg-type]
    return run


def test_the_view_is_read_from_the_folders_alone(tmp_path: Path) -> None:
    runs_folder = tmp_path / "runs"
    going = make_run(runs_folder / "going", "running", 400, 1000, 20.0, "12.5")
    make_run(runs_folder / "done", "finished", 1000, 1000, 20.0, "99.0").close()
    make_run(runs_folder / "killed", "running", 300, 1000, 20.0).close()
    make_run(runs_folder / "failed", "stopped", 300, 1000).close()
    keep_failure(runs_folder / "failed", "the simulator fell over.", "Traceback ...")
    states = {path.name: glance(path) for path in folders_of(tmp_path)}
    assert {name: one.state for name, one in states.items()} == {
        "going": "running",
        "done": "finished",
        "killed": "stopped",
        "failed": "failed",
    }
    now = states["going"]
    assert (now.host, now.timesteps, now.total, now.speed) == (socket.gethostname(), 400, 1000, 20.0)
    assert (now.evaluation, now.left) == (12.5, 30.0)  # 600 timesteps at 20 a second
    assert states["failed"].why == "the simulator fell over."
    assert glance(runs_folder / "done", total=2000).state == "waiting"  # it is asked to become longer
    assert glance(runs_folder / "nothing").state == "waiting"
    going.close()
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(picture(list(states.values()), height=40))
    shown = screen.export_text()
    assert re.search(r"going +running +\S+ +400 of 1,000 +20 +12.5 +30 s", shown)
    assert "4 trials: 1 running, 1 failed, 1 stopped, 1 finished; about 1 min left at 20 timesteps/s" in shown
    assert "failed: the simulator fell over." in shown
    few = Console(width=120, record=True, file=io.StringIO())
    few.print(picture(list(states.values()) * 5, height=10))
    assert "and 17 more" in few.export_text()  # five failures are below


def test_a_folder_that_is_no_sweeps_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", "--watch", str(tmp_path)])
    assert "is no sweep's folder" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal_shows_a_table_whose_rows_change_in_place(tmp_path: Path) -> None:
    """On a real terminal, as a user's."""
    file, out = tiny(tmp_path / "grid.yaml", "[3]", 300), tmp_path / "out"
    status, shown = on_a_terminal([sys.executable, "-m", "sunrise", "sweep", str(file), "--out", str(out)])
    assert status == 0
    assert re.search(r"Pendulum-v1__sac__3 +running +\S+ +[\d,]+ of 300", shown)
    assert "1 trials: 1 finished" in shown
    assert "1 of 1 trials are finished" in shown


def on_a_terminal(command: list[str]) -> tuple[int, str]:
    """The exit code and all that was drawn, without colours."""
    descriptor, terminal = pty.openpty()
    size = {"COLUMNS": "120", "LINES": "30", "TERM": "xterm"}
    program = subprocess.Popen(command, stdout=terminal, stderr=terminal, env=os.environ | size)
    os.close(terminal)
    drawn = b""
    with suppress(OSError):  # a terminal whose program has ended
        while part := os.read(descriptor, 4096):
            drawn += part
    os.close(descriptor)
    return program.wait(60), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode(errors="replace"))
