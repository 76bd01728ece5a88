"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
AXE = (Path(__file__).parents[1] / "vendor" / "axe.min.js").read_text()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; where there is none, the tests that ask for it are skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium is installed: on Debian, apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, address: str, width: int = 1280, height: int = 800, **options: Any) -> Iterator[Any]:
    """A page that must not complain: whatever its console says is an error of the test."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(address)
    page.wait_for_function(
        "window.sunriseReport && !document.querySelector('section#curves:not([hidden]) .canvas:empty')"
    )
    yield page
    context.close()
    assert complaints == []


def until(page: Any, condition: str) -> None:
    """Wait for something; Playwright's own way would need the page's policy to allow eval."""
    for _ in range(500):
        if page.evaluate(f"Boolean({condition})"):
            return
        page.wait_for_timeout(20)
    raise AssertionError(condition)


def violations(page: Any) -> list[str]:
    """What the axe rules find."""
    page.evaluate(AXE)  # the page's own policy would not let a script element in
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]
