"""The page of results says what the committed rows say, by the rules that were written before the runs."""

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sunrise.report.results import Run, find_runs
from tests.report.folders import make_run

ROOT = Path(__file__).parents[2]


def script(name: str) -> Any:
    """One of benchmarks/, as a module."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def verdicts() -> Any:
    return script("verdicts")


def block(document: Path, name: str) -> str:
    """What a document has between the marks of that name."""
    (found,) = re.findall(f"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", document.read_text(), re.DOTALL)
    return str(found)


def made(root: Path, areas: Mapping[str, Sequence[float]], env: str = "Hopper-v5") -> tuple[Run, ...]:
    """Runs of some arms, each with the given areas: two evaluations, one unit below and one above it."""
    for arm, values in areas.items():
        for seed, area in enumerate(values, 1):
            make_run(root / f"{arm}{seed}", (area - 1, area + 1), config={"arm": arm}, seed=seed, env_id=env)
    return find_runs([root]).runs


def test_the_pages_are_what_the_committed_rows_give(verdicts: Any) -> None:
    found = verdicts.outcomes()
    for outcome in found:
        expected = "\n".join(verdicts.section(outcome)).strip("\n")
        assert block(ROOT / "docs/results/README.md", outcome.rung.name) == expected, (
            "run .venv/bin/python benchmarks/verdicts.py"
        )
    assert block(ROOT / "docs/results/README.md", "spent") == "\n".join(verdicts.total(found))
    assert block(ROOT / "README.md", "verdicts") == "\n".join(verdicts.summary(found))


def test_every_committed_run_is_one_that_the_protocol_planned(verdicts: Any) -> None:
    planned = {(run.rung, run.name) for run in verdicts.ladder()}
    for outcome in verdicts.outcomes():
        assert {(outcome.rung.name, run.name) for run in outcome.runs} <= planned
        assert all(run.finished for run in outcome.runs)


def test_every_question_is_about_arms_that_the_protocol_planned(verdicts: Any) -> None:
    for rung in verdicts.RUNGS:
        arms = {run.arm for run in verdicts.ladder() if run.rung in (rung.name, rung.borrows)}
        assert arms >= rung.arms


def test_arms_have_the_names_that_the_protocol_gave_them(verdicts: Any) -> None:
    planned = {(run.rung, run.name): run.arm for run in verdicts.ladder()}
    for outcome in verdicts.outcomes():
        assert all(run.arm == planned[outcome.rung.name, run.name] for run in outcome.runs)


def test_a_difference_is_of_mean_areas_and_its_interval_leaves_out_zero_where_arms_lie_apart(
    verdicts: Any, tmp_path: Path
) -> None:
    runs = made(tmp_path, {"SUNRISE": (10, 11, 12), "N=1": (1, 2, 6), "relative": (9, 11, 13)})
    rung = verdicts.Rung("4-table1", "", verdicts.TABLE1)
    (better,) = verdicts.answers(verdicts.TABLE1[0], runs)
    assert (better.runs, better.means) == ((3, 3), (11, 3))
    assert better.area[0] == 8
    assert better.last[0] == 8
    # The lowest draw of the one and the highest of the other, and the other way round.
    assert 10 - 6 <= better.area[1] < 8 < better.area[2] <= 12 - 1
    assert better.sign == 1
    (beside,) = verdicts.answers(verdicts.TABLE1[1], runs)
    assert beside.area[0] == 0
    assert beside.sign == 0
    assert verdicts.verdict(rung, [better]) == "confirmed"
    assert verdicts.verdict(rung, [beside]) == "undecided"


def test_conditions_are_told_apart_and_too_few_runs_are_not_compared(verdicts: Any, tmp_path: Path) -> None:
    areas = {"none": (5, 6, 7), "N=1": (1, 2, 3), "none__noise": (1, 2, 3), "N=1__noise": (5, 6, 7), "random": (1, 2)}
    rung = next(rung for rung in verdicts.RUNGS if rung.name == "2-small")
    runs = verdicts.Outcome(rung, made(tmp_path, areas), {"Hopper-v5": 14}).compared
    found = {answer.task: answer.sign for answer in verdicts.answers(verdicts.Question("", "none", "N=1"), runs)}
    assert found == {"Hopper-v5": 1, "Hopper-v5, noisy": -1}
    assert list(verdicts.answers(verdicts.Question("", "none", "random"), runs)) == []


def test_a_claim_has_a_verdict_once_its_rung_is_whole_or_its_task_where_each_is_judged_by_itself(
    verdicts: Any, tmp_path: Path
) -> None:
    rung = next(rung for rung in verdicts.RUNGS if rung.name == "5-table1")._replace(beside=())
    runs = [
        run
        for env, less in (("Ant-v5", 0), ("Hopper-v5", 9))
        for run in made(tmp_path / env, {"SUNRISE": (10, 11, 12), "N=1": (less, less, less)}, env)
    ]
    whole = verdicts.Outcome(rung, runs, {"Ant-v5": 6, "Hopper-v5": 6})
    part = verdicts.Outcome(rung, runs, {"Ant-v5": 6, "Hopper-v5": 7})
    assert [one.claim for one in whole.asked()] == [
        "SUNRISE learns better than one agent on Ant-v5",
        "SUNRISE learns better than one agent on Hopper-v5",
    ]
    assert {whole.said(one.answers) for one in whole.asked()} == {"confirmed"}
    assert [part.said(one.answers) for one in part.asked()] == ["confirmed", "open, as runs are missing"]
    assert verdicts.section(part)[0].startswith("12 of 13 runs are there")
    together = part._replace(rung=rung._replace(each_task=False))
    assert [together.said(one.answers) for one in together.asked()] == ["open, as runs are missing"]


def test_the_readme_quotes_every_tasks_interval_and_a_joint_claims_once(verdicts: Any, tmp_path: Path) -> None:
    areas = {"ucb1": (9, 9, 9), "ucb10": (4, 4, 4), "member": (5, 5, 5), "N=1": (5, 5, 5)}
    runs = [run for env in ("Ant-v5", "Hopper-v5") for run in made(tmp_path / env, areas, env)]
    rung = next(rung for rung in verdicts.RUNGS if rung.name == "3-sparse")
    assert verdicts.summary([verdicts.Outcome(rung, runs, {"Ant-v5": 12, "Hopper-v5": 12})])[2:] == [
        "| UCB with λ = 1 is better than one random member an episode | confirmed | Ant-v5 | 3, 3 | +4 [4, 4] |",
        "|  |  | Hopper-v5 | 3, 3 | +4 [4, 4] |",
        "| UCB with λ = 10 is better than one random member an episode | refuted | Ant-v5 | 3, 3 | -1 [-1, -1] |",
        "|  |  | Hopper-v5 | 3, 3 | -1 [-1, -1] |",
        "| UCB is better than one random member an episode, with either λ | undecided | as above | | |",
        "| five agents, one of them acting an episode, learn better than one (asked later) | undecided | Ant-v5 | 3, 3 "
        "| +0 [0, 0] |",
        "|  |  | Hopper-v5 | 3, 3 | +0 [0, 0] |",
    ]


@pytest.mark.parametrize(
    ("signs", "same", "needed", "expected"),
    [
        ((1, 1, 0, 0), False, 2, "confirmed"),
        ((1, 0, 0, 0), False, 2, "undecided"),
        ((1, 1, 1, -1), False, 2, "undecided"),
        ((-1, -1, 0, 0), False, 2, "refuted"),
        ((1,), False, 1, "confirmed"),
        ((0, 0), True, 1, "not refuted (no interval leaves out 0)"),
        ((0, 1), True, 1, "refuted"),
        ((0, -1), True, 1, "refuted"),
    ],
)
def test_the_rules_are_the_protocols(
    verdicts: Any, signs: tuple[int, ...], same: bool, needed: int, expected: str
) -> None:
    rung = verdicts.Rung("", "", (), same_is_right=same, needed=needed)
    ends = {1: (2.0, 1.0, 3.0), 0: (0.0, -1.0, 1.0), -1: (-2.0, -3.0, -1.0)}
    found = [verdicts.Answer("", (3, 3), (0.0, 0.0), ends[sign], ends[0]) for sign in signs]
    assert verdicts.verdict(rung, found) == expected


def test_the_time_to_a_return_counts_runs_that_never_get_there_whole(verdicts: Any, tmp_path: Path) -> None:
    make_run(tmp_path / "Hopper-v5__ucb1__1", (0, 100, 50))
    make_run(tmp_path / "Hopper-v5__ucb1__2", (0, 99, 50), seed=2)
    lines = verdicts.time_to(find_runs([tmp_path]).runs)
    assert "| ucb1 | 2 | 1 | 2,500 [2,000, 3,000] |" in lines


@pytest.mark.parametrize(("ten", "expected"), [((5, 5, 6), "confirmed"), ((0, 0, 1), "undecided")])
def test_ucb_under_a_sparse_reward_is_judged_by_both_lambdas_together(
    verdicts: Any, tmp_path: Path, ten: tuple[int, ...], expected: str
) -> None:
    runs = made(tmp_path, {"ucb1": (9, 9, 10), "ucb10": ten, "member": (4, 5, 6), "N=1": (4, 5, 6)})
    rung = next(rung for rung in verdicts.RUNGS if rung.name == "3-sparse")._replace(beside=())
    outcome = verdicts.Outcome(rung, runs, {"Hopper-v5": 12})
    joint = next(one for one in outcome.asked() if one.claim == rung.joint)
    assert [answer.sign for answer in joint.answers] == [1, 0 if expected == "confirmed" else -1]
    assert verdicts.verdict(rung, joint.answers) == expected
    assert sum(line.startswith("| Hopper-v5 | 3, 3 |") for line in verdicts.section(outcome)) == 3  # none twice


def test_a_rung_that_borrows_compares_with_the_arms_it_names_of_the_other_and_counts_its_own(
    verdicts: Any, tmp_path: Path
) -> None:
    rung = next(rung for rung in verdicts.RUNGS if rung.name == "4-checks")._replace(beside=())
    others = made(tmp_path / "others", {"N=1": (7, 8, 9), "SUNRISE": (0, 0, 0)})
    own = made(tmp_path / "own", {"authors": (1, 2, 3)})
    lent = verdicts.borrowed(rung, {"4-table1": others, "4-checks": own})
    assert [run.arm for run in lent] == ["N=1"] * 3
    outcome = verdicts.Outcome(rung, own, {"Hopper-v5": 10}, lent)
    (switches,) = outcome.asked()
    assert [(answer.runs, answer.area[0], answer.sign) for answer in switches.answers] == [((3, 3), 6, 1)]
    lines = verdicts.section(outcome)
    assert lines[0].startswith("3 of 10 runs are there, 6.0 hours")  # two hours each, the other rung's not among them
    assert {run.arm for run in outcome.compared} == {"N=1", "authors"}


def test_hours_of_a_run_that_was_stopped_count_what_came_before(verdicts: Any, tmp_path: Path) -> None:
    rows = [{"timesteps": t, "time/elapsed_s": s} for t, s in ((1000, 3600.0), (2000, 7200.0), (3000, 1800.0))]
    make_run(tmp_path / "stopped", metrics=rows)
    make_run(tmp_path / "whole", seed=2)  # an hour every 1,000 timesteps
    make_run(tmp_path / "unknown", seed=3, metrics=[])
    assert verdicts.hours(find_runs([tmp_path]).runs) == pytest.approx(2.5 + 3)


def test_what_each_way_of_acting_earns_is_the_mean_of_its_episodes(verdicts: Any, tmp_path: Path) -> None:
    for seed in (1, 2):
        make_run(tmp_path / f"{seed}", config={"arm": "SUNRISE"}, seed=seed)
    rows = ["way,episode,return", "mean,1,10", "mean,2,30", "member 1,1,7", "member 2,1,-5", "member 2,2,-7"]
    (tmp_path / "2" / "acting.csv").write_text("\n".join([*rows, "exploring,1,8", ""]))
    assert verdicts.acting_seen(find_runs([tmp_path / "1"]).runs) == []  # its checkpoint is gone
    assert verdicts.acting_seen(find_runs([tmp_path]).runs)[4:] == ["| Hopper-v5 | SUNRISE | 2 | 20 | -6, 7 | 8 |"]


def test_what_training_earned_stands_beside_what_was_evaluated(verdicts: Any, tmp_path: Path) -> None:
    for seed, extra in ((1, 0.0), (2, 10.0)):
        returns = [*(float(step) + extra for step in range(1, 20)), 120.0 + extra]
        rows: list[dict[str, Any]]
        rows = [{"timesteps": 1000 * (i + 1), "rollout/return_mean": 2 * value} for i, value in enumerate(returns)]
        rows[4]["rollout/return_mean"] = None  # no episode ended: 2 * (5 + extra) is left out
        make_run(tmp_path / f"{seed}", returns, config={"arm": "SUNRISE"}, metrics=rows, seed=seed)
    lines = verdicts.training_seen(find_runs([tmp_path]).runs)
    # By hand: 1 + ... + 19 + 120 = 310. Evaluations 310 / 20 + 5 = 20.5; training (620 - 10) / 19 and (1020 - 30) / 19.
    assert lines[-1] == "| Hopper-v5 | SUNRISE | 2 | 42.11 | 149 | 20.5 | 74.5 |"


def test_what_the_sentences_say_beside_the_tables_is_what_the_committed_rows_give(verdicts: Any) -> None:
    beside = script("beside")
    rows = "\n".join(beside.from_rows(verdicts.outcomes()))
    assert rows in (ROOT / "docs/results/beside.md").read_text(), "run .venv/bin/python benchmarks/beside.py"


def test_an_exact_permutation_test_counts_every_way_to_deal_the_scores() -> None:
    beside = script("beside")
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert beside.permutation(x, y) == pytest.approx(2 / 6)  # {1, 2} and {3, 4} of the six pairs are so far apart
    assert beside.permutation(x, np.array([1.0, 2.0])) == 1


def test_an_effect_that_is_seen_so_often_and_the_interval_of_student_agree_with_theory() -> None:
    beside, seen = script("beside"), script("seen")
    _, by_t = seen.draw((1.0, 1.0), (10, 10))
    expected = stats.norm.ppf(0.8) + stats.t.ppf(0.975, 18)  # in standard errors of the difference, nearly
    assert by_t.needed(0.8) == pytest.approx(expected * np.sqrt(2 / 10), rel=0.05)
    assert by_t.seen(by_t.needed(0.8)) == pytest.approx(0.8, abs=0.01)
    difference, low, high = beside.student(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 3.0]))
    margin = stats.t.ppf(0.975, 16 / 5) * np.sqrt(4 / 3)  # variances 1 and 3: Welch's degrees are 4^2 / (1 / 2 + 9 / 2)
    assert (difference, low, high) == pytest.approx((1, 1 - margin, 1 + margin))


@pytest.mark.parametrize("size", [5, 12])
def test_how_often_an_effect_is_seen_by_t_is_what_drawing_gives(size: int) -> None:
    seen = script("seen")
    _, by_t = seen.draw((1.0, 2.0), (size, size))
    assert seen.power(2.0, (1.0, 2.0), size) == pytest.approx(by_t.seen(2.0), abs=0.04)


def test_runs_on_record_are_made_once_more_only_when_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    evidence = script("evidence")
    handed: list[int] = []

    def execute(runs: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
        handed.append(len(runs))
        return []

    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "RUNS", tmp_path / "evidence")
    monkeypatch.setattr(evidence.os, "nice", lambda _: 0)
    monkeypatch.setattr(evidence, "execute", execute)
    for flags in ([], ["--again"]):
        monkeypatch.setattr(sys, "argv", ["evidence.py", "--rungs", "4-table1", *flags])
        evidence.main()
    assert handed == [0, 15]
