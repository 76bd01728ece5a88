"""A page with known numbers, and what a browser draws of it."""

from pathlib import Path
from typing import Any

import numpy as np

from sunrise.report.page.report import page_of
from sunrise.report.report import Options, report_of

ROOT = Path(__file__).parents[2]
ARMS, ENVS, SEEDS, POINTS = ("SAC", "SUNRISE"), ("Hopper-v5", "dmc/finger-spin"), (1, 2, 3), 12


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


def drawn(page: Any, task: str, key: str) -> np.ndarray:
    """What a chart draws as one of its lines; NaN where there is nothing."""
    script = """([task, key]) => {
        const chart = sunriseReport.curves.panels.get(task).chart;
        const place = key === "axis" ? 0 : chart.lines.findIndex((line) => line.key === key) + 1;
        return Array.from(chart.plot.data[place]);
    }"""
    return np.array(page.evaluate(script, [task, key]), float)


def pixels(page: Any) -> str:
    """What the first chart looks like."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.evaluate("document.querySelector('#curves canvas').toDataURL()"))


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
