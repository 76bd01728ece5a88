"""The paper's experiments on DeepMind Control: simulator steps, the paper's columns, renderers that are not mixed."""

import json
from pathlib import Path
from typing import Any

import pytest

from sunrise.cli import main
from sunrise.commands.report import finish
from sunrise.config.algorithms import algorithm
from sunrise.config.length import Length
from sunrise.config.resolve import defaults_for
from sunrise.config.settings import flatten_config
from sunrise.errors import SunriseError
from sunrise.experiments.executor import execute
from sunrise.experiments.outcome import outcome_of
from sunrise.experiments.paper import DMC
from sunrise.experiments.runs import Run, choose, configured, expand
from sunrise.report.published import published_for
from sunrise.report.results import find_runs, read_table

HERE = Path(__file__).parents[2]


def plan(name: str, scale: str = "paper", out: Path = Path("nowhere")) -> list[Run]:
    experiment, chosen = choose(name, scale, None, ())
    return expand(experiment, chosen, out, "ours", {})


def test_a_task_has_as_many_timesteps_as_its_action_repeat_leaves() -> None:
    runs = plan("table2")
    assert len(runs) == 6 * 2 * 5
    wanted = {"finger-spin": 2, "cartpole-swingup": 8, "reacher-easy": 4, "cheetah-run": 4}
    wanted |= {"walker-walk": 2, "ball_in_cup-catch": 4}
    for run in runs:
        repeat = wanted[run.env.removeprefix("dmc/")]
        assert run.settings["total_timesteps"] == 500_000 / repeat
        assert 100_000 / repeat % run.settings["eval_freq"] == 0  # an evaluation falls on 100k
    sparse = plan("fig3b")
    assert len(sparse) == 2 * 5
    found = {(r.settings["total_timesteps"], r.settings["eval_freq"], r.settings["eval_episodes"]) for r in sparse}
    assert found == {(12_500, 1250, 5)}


@pytest.mark.parametrize("algo", ["sac", "discor"])
def test_on_deepmind_control_the_entropy_weight_starts_at_the_papers_tenth(algo: str) -> None:
    for env in ("dmc/cartpole-swingup_sparse", "dmc/humanoid-run"):
        assert flatten_config(defaults_for(algorithm(algo), env))["ent_coef"] == "auto_0.1"
    assert flatten_config(defaults_for(algorithm(algo), "sunrise/Hopper-v0"))["ent_coef"] == "auto"
    runs = expand(*choose("fig3b", "paper", None, ()), Path("out"), "ours", {})
    assert {flatten_config(configured(run))["ent_coef"] for run in runs} == {"auto_0.1"}


def test_the_arms_are_the_papers() -> None:
    def arms(name: str) -> dict[str, tuple[Any, ...]]:
        names = ("ensemble_size", "exploration", "pixels", "augmentation", "action_repeat")
        found = {run.arm.name: flatten_config(configured(run)) for run in plan(name) if "cartpole" in run.env}
        return {arm: tuple(s.get(n) for n in names) for arm, s in found.items()}

    assert arms("fig3b") == {
        "SUNRISE": (5, "ucb", False, None, 8),
        "SUNRISE without UCB": (5, "member", False, None, 8),
    }
    assert arms("fig6") == {
        "SAC": (1, "ucb", True, "none", 8),
        "SUNRISE on SAC": (5, "ucb", True, "none", 8),
        "RAD": (1, "ucb", True, "crop", 8),
        "SUNRISE on RAD": (5, "ucb", True, "crop", 8),
    }
    assert arms("table2").keys() == {"RAD", "SUNRISE on RAD"}
    assert {run.settings["ensemble_size"] for run in plan("fig6", "quick")} == {1, 2}


def test_the_papers_numbers_are_those_of_the_steps() -> None:
    def paper(env: str, members: int) -> list[tuple[float, float, int]]:
        settings = {"ensemble_size": members, "weighting": "confidence", "exploration": "ucb", "augmentation": "crop"}
        run = read_table(HERE / "benchmarks/results/pixels/results.csv")[0]
        return [
            (found.mean, found.spread, found.env_steps)
            for found in published_for(run._replace(env=env, algo="rad", settings=settings))
        ]

    assert paper("dmc/cartpole-swingup", 1) == [(373, 90, 100_000), (873, 3, 500_000)]
    assert paper("dmc/cartpole-swingup", 5)[1] == (876, 4, 500_000)
    assert paper("dmc/ball_in_cup-catch", 5)[0] == (633, 241, 100_000)
    assert all(len(paper(env, members)) == 2 for env in DMC for members in (1, 5))


