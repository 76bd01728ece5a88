"""The paper's experiments: the plans are the paper's, and each of them really runs."""

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sunrise.cli import main
from sunrise.commands.report import finish
from sunrise.config.algorithms import algorithm
from sunrise.config.resolve import without_auto
from sunrise.config.settings import flatten_config
from sunrise.envs.make import as_vector
from sunrise.errors import SunriseError
from sunrise.experiments.executor import execute
from sunrise.experiments.outcome import outcome_of
from sunrise.experiments.paper import (
    EXPERIMENTS,
    GYM,
    HOPPER,
    SEARCH,
    SIZES,
    SUNRISE,
    Experiment,
    Scale,
    published,
)
from sunrise.experiments.runs import Run, choose, configured, expand
from sunrise.experiments.toy import fit_cubic
from sunrise.experiments.trial import agent_of
from sunrise.report.results import find_runs
from sunrise.run.collect import Collector
from sunrise.store.machine import labelled
from tests.support.toys import Counter

GYM_EXPERIMENTS = ("table1", "fig2", "fig3a", "fig3c", "fig3d", "fig4", "fig5")


def plan(name: str, scale: str = "paper") -> list[Any]:
    experiment, chosen = choose(name, scale, None, ())
    return expand(experiment, chosen, Path("nowhere"), "ours", {})


def settings_of(name: str) -> dict[str, dict[str, Any]]:
    """Each arm's resolved settings at the paper's scale."""
    return {run.arm.name: {"algo": run.arm.algo, **flatten_config(configured(run))} for run in plan(name)}


@pytest.mark.parametrize(
    ("name", "runs", "timesteps"),
    [
        ("table1", 5 * 3 * 10, 200_000),
        ("fig2", 5 * 4 * 4, 200_000),
        ("fig3a", 5 * 10, 200_000),
        ("fig3c", 4 * 4, 1_000_000),
        ("fig3d", 5 * 4, 200_000),
        ("fig4", 5 * 4 * 4, 1_000_000),
        ("fig5", 5 * 5 * 4, 200_000),
        ("table3", 26 * 3 * 3, 100_000),
        ("fig7", 26 * 2 * 3, 100_000),
    ],
)
def test_the_plan_at_the_papers_scale_has_the_papers_size(name: str, runs: int, timesteps: int) -> None:
    assert len(plan(name)) == runs
    assert {run.settings["total_timesteps"] for run in plan(name)} == {timesteps}
    assert len({run.folder for run in plan(name)}) == runs


def test_the_arms_are_the_papers() -> None:
    noisy = settings_of("fig2")
    assert {s["reward_noise"] for s in noisy.values()} == {1.0}
    assert {n: (s["algo"], s["ensemble_size"], s["weighting"]) for n, s in noisy.items()} == {
        "SAC": ("sac", 1, "none"),
        "DisCor": ("discor", 1, "none"),
        "SUNRISE": ("sac", 5, "confidence"),
        "SUNRISE without weighted backups": ("sac", 5, "none"),
    }
    large = settings_of("fig3a")
    assert {s["reward_noise"] for s in large.values()} == {5.0}
    assert {s["env_id"] for s in large.values()} == {"sunrise/SlimHumanoid-v0"}
    assert large["SUNRISE with random weights"]["weighting"] == "random"
    assert large["SUNRISE without UCB"]["exploration"] == "member"
    updates = settings_of("fig3c")
    assert {n: (s["net_arch"], s["gradient_steps"], s["ensemble_size"]) for n, s in updates.items()} == {
        "SAC": ((256, 256), 1, 1),
        "SUNRISE": ((256, 256), 1, 5),
        "SAC, 256 units, 5 updates": ((256, 256), 5, 1),
        "SAC, 1024 units, 5 updates": ((1024, 1024), 5, 1),
    }
    assert [s["ensemble_size"] for s in settings_of("fig5").values()] == [1, 2, 3, 5, 7]
    assert settings_of("table1")["TD3"]["net_arch"] == (400, 300)


