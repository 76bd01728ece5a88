"""What one does with the page: by mouse and by keyboard, at every width, in both themes, with hostile names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.browser import opened, until, violations
from tests.report.folders import make_run
from tests.report.pages import ENVS, POINTS, SEEDS, logged, pixels, press, returns, write_page

HOSTILE = "</script><script>pwned=1</script> \"'&<b onclick=pwned=1>\u2028\n\u202eé雪{content}"


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
    values = """(table) => [...table.querySelectorAll("tbody tr")].map((row) =>
        Number(row.children[4].textContent.split(" ±")[0].replace("−", "-")))"""
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


def test_commands_settings_versions_and_videos_are_shown(page: Any) -> None:
    differs = page.inner_text("#settings table").replace("\t", " ")
    assert "ensemble_size 1 5" in differs
    page.click("#settings summary >> text=Versions and machine of every run")
    page.wait_for_selector("#settings td >> text=0.10.2")
    page.click("#runs summary >> text=Hopper-v5__SAC__1")
    page.wait_for_selector("#runs .folds code >> text=sunrise train sac")
    until(page, "document.querySelector('video').readyState > 0")  # the policy lets it play
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
