"""What the page draws, in a real browser, beside NumPy."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sunrise.report.page import content_of, page_html
from sunrise.report.page.packing import packed, roughly, thinned
from sunrise.report.results import read_run
from tests.report.browser import opened
from tests.report.folders import make_run
from tests.report.pages import ARMS, ENVS, POINTS, ROOT, SEEDS, drawn, logged, pixels, returns


@pytest.mark.parametrize("folder", ["src/sunrise/report/page/vendor", "tests/vendor"])
def test_files_of_others_are_what_their_authors_published(folder: str) -> None:
    about = json.loads((ROOT / folder / "vendored.json").read_text())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (ROOT / folder).iterdir()}
    del found["vendored.json"]
    assert found == about["sha256"]
    assert about["licence"] in ("MIT", "MPL-2.0")


def test_a_page_opens_from_a_file_with_no_network_and_says_first_what_it_is(browser: Any, address: str) -> None:
    asked: list[str] = []
    with opened(browser, address, offline=True) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.wait_for_selector(".warnings")
        words = page.inner_text("main > header")
        assert "SAC, SUNRISE compared on Hopper-v5, dmc/finger-spin: 3 seeds each" in words
        assert "by the last evaluation" in words
        assert "Fewer than 5 seeds" in words
        box = page.locator(".warnings li").first.bounding_box()
        assert box["y"] + box["height"] < 800  # the warnings are on the first screen
    assert [url for url in asked if not url.startswith("data:")] == [address]


def test_a_page_holds_the_numbers_of_its_runs(page: Any) -> None:
    for env, arm, seed in itertools.product(ENVS, ARMS, SEEDS):
        run = f"{env.replace('/', '-')}__{arm}__{seed}"
        script = (
            "(id) => Object.entries(sunriseReport.report.runs[id].eval).map(([name, all]) => [name, Array.from(all)])"
        )
        found = dict(page.evaluate(script, run))
        np.testing.assert_allclose(found["mean_return"], returns(env, arm, seed), rtol=1e-6)
        np.testing.assert_array_equal(found["timesteps"], 1000 * np.arange(1, POINTS + 1))
        np.testing.assert_allclose(found["hours"], 0.01 * seed * np.arange(1, POINTS + 1), rtol=1e-6)


def test_packed_numbers_come_back_whatever_they_are(page: Any) -> None:
    rough = np.append(np.random.default_rng(0).normal(0, 5, 300), np.nan)
    cases = {
        "none": np.zeros(0),
        "one": np.array([3.0]),
        "large steps": np.array([1e9 + 1, 1e9 + 2, 5e9]),
        "progression": 0.1 * np.arange(1, 50),
        "gaps": np.array([0.1, np.nan, -7e20]),
        "beyond floats": np.array([1e300, 1.0]),
    }
    # A run of its own is given to the page as a server would, and its numbers are read back.
    script = """(packed) => {
        const page = sunriseReport;
        const run = Object.values(page.report.runs)[0];
        page.take({ runs: [{ ...run, id: "extra", task: "nowhere", eval: packed, videos: [], ensemble: null }] });
        const plain = (values) => Array.from(values, (x) => (Number.isNaN(x) ? null : x));
        const found = Object.entries(page.report.runs.extra.eval).map(([name, values]) => [name, plain(values)]);
        page.take({ gone: ["extra"] });
        return Object.fromEntries(found);
    }"""
    texts = {name: packed(values) for name, values in cases.items()}
    empty = {"timesteps": packed(np.zeros(0)), "mean_return": packed(np.zeros(0))}
    found = page.evaluate(script, {**empty, **texts, "rough": roughly(rough)})
    for name, values in cases.items():
        np.testing.assert_allclose(np.array(found[name], float), values, rtol=1e-7, err_msg=name)
    np.testing.assert_array_equal(found["large steps"], cases["large steps"])
    np.testing.assert_allclose(np.array(found["rough"], float), rough, atol=np.ptp(rough[:-1]) / 65534)
    assert len(roughly(rough)) < len(packed(rough)) * 0.6


def test_two_hundred_runs_of_five_hundred_points_are_less_than_ten_megabytes(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    names = [f"train/{name}_{part}" for name in ("disagreement", "weight") for part in ("mean", "p05", "p50", "p95")]
    names += [f"chosen/{member}" for member in range(5)]
    one = read_run(make_run(tmp_path / "run"))
    runs = []
    for number in range(200):
        steps = 400.0 * np.arange(1, 501)
        evaluations = {"timesteps": steps, "mean_return": generator.normal(size=500), "hours": generator.random(500)}
        metrics = {"timesteps": steps, **{name: generator.random(500) for name in names}}
        runs.append(one._replace(name=f"run {number}", arm="arm", evaluations=evaluations, metrics=metrics))
    words = {"title": "", "sentence": "", "warnings": [], "made": ""}
    scores: dict[str, Any] = {"tables": [], "intervals": [], "profiles": []}
    assert len(page_html(content_of(runs, ["arm"], words, scores))) < 10e6


def test_many_rows_are_thinned_to_means_of_neighbours() -> None:
    rows = {"a": np.arange(10.0), "b": np.array([np.nan] * 4 + [1.0] * 6)}
    found = thinned(rows, 5)
    np.testing.assert_array_equal(found["a"], [0.5, 2.5, 4.5, 6.5, 8.5])
    np.testing.assert_array_equal(found["b"], [np.nan, np.nan, 1, 1, 1])
    assert thinned(rows, 10) is rows


def test_curves_are_means_over_seeds_with_the_interval_of_every_resample(page: Any) -> None:
    own = np.array([returns(ENVS[0], "SUNRISE", seed) for seed in SEEDS])
    np.testing.assert_allclose(drawn(page, ENVS[0], "SUNRISE"), own.mean(0), rtol=1e-5)
    every = np.sort([own[list(picks)].mean(0) for picks in itertools.product(range(3), repeat=3)], axis=0)
    np.testing.assert_allclose(drawn(page, ENVS[0], "SUNRISE low"), every[0], rtol=1e-5)  # 2.5 % of 27 is the first
    np.testing.assert_allclose(drawn(page, ENVS[0], "SUNRISE high"), every[-1], rtol=1e-5)


def test_toggles_and_smoothing_change_what_is_drawn(page: Any) -> None:
    looks = [pixels(page)]
    page.click(".arms .toggle >> text=SUNRISE")
    assert np.isnan(drawn(page, ENVS[0], "SUNRISE")).all()
    assert np.isfinite(drawn(page, ENVS[0], "SAC")).all()
    looks.append(pixels(page))
    page.click(".arms .toggle >> text=SUNRISE")
    page.click(".seeds .toggle >> text=2")
    own = np.array([returns(ENVS[0], "SAC", seed) for seed in (1, 3)])
    np.testing.assert_allclose(drawn(page, ENVS[0], "SAC"), own.mean(0), rtol=1e-5)
    looks.append(pixels(page))
    page.locator("input[type=range]").press("ArrowRight")
    middle = np.stack([own.mean(0)[:-2], own.mean(0)[1:-1], own.mean(0)[2:]]).mean(0)
    np.testing.assert_allclose(drawn(page, ENVS[0], "SAC")[1:-1], middle, rtol=1e-5)
    assert "3 evaluations" in page.inner_text(".smoothing")
    looks.append(pixels(page))
    page.uncheck(".check >> text=single seeds")
    looks.append(pixels(page))
    page.uncheck(".check >> text=interval")
    looks.append(pixels(page))
    assert len(set(looks)) == len(looks)


def test_the_axis_is_timesteps_simulator_steps_or_hours(page: Any) -> None:
    np.testing.assert_array_equal(drawn(page, ENVS[1], "axis"), 1000 * np.arange(1, POINTS + 1))
    page.check("input[value=env_steps]")
    np.testing.assert_array_equal(drawn(page, ENVS[1], "axis"), 2000 * np.arange(1, POINTS + 1))
    page.check("input[value=hours]")
    axis, mean = drawn(page, ENVS[0], "axis"), drawn(page, ENVS[0], "SAC")
    runs = [(0.01 * seed * np.arange(1, POINTS + 1), returns(ENVS[0], "SAC", seed)) for seed in SEEDS]
    for x, found in zip(axis, mean, strict=True):
        inside = all(steps[0] - 1e-9 <= x <= steps[-1] + 1e-9 for steps, _ in runs)
        expected = np.mean([np.interp(x, steps, values) for steps, values in runs]) if inside else np.nan
        assert found == pytest.approx(expected, rel=1e-4, nan_ok=True)


def test_the_ensemble_shows_disagreement_weights_and_who_acted(page: Any) -> None:
    text = page.inner_text("#ensemble")
    assert all(words in text for words in ("Disagreement of the critics", "Weight of a transition", "Whose action"))
    picture = page.locator("#ensemble svg[role=img]")
    shares = np.mean([[row[f"chosen/{i}"] for i in range(5)] for row in logged(5, 1)], axis=0)
    for member, share in enumerate(shares):
        assert f"Member {member}: {100 * share:.0f} %" in picture.get_attribute("aria-label")
    page.select_option("#ensemble-run", label="Hopper-v5 · SAC · seed 2")
    assert picture.get_attribute("aria-label").endswith("Member 0: 100 %.")
