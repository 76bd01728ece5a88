"""A table as data, and its text, CSV, Markdown and LaTeX. A name in it may be anything: each form shows it as text."""

import csv
import io
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

CAUTION = "CAUTION: "
NOTHING = "-"
LONG = 1e9
"""Numbers from here on are written with an exponent."""


class Estimate(NamedTuple):
    """A number of several runs, and how sure it is."""

    value: float
    low: float
    high: float
    runs: int
    """How many runs it is of."""
    spread: float = math.nan
    """The standard deviation over runs, where that is a thing to say."""


Cell = str | int | float | Estimate | None


class Table(NamedTuple):
    """Rows under headings, with what they are of."""

    name: str
    """The name of its files."""
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """What the numbers mean."""


def shown(text: str) -> str:
    """A text in one line in which nothing hides: what cannot be printed is written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(value: float, digits: int | None = None) -> str:
    """A number with as many digits after the point as are of use, or as others beside it have."""
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= LONG:
        return f"{value:.3g}"
    text = f"{value:.{digits_of(value) if digits is None else digits}f}"
    return text[1:] if text.startswith("-") and not float(text) else text


def digits_of(value: float) -> int:
    """Digits after the point that are of use."""
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3


def cell_text(cell: Cell) -> str:
    """A cell for a person."""
    if isinstance(cell, Estimate):
        return estimate_text(cell)
    if isinstance(cell, str):
        return shown(cell)
    return NOTHING if cell is None else f"{cell:,}" if isinstance(cell, int) else number(cell)


def estimate_text(found: Estimate) -> str:
    """`mean ± deviation [low, high]`; of one run the number alone."""
    if not math.isfinite(found.value):
        return NOTHING
    numbers = [found.value, found.spread, found.low, found.high]
    digits = digits_of(max(abs(value) for value in numbers if math.isfinite(value)))
    text, spread, low, high = (number(value, digits) for value in numbers)
    if math.isfinite(found.spread):
        text += f" ± {spread}"
    if math.isfinite(found.low) and math.isfinite(found.high):
        return f"{text} [{low}, {high}]"
    return f"{text} (one run)" if found.runs == 1 else text


def as_text(table: Table, cautions: Sequence[str] = ()) -> str:
    """Columns side by side, for a screen."""
    rows = [[*map(shown, table.header)], *([cell_text(cell) for cell in row] for row in table.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    numeric = [all(not isinstance(row[i], str) for row in table.rows) for i in range(len(table.header))]
    lines = [
        "  ".join(_pad(text, width, right) for text, width, right in zip(row, widths, numeric, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    top = [shown(table.title), *(CAUTION + shown(caution) for caution in cautions), ""]
    return "\n".join([*top, *lines, *([shown(table.note)] if table.note else [])]) + "\n"


def as_csv(table: Table, cautions: Sequence[str] = ()) -> str:
    """Plain numbers, an estimate as several columns, and the cautions in a column of their own: a reader sees both."""
    estimates = [any(isinstance(row[i], Estimate) for row in table.rows) for i in range(len(table.header))]
    parts = ("", ": deviation", ": low", ": high", ": runs")
    names = [
        name + part
        for name, several in zip(table.header, estimates, strict=True)
        for part in (parts if several else ("",))
    ]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*map(spreadsheet, names), "cautions"])
    for row in table.rows:
        cells: list[str | int | float] = []
        for cell, several in zip(row, estimates, strict=True):
            if several:
                own = cell if isinstance(cell, Estimate) else Estimate(math.nan, math.nan, math.nan, 0)
                cells += [*map(_plain, (own.value, own.spread, own.low, own.high)), own.runs]
            else:
                cells.append(cell if isinstance(cell, int) else _plain(cell) if not isinstance(cell, str) else cell)
        writer.writerow([*(spreadsheet(c) if isinstance(c, str) else c for c in cells), " ".join(cautions)])
    return text.getvalue()


def as_markdown(table: Table, cautions: Sequence[str] = ()) -> str:
    """A heading, the cautions and a table."""
    rows = [list(table.header), *table.rows]
    lines = ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(table.header))
    warned = [f"> **{CAUTION.strip()}** {markdown(caution)}\n>" for caution in cautions]
    warned = [*warned[:-1], warned[-1].removesuffix("\n>"), ""] if warned else []
    note = ["", markdown(table.note)] if table.note else []
    return "\n".join([f"# {markdown(table.title)}", "", *warned, *lines, *note]) + "\n"


def _markdown_cell(cell: Cell) -> str:
    return markdown(cell) if isinstance(cell, str) else cell_text(cell)  # numbers in brackets are no link


def as_latex(table: Table, cautions: Sequence[str] = ()) -> str:
    """A table environment that needs no package."""
    kinds = ["l" if any(isinstance(row[i], str) for row in table.rows) else "r" for i in range(len(table.header))]
    rows = [" & ".join(latex(cell_text(cell)) for cell in row) + r" \\" for row in table.rows]
    warned = [rf"\par\textbf{{{CAUTION.strip()}}} {latex(caution)}" for caution in cautions]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex(' '.join(filter(None, (table.title, table.note))))}}}",
            *warned,
            r"\par",
            rf"\begin{{tabular}}{{{''.join(kinds)}}}",
            r"\hline",
            " & ".join(latex(shown(name)) for name in table.header) + r" \\",
            r"\hline",
            *rows,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


FORMS: dict[str, Callable[[Table, Sequence[str]], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
"""How a table is written, by the ending of its file."""


def markdown(text: str) -> str:
    """A text that Markdown and the HTML in it show as it is."""
    text = shown(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*{}\[\]|~$#!])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # inside a word it is no emphasis


LATEX = {c: "\\" + c for c in "{}$&#%_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": "'",
    "[": "{[}",  # after a line's end it would be a length
    "±": r"$\pm$",
    "\N{GREEK SMALL LETTER BETA}": r"$\beta$",
    "\N{GREEK SMALL LETTER LAMDA}": r"$\lambda$",
}


def latex(text: str) -> str:
    """A text that LaTeX shows as it is; a character that it may have no letter for is named."""
    return "".join(LATEX.get(c, c if ord(c) < 0x180 else f"{{[}}U+{ord(c):04X}]") for c in shown(text))


def spreadsheet(text: str) -> str:
    """A text in one line that no spreadsheet takes for a formula."""
    text = shown(text)
    return "'" + text if text[:1] in ("=", "+", "-", "@") and text != NOTHING else text


def _plain(value: float | Estimate | None) -> str | float:
    return value if isinstance(value, float | int) and math.isfinite(value) else ""


def _width(text: str) -> int:
    """Columns that a text takes on a screen."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def _pad(text: str, width: int, right: bool) -> str:
    room = " " * (width - _width(text))
    return room + text if right else text + room