def test_the_search_sets_hold_our_defaults() -> None:
    defaults = flatten_config(without_auto(algorithm("sac").defaults))
    for name, values in SEARCH["gym"].items():
        assert defaults[name] in values


def test_the_papers_numbers_are_at_hand() -> None:
    assert len(published("table1_gym_200k.csv")) == 33
    assert len(published("table2_dmc.csv")) == 80
    assert len(published("table3_atari_100k.csv")) == 26 * 7


@pytest.mark.parametrize("name", [*GYM_EXPERIMENTS, "table3", "fig7", "fig1b"])
def test_a_dry_run_shows_the_list_and_an_estimate_and_runs_nothing(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["reproduce", name, "--dry-run"])
    shown = capsys.readouterr().out
    assert name in shown
    assert name == "fig1b" or re.search(r"\d+ runs, \d+ of them to do: about [\d.]+ (minutes|hours)", shown)
    assert list(tmp_path.iterdir()) == []


TINY = {"learning_starts": 20, "batch_size": 8, "net_arch": (8, 8), "buffer_size": 1000}


def reported(experiment: Experiment, scale: Scale, runs: Sequence[Run], out: Path) -> str:
    """The report of an experiment's runs, as `sunrise reproduce` ends with it."""
    found = outcome_of(experiment, scale, runs, "quick", "ours")
    finish(found.folders, out, found.title, found.about, found.cautions, found.arms, figures=False)
    return (out / "report.md").read_text()


@pytest.mark.parametrize("name", GYM_EXPERIMENTS)
def test_every_experiment_really_runs_and_is_reported(name: str, tmp_path: Path) -> None:
    """Every arm, for forty steps, on Hopper: what differs between experiments is not the environment."""
    experiment = EXPERIMENTS[name]
    scale = Scale((HOPPER,), timesteps=40, seeds=1, eval_freq=40, eval_episodes=1)
    runs = expand(experiment, scale, tmp_path, "ours", TINY)
    assert execute(runs) == []
    assert all(run.done for run in runs)
    text = reported(experiment, scale, runs, tmp_path / "report")
    found = find_runs([tmp_path / "report/results.csv"]).runs
    assert {run.arm.replace(",", "") for run in found} == {arm.name.replace(",", "") for arm in experiment.arms}
    assert all(run.evaluations["timesteps"] == [40] for run in found)
    assert "1 seed each, 40 timesteps, by the last evaluation" in text
    assert "Ours: 1 seed, 1 evaluation episodes of the noiseless ensemble, our default settings." in text
    assert "not the result" in text
    assert ("2643 ± 472" in text) == any(arm in experiment.arms for arm in (SUNRISE, SIZES[3]))


