"""The picture of the report's page in the README, from the committed evaluations of our runs.

`.venv/bin/python benchmarks/screenshot.py` writes docs/images/report.png. It needs Chromium.
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from sunrise.report.report import report_of, write_report

ROOT = Path(__file__).parents[1]
RUNS = [ROOT / "benchmarks" / "results" / name / "results.csv" for name in ("hopper", "fig3b")]
WIDTH, HEIGHT = 1280, 1130


def main() -> None:
    found = shutil.which("chromium")
    assert found, "this needs Chromium: on Debian, apt-get install chromium"
    picture = ROOT / "docs" / "pictures" / "report.png"
    picture.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as out, sync_playwright() as driver:
        write_report(report_of(RUNS, title="SUNRISE on two tasks"), Path(out), figures=False)
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((Path(out) / "index.html").as_uri())
        page.wait_for_selector("#curves canvas")
        page.locator("#curves .canvas").first.hover(position={"x": 330, "y": 120})
        page.wait_for_timeout(300)
        page.screenshot(path=picture)
        browser.close()
    print(f"{picture}: {picture.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
