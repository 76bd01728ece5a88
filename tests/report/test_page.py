"""The page in a real browser: what it draws, what it does, and what it does not do."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sunrise.report.page.packing import packed, roughly, thinned
from sunrise.report.page.report import page_of
from sunrise.report.report import Options, report_of
from tests.report.browser import chromium, opened, violations
from tests.report.folders import make_run

ROOT = Path(__file__).parents[2]
ARMS, ENVS, SEEDS, POINTS = ("SAC", "SUNRISE"), ("Hopper-v5", "dmc/finger-spin"), (1, 2, 3), 12
HOSTILE = "</script><script>pwned=1</script> \"'&<b onclick=pwned=1>\u2028\n\u202eé雪{content}"


def returns(env: str, arm: str, seed: int) -> list[float]:
    generator = np.random.default_rng([ENVS.index(env), ARMS.index(arm), seed])
    return [float(x) for x in generator.normal(100 * ARMS.index(arm), 20, POINTS)]


def logged(members: int, seed: int) -> list[dict[str, Any]]:
    """What an ensemble logs."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(1, POINTS + 1):
        shares = generator.dirichlet(np.full(members, 9.0))
        row = {f"chosen/{i}": float(share) for i, share in enumerate(shares)}
        for name in ("disagreement", "weight"):
            row |= {
                f"train/{name}_{part}": float(0.1 * i + number) for i, part in enumerate(("p05", "p50", "mean", "p95"))
            }
        rows.append({"timesteps": 1000 * number, "time/elapsed_s": 36.0 * number * seed, **row})
    return rows


def write_page(runs: Path, out: Path) -> str:
    out.mkdir(exist_ok=True)
    (out / "index.html").write_text(page_of(report_of([runs], Options(reps=200)), out))
    return (out / "index.html").as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two arms on two tasks with three seeds, as a file."""
    runs = tmp_path_factory.mktemp("report") / "runs"
    for env, (size, arm), seed in itertools.product(ENVS, zip((1, 5), ARMS, strict=True), SEEDS):
        folder = runs / f"{env.replace('/', '-')}__{arm}__{seed}"
        repeat = 2 if env.startswith("dmc/") else 1
        make_run(
            *(folder, returns(env, arm, seed)), env_id=env, seed=seed, ensemble_size=size, metrics=logged(size, seed), repeat=repeat
        )  # fmt: skip
    video = runs / "Hopper-v5__SAC__1" / "videos"
    video.mkdir()
    (video / "film.mp4").write_bytes((ROOT / "benchmarks" / "results" / "pixels" / "film.mp4").read_bytes())
    return write_page(runs, runs.parent / "out")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as found:
        yield found


def drawn(page: Any, task: str, key: str) -> list[float | None]:
    """What a chart draws as one of its lines."""
    script = """([task, key]) => {
        const chart = sunriseReport.curves.panels.get(task).chart;
        const place = key === "axis" ? 0 : chart.lines.findIndex((line) => line.key === key) + 1;
        return Array.from(chart.plot.data[place]);
    }"""
    return list(page.evaluate(script, [task, key]))


def pixels(page: Any) -> str:
    """What the first chart looks like."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.evaluate("document.querySelector('#curves canvas').toDataURL()"))


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


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
        found = page.evaluate("(id) => Object.fromEntries(Object.entries(sunriseReport.report.runs[id].eval).map(([k, v]) => [k, Array.from(v)]))", run)  # fmt: skip
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
    assert set(drawn(page, ENVS[0], "SUNRISE")) == {None}
    assert None not in drawn(page, ENVS[0], "SAC")
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
    axis, mean = np.array(drawn(page, ENVS[0], "axis"), float), drawn(page, ENVS[0], "SAC")
    runs = [(0.01 * seed * np.arange(1, POINTS + 1), returns(ENVS[0], "SAC", seed)) for seed in SEEDS]
    for x, found in zip(axis, mean, strict=True):
        inside = all(steps[0] - 1e-9 <= x <= steps[-1] + 1e-9 for steps, _ in runs)
        expected = np.mean([np.interp(x, steps, values) for steps, values in runs]) if inside else None
        assert (found is None and expected is None) or found == pytest.approx(expected, rel=1e-4)


def test_the_mouse_and_the_keyboard_zoom_and_point_in_every_chart_at_once(page: Any) -> None:
    scales = (
        "[...sunriseReport.curves.panels.values()].map(({chart}) => [chart.plot.scales.x.min, chart.plot.scales.x.max])"
    )
    first, second = page.locator("#curves .canvas").all()
    box = first.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
    page.mouse.up()
    ranges = page.evaluate(scales)
    assert ranges[0] == ranges[1]
    np.testing.assert_allclose(ranges[0], [3000, 6000], atol=60)
    page.mouse.dblclick(box["x"] + 60, box["y"] + 60)
    assert page.evaluate(scales) == [[0, 12000], [0, 12000]]
    second.focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowRight")
    told = page.locator("#curves .readout").all_inner_texts()
    for env, text in zip(ENVS, told, strict=True):  # the other chart's cursor too
        own = np.mean([returns(env, "SUNRISE", seed)[2] for seed in SEEDS])
        assert "3,000 timesteps" in text
        assert f"SUNRISE {round(own, 0 if own >= 100 else 2):g} [" in text.replace("\n", " ")
    press(page, "+")
    assert page.evaluate(scales)[0][1] < 12000
    before = page.evaluate(scales)[0]
    press(page, "Shift+ArrowRight")
    assert page.evaluate(scales)[0][0] > before[0]
    press(page, "0")
    assert page.evaluate(scales) == [[0, 12000], [0, 12000]]
    page.click("[aria-label='Zoom in']")
    assert page.evaluate(scales)[0] == [3000, 9000]


