"""One browser for all tests of the page, and one page with known numbers."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browser import chromium, opened
from tests.report.folders import make_run
from tests.report.pages import ARMS, ENVS, ROOT, SEEDS, logged, returns, write_page


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two arms on two tasks with three seeds, as a file."""
    runs = tmp_path_factory.mktemp("report") / "runs"
    for env, (size, arm), seed in itertools.product(ENVS, zip((1, 5), ARMS, strict=True), SEEDS):
        folder = runs / f"{env.replace('/', '-')}__{arm}__{seed}"
        repeat = 2 if env.startswith("dmc/") else 1
        own: dict[str, Any] = {"env_id": env, "seed": seed, "ensemble_size": size, "repeat": repeat}
        make_run(folder, returns(env, arm, seed), metrics=logged(size, seed), **own)
    video = runs / "Hopper-v5__SAC__1" / "videos"
    video.mkdir()
    (video / "film.mp4").write_bytes((ROOT / "benchmarks" / "results" / "pixels" / "film.mp4").read_bytes())
    return write_page(runs, runs.parent / "out")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as found:
        yield found