def test_atari_runs_and_its_report_has_human_normalised_scores(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["table3"]
    scale = Scale(("ALE/Freeway-v5",), timesteps=40, seeds=1, eval_freq=40, eval_episodes=1)
    tiny = {"learning_starts": 30, "batch_size": 4, "n_step": 3, "net_arch": (8,), "buffer_size": 500}
    runs = expand(experiment, scale, tmp_path, "ours", tiny)
    execute(runs)
    text = reported(experiment, scale, runs, tmp_path / "report")
    found = find_runs([run.folder for run in runs]).runs
    assert len(found) == len(experiment.arms)
    assert {(*run.evaluations["timesteps"], *run.evaluations["env_steps"]) for run in found} == {
        (40, 160)
    }  # four frames
    assert "human-normalised" in text
    assert "| 30.2 |" in text
    assert "40 timesteps, 160 simulator steps" in text


def test_finished_runs_are_kept_and_stopped_ones_go_on(tmp_path: Path) -> None:
    experiment = dataclasses.replace(EXPERIMENTS["fig3d"], arms=EXPERIMENTS["fig3d"].arms[:2])
    scale = Scale((HOPPER,), timesteps=40, seeds=1, eval_freq=0, eval_episodes=1)
    runs = expand(experiment, scale, tmp_path, "ours", TINY)

    def stop(now: dict[str, Any], _: Any) -> None:
        if now["self"].num_timesteps == 25:
            raise KeyboardInterrupt

    execute(runs[:1])
    with pytest.raises(KeyboardInterrupt), labelled(arm=runs[1].arm.name):
        agent_of(runs[1]).learn(40, callback=stop, progress_bar=False)
    before = [(run.folder / "config.json").stat().st_mtime_ns for run in runs]
    assert runs[1].begun
    execute(runs)
    assert [(run.folder / "config.json").stat().st_mtime_ns for run in runs] == before
    assert [json.loads((run.folder / "status.json").read_text())["timesteps"] for run in runs] == [40, 40]
    assert all(run.done for run in runs)
    other = expand(experiment, scale, tmp_path, "ours", {**TINY, "batch_size": 9})
    with pytest.raises(SunriseError, match=r"finished run with batch_size = 8, not 9: choose another --out"):
        execute(other)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    experiment = dataclasses.replace(EXPERIMENTS["fig3d"], arms=EXPERIMENTS["fig3d"].arms[:2])
    scale = Scale((HOPPER,), timesteps=40, seeds=1, eval_freq=40, eval_episodes=1)
    bad, good = expand(experiment, scale, tmp_path, "ours", TINY)
    bad = bad._replace(settings={**bad.settings, "learning_rate": 1e30})
    (failure,) = execute([bad, good])
    assert failure.run == bad
    assert "is not finite" in failure.why
    assert "Traceback" in (bad.folder / "failure.txt").read_text()
    assert [run.status for run in find_runs([bad.folder, good.folder]).runs] == ["failed", "finished"]


def test_the_authors_settings_keep_five_updates_a_step() -> None:
    experiment, scale = choose("fig3c", "paper", 1, ())
    runs = expand(experiment, scale, Path("nowhere"), "authors", {})
    rounds = {run.arm.name: (s.train_freq, s.gradient_steps) for run in runs for s in [configured(run).training]}
    assert rounds["SUNRISE"] == (1000, 1000)
    assert rounds["SAC, 256 units, 5 updates"] == (1000, 5000)
    assert configured(runs[0]).run.eval_steps == 1000


def test_wrong_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(SunriseError, match="no experiment 'table9'"):
        choose("table9", "quick", None, ())
    with pytest.raises(SunriseError, match="Did you mean sunrise/Hopper-v0"):
        choose("table1", "quick", None, ("sunrise/Hoper-v0",))
    assert choose("table1", "quick", 2, (GYM[3],))[1].envs == (GYM[3],)


def test_reward_noise_is_in_what_is_learned_and_not_in_what_is_reported() -> None:
    env = as_vector(Counter(5))
    source = Collector(env, 5, 1, np.random.default_rng(0), 0.9, "bootstrap", reward_noise=2.0)
    noise, totals = [], []
    for t in range(2000):
        got = source.step(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), t)
        noise.append(float(got.batch.reward[0]) - float(got.batch.next_obs[0, 0]))  # the true reward is the step
        totals += [episode.total for episode in got.episodes]
    assert np.mean(noise) == pytest.approx(0, abs=0.2)
    assert np.std(noise) == pytest.approx(2.0, rel=0.1)
    assert set(totals) == {15.0}
    again = Collector(as_vector(Counter(5)), 5, 1, np.random.default_rng(0), 0.9, "bootstrap", reward_noise=2.0)
    first = again.step(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), 0)
    assert float(first.batch.reward[0]) - 1 == pytest.approx(noise[0], abs=1e-6)


def test_the_toy_ensemble_is_unsure_where_there_are_no_points() -> None:
    fit = fit_cubic(seed=1)
    inside = (fit.grid >= -3) & (fit.grid <= 3)
    assert np.abs(fit.mean - fit.grid**3)[inside].mean() < 6  # it has learned the curve
    assert fit.spread_outside > 2 * fit.spread_inside
    assert len(fit.x) == 20
    assert np.abs(fit.x).max() <= 4
