"""The page as text: style, scripts and report in one file, and a policy under which nothing else can run or load."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = ("elements", "numbers", "palette", "chart", "controls", "curves", "pictures", "ensemble", "runs", "page")
"""The page's own scripts, in the order in which they need one another."""


def page_html(content: Mapping[str, Any], live: bool = False) -> str:
    """The whole page; a live one may ask its server for more."""
    style, script = assets()
    parts = {
        "policy": policy(live),
        "title": html.escape(content["title"]),
        "sentence": html.escape(content["sentence"]),
        "style": style,
        "content": json_in_html(content),
        "script": script,
    }
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], _read("page.html"))


def policy(live: bool) -> str:
    """What the browser may do with the page: run its own script alone, and ask nobody but the server of a live one."""
    style, script = assets()
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",
        "media-src": "'self' data:" if live else "'self' file: data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def json_in_html(content: Any) -> str:
    """JSON that no text in it can end or escape from."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def assets() -> tuple[str, str]:
    """The style and the script."""
    own = "".join(_read("scripts", f"{name}.js") for name in SCRIPTS)
    licence = "/* uPlot:\n" + _read("vendor", "LICENSE") + "*/\n"
    script = f'{licence}{_read("vendor", "uPlot.iife.min.js")}\n(() => {{\n"use strict";\n{own}}})();\n'
    return _read("vendor", "uPlot.min.css") + "\n" + _read("page.css"), script


def _read(*parts: str) -> str:
    return files(__package__).joinpath(*parts).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
