"""Curves as pictures: PNG to look at, SVG to print."""

import math
import textwrap
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sunrise.files.folder import Folder
from sunrise.report.curves import Curve, evaluated_points
from sunrise.report.tables import CAUTION, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's, told apart by those who see few colours; their yellow is too light for a line."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")
ACROSS = 4
"""Panels side by side."""
MOST_MARKS = 12
LONGEST = 48
"""Letters of an arm's name in the legend."""
FEW = 5
"""Runs that can be told apart behind the mean."""
LETTERS = 17
"""Small letters in an inch."""
LEGEND_COLUMNS = 4
PANEL, LEGEND_ROW, LINE, MARGIN = 3.6, 0.22, 0.125, 0.6
"""Inches: the height of a panel, of a row of the legend, of a line of small letters, and what else there is."""


def draw_curves(curves: Sequence[Curve], title: str, cautions: Sequence[str] = (), band: str = "") -> "Figure":
    """A panel an environment, a line an arm: its mean, the band of its interval, and every single run faintly."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    envs = list(dict.fromkeys(curve.env for curve in curves))
    arms = list(dict.fromkeys(curve.arm for curve in curves))
    across = min(max(len(envs), 1), ACROSS)
    down = max(math.ceil(len(envs) / across), 1)
    width = max(4.6 * across, 7.0)
    told = [shown(f"{title} {band}"), *(CAUTION + shown(text) for text in cautions)]
    below = [line for text in told for line in textwrap.wrap(text, int(LETTERS * width))]
    beside = LEGEND_ROW * math.ceil(len(arms) / LEGEND_COLUMNS) + LINE * len(below)  # takes nothing from the panels
    figure = Figure(figsize=(width, PANEL * down + beside + MARGIN), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    simulated = any(run.action_repeat > 1 for curve in curves for run in curve.runs)
    for axis in axes.flat[len(envs) :]:
        axis.set_axis_off()
    for env, axis in zip(envs, axes.flat, strict=False):
        for curve in curves:
            if curve.env == env:
                _draw(axis, curve, arms.index(curve.arm), simulated)
        axis.set_title(shown(env), parse_math=False, fontsize=10)
        axis.set_xlabel("simulator steps" if simulated else "timesteps", fontsize=9)
        axis.set_ylabel("evaluation return", fontsize=9)
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.ticklabel_format(axis="x", style="plain", useOffset=False)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
    handles = [Line2D([], [], **_style(number), markersize=4, linewidth=1.8) for number in range(len(arms))]
    legend = figure.legend(
        handles,
        [" " + textwrap.shorten(shown(arm), LONGEST, placeholder=" …") for arm in arms],
        loc="outside upper center",
        ncols=min(len(arms), LEGEND_COLUMNS),
        fontsize=9,
    )
    text = figure.supxlabel("\n".join(below), fontsize=7, ha="left", x=0.01)
    for part in (*legend.get_texts(), text):
        part.set_parse_math(False)
    return figure


def _style(number: int) -> dict[str, Any]:
    """An arm's line: no two of the first dozens have colour, dashes and mark in common."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": STYLES[number % len(STYLES)],
        "marker": MARKS[number % len(MARKS)],
    }


def _draw(axis: Any, curve: Curve, number: int, simulated: bool) -> None:
    style = _style(number)
    faint = 0.25 if len(curve.runs) <= FEW else 0.12
    for run in curve.runs:
        steps, values = evaluated_points(run)
        axis.plot(steps * (run.action_repeat if simulated else 1), values, color=style["color"], alpha=faint, lw=0.7)
    x = curve.env_steps if simulated else curve.timesteps
    every = max(len(x) // MOST_MARKS, 1)
    axis.plot(x, curve.mean, **style, markersize=4, markevery=every, linewidth=1.8)
    if np.isfinite(curve.low).any():
        axis.fill_between(x, curve.low, curve.high, color=style["color"], alpha=0.18, linewidth=0)


def write_figure(figure: "Figure", folder: Folder, name: str) -> list[str]:
    """The picture as PNG and SVG, the same bytes for the same curves; the names of the files."""
    import matplotlib

    written = []
    for kind in ("png", "svg"):

        def save(file: BinaryIO, kind: str = kind) -> None:
            about: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
            with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": name}):
                warnings.simplefilter("ignore", UserWarning)  # a name may have letters that no font here has
                figure.savefig(file, format=kind, dpi=140, metadata=about)

        folder.write_by(f"{name}.{kind}", save)
        written.append(f"{name}.{kind}")
    return written
