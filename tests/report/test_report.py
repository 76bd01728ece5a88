"""What a report says: scores by a named protocol, cautions that cannot be missed, tables that no name can break."""

import csv
import html
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt
from PIL import Image

from sunrise.cli import main
from sunrise.errors import SunriseError
from sunrise.report.figures import draw_curves
from sunrise.report.protocols import AREA, BEST, LAST, at_env_steps, mean_of_last, protocol
from sunrise.report.published import published_for
from sunrise.report.report import TABLE_NAMES, Options, Report, as_document, make_report, report_of, write_report
from sunrise.report.results import read_run
from sunrise.report.scores import choose_scale, human
from sunrise.report.tables import Estimate, Table, as_csv, as_latex, as_markdown, as_text, cell_text, shown
from tests.report.folders import make_arms, make_run

ROOT = Path(__file__).parents[2]
QUICK = Options(reps=500)
HOSTILE = (
    '</script><script>alert("x")</script>',
    "two\nlines\r\nand\ttabs",
    "a|b|c",
    "=HYPERLINK(1)",
    r"\end{tabular}\input{/etc/passwd} % $x_1^2$ & #1 ~",
    "`code` *bold* _it_ [link](javascript:1) ![x](y) <b>",
    "quotes \" and ' and , and ;",
    "../../etc/passwd",
    "名前 🌅 \u202egnp.exe \u0000",
    "$\\frac{1$",
    "_hidden",
    "",
)


def kinds(report: Report) -> set[str]:
    return {caution.kind for caution in report.cautions}


def told(report: Report, kind: str) -> str:
    return " ".join(caution.text for caution in report.cautions if caution.kind == kind)


def table(report: Report, name: str) -> Table:
    return next(table for table in report.tables if table.name == name)


def column(report: Report, name: str, heading: str) -> list[Any]:
    found = table(report, name)
    return [row[found.header.index(heading)] for row in found.rows]


# -- protocols and scores ----------------------------------------------------------------------------------------------