def test_tables_sort_by_size_and_by_name_with_mouse_and_keyboard(page: Any) -> None:
    table = page.locator("#scores .scroll").first
    values = "(table) => [...table.querySelectorAll('tbody tr')].map((row) => Number(row.children[4].textContent.split(' ±')[0].replace('−', '-')))"
    before = table.evaluate(values)
    head = table.locator("th", has_text="last evaluation").first
    head.locator("button").click()
    assert table.evaluate(values) == sorted(before, reverse=True) != before
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").focus()
    press(page, "Enter")
    assert table.evaluate(values) == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    runs = page.locator("#runs .scroll").first
    runs.locator("button.sort", has_text="run").first.click()
    names = runs.locator("tbody tr th").all_inner_texts()
    assert names == sorted(names, key=str.lower)


def test_a_table_lies_behind_every_chart(page: Any) -> None:
    figures = page.locator("main figure:not(:has(video))")
    assert figures.count() == page.locator("main figure details.behind").count() >= 7
    for summary in page.locator("details.behind summary").all():
        summary.focus()
        press(page, "Enter")
    assert page.locator("details.behind[open] tbody tr").count() > 4 * POINTS
    first = page.locator("#curves details.behind").first
    own = np.mean([returns(ENVS[0], "SAC", seed)[0] for seed in SEEDS])
    assert (
        first.locator("tbody tr").first.locator("td").first.inner_text().replace("−", "-").startswith(f"{own:.1f}"[:3])
    )


def test_the_ensemble_shows_disagreement_weights_and_who_acted(page: Any) -> None:
    text = page.inner_text("#ensemble")
    assert all(words in text for words in ("Disagreement of the critics", "Weight of a transition", "Whose action"))
    picture = page.locator("#ensemble svg[role=img]")
    shares = np.mean([[row[f"chosen/{i}"] for i in range(5)] for row in logged(5, 1)], axis=0)
    for member, share in enumerate(shares):
        assert f"Member {member}: {100 * share:.0f} %" in picture.get_attribute("aria-label")
    page.select_option("#ensemble-run", label="Hopper-v5 · SAC · seed 2")
    assert picture.get_attribute("aria-label").endswith("Member 0: 100 %.")


def test_commands_settings_versions_and_videos_are_shown(page: Any) -> None:
    differs = page.inner_text("#settings table").replace("\t", " ")
    assert "ensemble_size 1 5" in differs
    page.click("#settings summary >> text=Versions and machine of every run")
    assert "0.10.2" in page.inner_text("#settings")
    page.click("#runs summary >> text=Hopper-v5__SAC__1")
    assert "sunrise train sac" in page.inner_text("#runs .folds")
    page.wait_for_function("document.querySelector('video').readyState > 0")  # the policy lets it play
    assert page.evaluate("document.querySelector('video').duration") > 0


@pytest.mark.parametrize(
    ("width", "scheme", "open"), [(1280, "light", False), (1280, "dark", False), (390, "light", True)]
)
def test_a_page_passes_the_accessibility_rules_and_fits(
    browser: Any, address: str, width: int, scheme: str, open: bool
) -> None:
    with opened(browser, address, width, color_scheme=scheme) as page:
        if open:
            page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        page.click(".seeds .toggle >> text=2")
        page.wait_for_timeout(100)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_dark_and_light_follow_the_system_and_a_button_and_paper_is_white(browser: Any, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, address, color_scheme="dark") as page:
        dark, look = page.evaluate(ground), pixels(page)
        page.focus("#theme")
        press(page, "Enter")
        light = page.evaluate(ground)
        assert [sum(map(int, colour[4:-1].split(","))) > 380 for colour in (dark, light)] == [False, True]
        assert pixels(page) != look
        page.reload()
        assert page.evaluate(ground) == light  # it is remembered
        press(page, "Tab")
        page.click("#theme")
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert not page.is_visible("nav")
        assert len(page.pdf()) > 10_000


def test_hostile_names_are_text(browser: Any, tmp_path: Path) -> None:
    folder = HOSTILE.replace("/", "-").replace("\n", " ")
    for seed in (1, 2):
        make_run(
            *(tmp_path / "runs" / f"{folder}{seed}", [1.0, 2.0]), seed=seed, env_id=HOSTILE, note=HOSTILE,
            config={"arm": HOSTILE, "command": ["sunrise", "train", HOSTILE], "versions": {HOSTILE: HOSTILE}},
            status="failed", error=HOSTILE, metrics=logged(2, 1),
        )  # fmt: skip
    with opened(browser, write_page(tmp_path / "runs", tmp_path / "out")) as page:
        page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        page.wait_for_timeout(100)
        assert page.evaluate("typeof pwned") == "undefined"
        assert page.locator("main b[onclick], main script").count() == 0
        assert page.locator("#curves h3").inner_text().startswith("</script><script>pwned=1</script>")
        assert page.evaluate("sunriseReport.report.tasks[0]") == HOSTILE
        assert page.evaluate("document.documentElement.scrollWidth") == 1280
        for run in page.evaluate("Object.keys(sunriseReport.report.runs)"):
            assert run.startswith(folder)
