"""The report's page with 200 runs of 500 evaluations: how large it is, how soon it opens, how long a click takes.

`.venv/bin/python benchmarks/page.py` writes benchmarks/results/page.json. It needs Chromium.
"""

import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from sunrise.files.documents import sealed
from sunrise.report.page.report import page_of
from sunrise.report.report import report_of
from sunrise.store.logs import EVAL_FIELDS
from sunrise.store.machine import machine

TASKS, ARMS, SEEDS, POINTS, MEMBERS = 10, 4, 5, 500, 5
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
CLICKS = {
    "a method": "document.querySelectorAll('.arms .toggle')[turn % 4].click()",
    "a seed": "document.querySelectorAll('.seeds .toggle')[turn % 5].click()",
    "smoothing": """const slider = document.querySelector(".smoothing input");
        slider.value = turn + 1;
        slider.dispatchEvent(new Event("input"))""",
    "the axis": "document.querySelectorAll('.choice input')[turn % 3].click()",
    "zoom": "document.querySelectorAll('.zoom button')[turn % 2].click()",
    "the theme": "document.querySelector('#theme').click()",
}
TIMED = """async () => {
    const times = [];
    for (let turn = 0; turn < 10; turn++) {
        await new Promise((rest) => setTimeout(rest, 600));  // what is out of sight is drawn meanwhile
        const start = performance.now();
        ACT;
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        times.push(performance.now() - start);
    }
    return times;
}"""


def write_run(folder: Path, task: int, arm: int, seed: int, rng: np.random.Generator) -> None:
    """A run that was never run: a curve that rises, and what an ensemble logs."""
    folder.mkdir(parents=True)
    steps = 400 * np.arange(1, POINTS + 1)
    rise = 3000 * (1 - np.exp(-steps / (40_000 + 10_000 * task))) * (1 + 0.2 * arm)
    values = rise + np.cumsum(rng.normal(0, 20, POINTS)) + rng.normal(0, 60, POINTS)
    settings = {
        "env_id": f"sunrise/Task{task}-v0",
        "seed": seed,
        "total_timesteps": 400 * POINTS,
        "ensemble_size": arm + 1,
    }
    about = {
        "algo": "sac",
        "policy": "MlpPolicy",
        "settings": settings,
        "action_repeat": 2,
        "versions": {},
        "machine": {},
    }
    (folder / "config.json").write_bytes(sealed(about | {"command": ["sunrise", "train", "sac"]}))
    lines = [f"{step},{value!r},0,0,0,10" for step, value in zip(steps, map(float, values), strict=True)]
    (folder / "eval.csv").write_text("\n".join([",".join(EVAL_FIELDS), *lines, ""]))
    rows = []
    for step, shares in zip(steps, rng.dirichlet(np.full(MEMBERS, 20.0), POINTS), strict=True):
        row = {"timesteps": int(step), "time/elapsed_s": 0.05 * float(step) * (1 + 0.1 * seed)}
        row |= {f"chosen/{member}": float(share) for member, share in enumerate(shares)}
        parts = [
            f"train/{name}_{part}" for name in ("disagreement", "weight") for part in ("p05", "p50", "mean", "p95")
        ]
        rows.append(json.dumps(row | dict(zip(parts, map(float, rng.random(8)), strict=True))))
    (folder / "metrics.jsonl").write_text("\n".join([*rows, ""]))
    (folder / "status.json").write_bytes(
        sealed({"status": "finished", "timesteps": 400 * POINTS, "env_steps": 800 * POINTS})
    )


def in_a_browser(address: str) -> dict[str, Any]:
    """When the page is there, and what each kind of click takes until the next frame is drawn."""
    found = shutil.which("chromium")
    assert found, "this needs Chromium: on Debian, apt-get install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        opening = []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_timeout(500)
            opening.append(page.evaluate("performance.getEntriesByType('paint').at(-1).startTime"))
        clicks = {name: page.evaluate(TIMED.replace("ACT", act)) for name, act in CLICKS.items()}
        browser.close()
    return {
        "open_ms": {"best": min(opening), "median": statistics.median(opening)},
        "click_ms": {name: {"median": statistics.median(t), "worst": max(t)} for name, t in clicks.items()},
    }


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        runs, out = Path(place) / "runs", Path(place) / "out"
        out.mkdir()
        for task in range(TASKS):
            for arm in range(ARMS):
                for seed in range(SEEDS):
                    write_run(runs / f"sunrise-Task{task}-v0__method_{arm}__{seed}", task, arm, seed, rng)
        start = time.perf_counter()
        report = report_of([runs])
        read = time.perf_counter() - start
        page = page_of(report, out)
        made = time.perf_counter() - start - read
        (out / "index.html").write_text(page)
        result = {"runs": len(report.runs), "points": POINTS, "page_mb": len(page.encode()) / 1e6}
        result |= {"read_and_compare_s": read, "page_s": made, **in_a_browser((out / "index.html").as_uri())}
    text = json.dumps(result | {"load": os.getloadavg()[0], "machine": machine()}, indent=2)
    (Path(__file__).parent / "results" / "page.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