def test_a_protocol_makes_one_score_of_a_runs_evaluations(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run", (1.0, 9.0, 4.0, 2.0), repeat=4))
    assert [way.score(run) for way in (LAST, mean_of_last(3), BEST, AREA)] == [2.0, 5.0, 9.0, 4.0]
    assert at_env_steps(10_000).score(run) == 9.0  # of 4,000, 8,000, 12,000 and 16,000
    assert math.isnan(at_env_steps(20_000).score(run))  # it did not go so far
    assert math.isnan(mean_of_last(5).score(run))
    hole = run._replace(evaluations={**run.evaluations, "mean_return": np.array([1.0, 9.0, 4.0, np.nan])})
    assert LAST.score(hole) == 4.0  # an evaluation that ended no episode is none
    for wrong in ("first", "Last"):
        with pytest.raises(SunriseError, match="no protocol"):
            protocol(wrong, 3)


def test_protocols_have_columns_of_their_own_with_their_names(tmp_path: Path) -> None:
    report = report_of([make_arms(tmp_path, seeds=2)], Options(reps=100, last_k=2))
    assert [cell.value for cell in column(report, "scores", "last evaluation")] == [13.5, 53.5]
    assert [cell.value for cell in column(report, "scores", "mean of the last 2 evaluations")] == [15.0, 55.0]
    assert [cell.value for cell in column(report, "scores", "best evaluation (chosen afterwards)")] == [16.5, 56.5]
    for name in ("aggregates", "comparisons", "tolerance"):
        assert "last evaluation" in table(report, name).note
    best = report_of([tmp_path], Options(reps=100, protocol="best"))
    assert "best" in kinds(best)
    assert [cell.value for cell in column(best, "aggregates", "mean")] == [16.5, 56.5]
    assert "best evaluation" in best.sentence


def test_scales_put_several_tasks_on_one(tmp_path: Path) -> None:
    pong, boxing = "ALE/Pong-v5", "ALE/Boxing-v5"
    assert human(pong) == (-20.7, 14.6)
    games = choose_scale("auto", {(pong, "a"): [14.6, -20.7], (boxing, "a"): [0.0]})
    np.testing.assert_allclose(games.of([14.6, -20.7], pong), [1.0, 0.0])
    suite = choose_scale("auto", {("dmc/a", "x"): [500.0], ("dmc/b", "x"): [1.0]})
    assert suite.of([500.0], "dmc/a") == [0.5]
    own = choose_scale("auto", {("A", "x"): [2.0, 4.0], ("A", "y"): [6.0], ("B", "x"): [7.0]})
    np.testing.assert_allclose(own.of([2.0, 4.0, 6.0], "A"), [0.0, 0.5, 1.0])
    assert own.of([7.0], "B") == [0.0]  # all alike
    assert choose_scale("auto", {("A", "x"): [2.0]}).of([2.0], "A") == [2.0]
    with pytest.raises(SunriseError, match="no human score for A"):
        choose_scale("human", {("A", "x"): [2.0]})


def test_the_papers_numbers_stand_beside_runs_of_its_methods_alone(tmp_path: Path) -> None:
    def paper(**changes: Any) -> list[float]:
        made = make_run(tmp_path / str(len(list(tmp_path.iterdir()))), env_id="sunrise/Hopper-v0", **changes)
        return [entry.mean for entry in published_for(read_run(made))]

    assert paper() == [2643.2]
    assert paper(ensemble_size=1, weighting="none") == [1781.3]
    assert paper(algo="td3", ensemble_size=1, weighting="none") != []
    assert paper(weighting="none") == paper(exploration="member") == paper(reward_noise=1.0) == []
    assert paper(train_freq=1, gradient_steps=5) == []
    atari = make_run(tmp_path / "atari", algo="rainbow", env_id="ALE/Freeway-v5", augmentation="none", repeat=4)
    assert [entry.mean for entry in published_for(read_run(atari))] == [30.2]
    pixels = make_run(tmp_path / "dmc", algo="rad", env_id="dmc/cartpole-swingup", augmentation="crop", pixels=True)
    assert [(entry.env_steps, entry.mean) for entry in published_for(read_run(pixels))] == [
        (100_000, 591),
        (500_000, 876),
    ]
    report = report_of([atari], QUICK)
    assert column(report, "scores", "paper: 100k timesteps, 3 runs")[0].value == 30.2
    assert column(report, "scores", "human-normalised last evaluation")[0].value == pytest.approx(3 / 29.6)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_comparison_says_better_only_where_the_interval_of_the_difference_leaves_out_nought(tmp_path: Path) -> None:
    report = report_of([make_arms(tmp_path / "clear")], QUICK)
    (difference,) = column(report, "comparisons", "difference of means")
    assert difference.value == 40.0
    assert 37 < difference.low < 40 < difference.high < 43
    assert column(report, "comparisons", "against") == ["ensemble_size=1"]
    assert column(report, "comparisons", "chance that a run is better")[0].value == 1.0
    assert column(report, "comparisons", "by the interval of the difference") == ["better"]
    other = report_of([tmp_path / "clear"], Options(reps=500, baseline="ensemble_size=5"))
    assert column(other, "comparisons", "by the interval of the difference") == ["worse"]
    few = report_of([make_arms(tmp_path / "few", seeds=4)], QUICK)
    assert column(few, "comparisons", "by the interval of the difference") == ["undecided: fewer than 5 runs"]
    with pytest.raises(SunriseError, match="no arm 'x' among ensemble_size=1, ensemble_size=5"):
        report_of([tmp_path / "clear"], Options(baseline="x"))


def test_one_seed_has_a_number_and_no_interval(tmp_path: Path) -> None:
    report = report_of([make_arms(tmp_path, seeds=1)], QUICK)
    assert cell_text(column(report, "scores", "last evaluation")[0]) == "13.0 (one run)"
    assert cell_text(column(report, "aggregates", "interquartile mean")[0]).startswith("13.0")
    assert "[" not in cell_text(column(report, "aggregates", "interquartile mean")[0])
    assert "Fewer than 5 seeds (1)" in told(report, "few seeds")
    assert column(report, "tolerance", "share of all runs that lie there") == ["0 %", "0 %"]


def test_over_all_tasks_are_those_that_every_arm_has(tmp_path: Path) -> None:
    make_arms(tmp_path, seeds=3, envs=("A-v0", "B-v0"))
    make_run(tmp_path / "extra", env_id="C-v0", ensemble_size=1, weighting="none")
    make_run(tmp_path / "fourth", (11.0, 12.0, 13.0), env_id="A-v0", ensemble_size=1, weighting="none", seed=4)
    report = report_of([tmp_path], QUICK)
    assert column(report, "aggregates", "tasks") == [2, 2]
    assert column(report, "aggregates", "runs") == [7, 6]
    assert "no run of ensemble_size=5 on C-v0" in told(report, "unequal")
    assert "Unequal numbers of runs on A-v0: ensemble_size=1 4, ensemble_size=5 3" in told(report, "unequal")
    low, high = 13.0, 55.0  # of A-v0: seeds of one agent end at 10 + seed + 2, but the fourth at 13
    shares = (np.array([13.0, 14.0, 15.0, 13.0]) - low) / (high - low)
    both = (shares.mean() + (np.array([13.0, 14.0, 15.0]) - low).mean() / (high - low)) / 2
    assert column(report, "aggregates", "mean")[0].value == pytest.approx(both)
    assert [row[0] for row in table(report, "comparisons").rows] == ["A-v0", "B-v0", "all tasks"]
    assert len(report.profiles) == 2
    assert report.profiles[0].share[0] == 1.0
    assert report.profiles[1].share[-1] == 0.0


def test_settings_that_differ_are_shown_side_by_side(tmp_path: Path) -> None:
    make_run(tmp_path / "a", gamma=0.9, net_arch=[8, 8])
    make_run(tmp_path / "b", gamma=0.99, net_arch=[16], seed=2)
    report = report_of([tmp_path], QUICK)
    assert table(report, "settings").header == ("setting", "gamma=0.9", "gamma=0.99")
    assert table(report, "settings").rows == (("gamma", "0.9", "0.99"), ("net_arch", "[8, 8]", "[16]"))
    assert "gamma (0.9 / 0.99), net_arch ([8, 8] / [16])" in told(report, "settings")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_a_table(name: str) -> None:
    made = Table(
        "t", f"title {name}", ("arm", name, "score"), ((name, 3, Estimate(1.5, 1.0, 2.0, 5)), ("x", None, 2.5))
    )
    text = as_text(made, [name]).rstrip("\n").split("\n")
    assert len(text) == 3 + 4
    assert all(line.isprintable() for line in text)
    rows = list(csv.reader(io.StringIO(as_csv(made, [name]))))
    assert [len(row) for row in rows] == [8, 8, 8]
    assert rows[1][0].removeprefix("'") == shown(name)
    assert rows[1][0][:1] not in ("=", "+", "-", "@")
    assert rows[1][2:7] == ["1.5", "", "1.0", "2.0", "5"]
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(as_markdown(made, [name]))
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", page)]
    assert cells == [
        "arm",
        shown(name).strip(),
        "score",
        shown(name).strip(),
        "3",
        "1.50 [1.00, 2.00]",
        "x",
        "-",
        "2.50",
    ]
    assert set(re.findall(r"<(\w+)", page)) <= {
        "h1",
        "blockquote",
        "p",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    tex = as_latex(made, [name])
    assert tex.count(r"\end{tabular}") == 1
    plain = re.sub(r"\\([{}$&#%_])|\\text\w+\{\}", "", tex)
    assert plain.count("{") == plain.count("}")
    assert [row.count("&") for row in plain.split("\n") if row.endswith(r"\\")] == [2, 2, 2]
    assert "%" not in plain
    assert all(ord(c) < 0x180 for c in tex)


def test_numbers_have_as_many_digits_as_are_of_use() -> None:
    shown_as = {
        1234.6: "1235",
        -99.96: "-100.0",
        9.994: "9.99",
        0.12345: "0.123",
        -0.0001: "0.000",
        math.nan: "-",
        2.5e12: "2.5e+12",
    }
    assert {value: cell_text(value) for value in shown_as} == shown_as
    assert cell_text(200_000) == "200,000"
    assert cell_text(Estimate(2643.2, math.nan, math.nan, 10, 472.3)) == "2643 ± 472"


# -- cautions ----------------------------------------------------------------------------------------------------------


def test_a_clean_comparison_has_no_caution(tmp_path: Path) -> None:
    assert report_of([make_arms(tmp_path)], QUICK).cautions == ()


@pytest.mark.parametrize(
    ("kind", "words", "changes"),
    [
        ("few episodes", "5 at the least", {"episodes": 5}),
        (
            "settings",
            "5 differs from ensemble_size=1 in more than one setting: ensemble_size (1 / 5), gamma (0.9 / 0.99)",
            {"gamma": 0.9},
        ),
        (
            "machines",
            "Different versions: sunrise-rl (9 / 0.2.0), jax (none / 0.10.2)",
            {"config": {"versions": {"sunrise-rl": "9"}}},
        ),
        ("machines", "Different machines: cpu (another / a processor)", {"config": {"machine": {"cpu": "another"}}}),
        ("tuned", "chosen on seeds that are reported here (1, 2, 3, 4, 5)", {"config": {"tuned_on": [1, 2, 3, 4, 5]}}),
        ("unfinished", "5 runs are failed, not finished", {"status": "failed", "error": "a fault"}),
        ("unfinished", "(a fault)", {"status": "failed", "error": "a fault"}),
        ("left out", "5 of 10 runs", {"status": "stopped"}),
        ("unequal", "no run of ensemble_size=1 on Hopper-v5", {"status": "stopped"}),
    ],
)
def test_what_must_be_known_is_said(tmp_path: Path, kind: str, words: str, changes: dict[str, Any]) -> None:
    for seed in range(1, 6):
        make_run(tmp_path / f"one-{seed}", seed=seed, ensemble_size=1, weighting="none", **changes)
        make_run(tmp_path / f"two-{seed}", seed=seed, gamma=0.99)
    report = report_of([tmp_path], QUICK)
    assert words in told(report, kind)


def test_renderers_lengths_and_doubled_seeds_are_said(tmp_path: Path) -> None:
    for seed in range(1, 6):
        renderer = "egl" if seed == 1 else "warp"
        make_run(tmp_path / str(seed), config={"arm": "x"}, seed=seed, pixels=True, renderer=renderer)
    make_run(tmp_path / "long", (1.0, 2.0, 3.0, 4.0), config={"arm": "x"}, seed=6, pixels=True, renderer="warp")
    report = report_of([tmp_path], QUICK)
    assert "Different renderers: renderer (egl / warp)" in told(report, "machines")
    assert "end at different timesteps (3,000, 4,000)" in told(report, "unfinished")
    assert "runs of x on Hopper-v5 differ in more than their seed: renderer (egl / warp)" in told(report, "settings")
    runs = [run._replace(seed=1) for run in report.runs]
    assert "same seed twice" in told(make_report(runs, QUICK), "unequal")


def test_unfinished_runs_count_only_when_asked_and_are_in_the_curves(tmp_path: Path) -> None:
    for seed in range(1, 6):
        make_run(tmp_path / f"{seed}", seed=seed)
    make_run(tmp_path / "6", (100.0,), seed=6, status="stopped", total_timesteps=3000)
    report = report_of([tmp_path], QUICK)
    assert column(report, "scores", "runs") == [5]
    assert len(report.curves[0].runs) == 6
    assert report.curves[0].averaged == 5
    asked = report_of([tmp_path], Options(reps=100, unfinished=True))
    assert column(asked, "scores", "runs") == [6]
    assert "not finished: 6 at 1,000 of 3,000" in told(asked, "unfinished")


def test_runs_that_were_never_evaluated_are_reported_without_scores(tmp_path: Path) -> None:
    make_run(tmp_path / "runs/a", ())
    make_run(tmp_path / "runs/b", (), ensemble_size=1, weighting="none", env_id="Other-v0")
    report = report_of([tmp_path / "runs"], QUICK)
    write_report(report, tmp_path / "out")
    assert {cell_text(cell) for cell in column(report, "scores", "last evaluation")} == {"-"}
    assert "too few evaluations" in told(report, "no score")
    assert [table.name for table in report.tables] == ["scores", "runs"]


@pytest.mark.parametrize("name", ["hopper", "freeway", "pixels", "pixels128", "fig3b"])
def test_the_reports_we_show_are_made_from_the_evaluations_beside_them(name: str) -> None:
    folder = ROOT / "benchmarks/results" / name
    made = as_document(report_of([folder / "results.csv"]), [])
    lines = {line for line in made.split("\n") if line.startswith("|")}
    assert lines <= set((folder / "report.md").read_text().split("\n"))
    if name == "fig3b":
        scores = {line for line in lines if "results.csv" not in line and "command" not in line}
        assert scores <= set((ROOT / "docs/report.md").read_text().split("\n"))


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_the_command_writes_every_file_and_the_cautions_are_at_the_top_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = make_arms(tmp_path / "runs", seeds=3, envs=("Hopper-v5", "ALE/Pong-v5")), tmp_path / "out"
    broken = make_run(runs / "broken")
    (broken / "eval.csv").write_text("nonsense\n")
    main(["report", str(runs), "--out", str(out), "--reps", "200"])
    screen = capsys.readouterr()
    names = {f"{name}.{kind}" for name in TABLE_NAMES for kind in ("csv", "md", "tex")}
    written = {path.name for path in out.iterdir()}
    assert written >= names | {"results.csv", "report.md", "curves.png", "curves.svg"}
    for text in (screen.err, screen.out, *((out / name).read_text() for name in (*names, "report.md"))):
        assert "Fewer than 5 seeds" in text
        assert "cannot be read and is left out" in text
    assert screen.err.startswith("CAUTION: ")
    picture = np.asarray(Image.open(out / "curves.png").convert("RGB"), float)
    assert picture.std() > 10
    assert (out / "curves.svg").read_text().count("<svg") == 1
    before = {path.name: path.read_bytes() for path in out.glob("*.csv")}
    main(["report", str(runs), "--out", str(out), "--reps", "200", "--no-figures"])
    assert {path.name: path.read_bytes() for path in out.glob("*.csv")} == before
    assert not (out / "curves.png").exists()  # what is of another report does not stay


def test_hostile_names_of_runs_and_settings_are_written_as_text(tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE):
        folder = tmp_path / "runs" / (name.replace("/", "").replace("\0", "").strip(".") or "x")
        settings: dict[str, Any] = {name or "x": name}
        made = make_run(folder, seed=number, env_id=HOSTILE[9 * (number % 2)], config={"arm": name}, **settings)
        assert made.exists()
    report = report_of([tmp_path / "runs"], QUICK)
    write_report(report, tmp_path / "out")
    assert len(report.runs) == len(HOSTILE)
    assert {path.parent for path in (tmp_path / "out").rglob("*")} == {tmp_path / "out"}
    with (tmp_path / "out/scores.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nothing at"),
        ([], "name the folders"),
        (["runs", "--confidence", "95"], "confidence is 95.0, but must be between 0 and 1"),
        (["runs", "--reps", "0"], "reps is 0"),
        (["runs", "--protocol", "mean-last", "--last-k", "0"], "give 1 or more"),
        (["runs", "--normalise", "human"], "no human score"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs/a")
    with pytest.raises(SystemExit) as ended:
        main(["report", *words, "--out", "out"])
    assert ended.value.code == 2
    shown_error = capsys.readouterr().err
    assert message in shown_error
    assert "Traceback" not in shown_error


def test_a_small_report_takes_less_than_a_second_and_imports_nothing_that_computes(tmp_path: Path) -> None:
    make_arms(tmp_path / "runs", seeds=3)
    for words in (["--help"], [str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--no-figures"]):
        code = (
            "import json, sys, time\nfrom sunrise.cli import main\n"
            f"try:\n    main({['report', *words]!r})\nexcept SystemExit:\n    pass\n"
            "heavy = [m for m in ('jax', 'tensorboard', 'gymnasium', 'matplotlib', 'scipy') if m in sys.modules]\n"
            "print(json.dumps([heavy, time.process_time()]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        heavy, seconds = json.loads(done.stdout.splitlines()[-1])
        assert heavy == []
        assert seconds < 1.0


def test_a_long_text_and_many_arms_take_nothing_from_the_panels(tmp_path: Path) -> None:
    runs = report_of([make_arms(tmp_path, seeds=1)], QUICK).curves
    many = [curve._replace(arm=f"arm {number}") for number in range(20) for curve in runs[:1]]

    def panel(figure: Any) -> float:
        figure.canvas.draw()
        return float(figure.axes[0].get_window_extent().height / figure.dpi)

    few = panel(draw_curves(runs, "A title."))
    assert panel(draw_curves(many, "A title.", ["a caution of many words " * 30] * 5)) > 0.95 * few > 2.5