def test_runs_of_another_renderer_are_refused(tmp_path: Path) -> None:
    experiment, scale = choose("table2", "quick", None, ())
    run = expand(experiment, scale, tmp_path, "ours", {"renderer": "warp"})[0]
    run.folder.mkdir(parents=True)
    settings = flatten_config(configured(run)) | {"renderer": "egl"}
    (run.folder / "config.json").write_text(json.dumps({"algo": "rad", "policy": "CnnPolicy", "settings": settings}))
    (run.folder / "status.json").write_text(json.dumps({"status": "finished", "timesteps": 1000}))
    with pytest.raises(SunriseError, match="is a finished run with renderer = egl, not warp"):
        execute([run])
    (run.folder / "status.json").write_text(json.dumps({"status": "stopped", "timesteps": 1000}))
    (run.folder / "checkpoints").mkdir()
    with pytest.raises(SunriseError, match="is a stopped run with renderer = egl, not warp"):
        execute([run])
    assert (run.folder / "checkpoints").exists()  # what was begun is not thrown away


def test_the_sparse_task_really_runs(tmp_path: Path) -> None:
    pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
    experiment, scale = choose("fig3b", "quick", None, ())
    tiny = {"learning_starts": 120, "batch_size": 8, "net_arch": (8, 8), "eval_freq": 130, "buffer_size": 1000}
    runs = expand(experiment, scale, tmp_path, "ours", tiny, Length(total_env_steps=1047))
    assert execute(runs) == []
    assert all(run.done for run in runs)
    last = json.loads((runs[0].folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["timesteps"], last["env_steps"], last["episodes"]) == (130, 1040, 1)
    evaluated = [run.evaluations for run in find_runs([run.folder for run in runs]).runs]
    assert [(*own["timesteps"], *own["env_steps"]) for own in evaluated] == [(130, 1040)] * 2
    status = json.loads((runs[0].folder / "status.json").read_text())
    assert (status["timesteps"], status["env_steps"]) == (130, 1040)


def test_the_table_of_pixels_really_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mujoco_warp", reason="needs the extra dmc")
    experiment, scale = choose("table2", "quick", None, ())
    tiny = {
        "learning_starts": 10,
        "batch_size": 8,
        "net_arch": (8, 8),
        "filters": 4,
        "conv_layers": 2,
        "feature_dim": 6,
    }
    tiny |= {"render_size": 24, "crop_size": 20, "shadow_size": 0, "renderer": "warp"}  # compiled for another test too
    tiny |= {"eval_freq": 15, "eval_episodes": 1}
    runs = expand(experiment, scale, tmp_path, "ours", tiny, Length(total_env_steps=120))
    assert execute(runs) == []
    found = find_runs([run.folder for run in runs]).runs
    assert [(run.arm, *run.evaluations["timesteps"], *run.evaluations["env_steps"]) for run in found] == [
        ("RAD", 15, 120),
        ("SUNRISE on RAD", 15, 120),
    ]
    outcome = outcome_of(experiment, scale, runs, "quick", "ours")
    finish(outcome.folders, tmp_path / "report", outcome.title, outcome.about, outcome.cautions, outcome.arms)
    text = (tmp_path / "report/scores.md").read_text()
    assert "| at 100k simulator steps | at 500k simulator steps |" in text
    assert "| paper: 100k simulator steps, 5 runs | paper: 500k simulator steps, 5 runs |" in text
    assert "| 373 ± 90 | 873 ± 3 |" in text
    assert "15 timesteps, 120 simulator steps" in text
    assert "Pictures of 24 x 24 drawn by warp, crops of 20 x 20, batches of 8, SUNRISE with 2 members." in text


def test_the_authors_settings_of_pixels_are_refused_because_there_are_none() -> None:
    experiment, scale = choose("table2", "quick", None, ())
    with pytest.raises(SunriseError, match="the authors published no code for rad"):
        expand(experiment, scale, Path("nowhere"), "authors", {})
    sparse, scale = choose("fig3b", "paper", None, ())
    run = expand(sparse, scale, Path("nowhere"), "authors", {})[0]
    assert (run.settings["eval_freq"], run.settings["train_freq"]) == (1000, 1000)  # timesteps, as their code has them


def test_only_pictures_have_a_renderer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "fig3b", "--renderer", "warp", "--dry-run"])
    assert "fig3b is not from pixels: it takes no --renderer." in capsys.readouterr().err
    main(["reproduce", "table2", "--renderer", "warp", "--dry-run", "--total-env-steps", "800"])
    shown = capsys.readouterr().out
    assert " 100 (800 simulator steps) " in shown
