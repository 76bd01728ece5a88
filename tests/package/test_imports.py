"""Who may import whom: a package imports from those above it, and no import goes in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "sunrise"
VOCABULARY = "errors version types rings trees moments randomness signals compilation console"
ROWS = [
    VOCABULARY,
    *(
        "files",
        "config",
        "ensemble",
        "networks",
        "learners",
        "replay",
        "envs",
        "run",
        "store",
        "sinks",
        "offline",
        "compat",
        "agents",
    ),
    *("experiments", "report"),
    "commands cli registration zoo __main__ __init__",
]
"""From the top; decision 12 says why in this order."""
ROW = {name: number for number, row in enumerate(ROWS) for name in row.split()}
UPWARD = {
    (
        "config.algorithms",
        "run.fitting",
    ): "an algorithm of ours names what fits it to an environment, unseen until used",
    ("config.resolve", "envs.make"): "what an environment is decides some defaults, where one is there",
    ("config.resolve", "envs.renderers"): "`auto` becomes the renderer that works here",
}
"""The exceptions, each inside the one function that needs it."""


def imports(path: Path) -> set[tuple[str, bool]]:
    """The modules of ours that a file imports, and whether only when a function of it is called."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if is_module(name) else node.module or "" for name in inner]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        later = isinstance(node, ast.stmt) and node.col_offset > 0
        found |= {(name.removeprefix("sunrise."), later) for name in names if name.startswith("sunrise.")}
    return found


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def module(path: Path) -> str:
    """Its name below `sunrise`; a package is its `__init__`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


GRAPH = {module(path): imports(path) for path in ROOT.rglob("*.py")}


def test_a_package_imports_only_from_those_above_it() -> None:
    upward = {
        (module, other)
        for module, others in GRAPH.items()
        for other, _ in others
        if ROW[other.split(".")[0]] > ROW[module.split(".")[0]]
    }
    assert upward == UPWARD.keys()


def test_no_import_goes_in_a_circle() -> None:
    at_once = {module: {other for other, later in others if not later} for module, others in GRAPH.items()}
    TopologicalSorter(at_once).prepare()  # raises at a circle


def test_what_is_read_of_a_run_is_read_without_the_packages_that_compute() -> None:
    computing = {"jax", "equinox", "optax", "gymnasium", "mujoco", "tensorboard"}
    for package in ("files", "config", "report"):
        for path in (ROOT / package).rglob("*.py"):
            text = ast.parse(path.read_text())
            names = {(node.module or "").split(".")[0] for node in text.body if isinstance(node, ast.ImportFrom)} | {
                alias.name.split(".")[0] for node in text.body if isinstance(node, ast.Import) for alias in node.names
            }
            assert not names & computing, path
