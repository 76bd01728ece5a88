"""Shapes are checked at run time, and compiled programs are kept between test sessions."""

import os
import signal
from pathlib import Path

from jaxtyping import install_import_hook

# A shell's background jobs ignore Ctrl-C, those of nohup a closed terminal, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "jax"))

CHECKED = ["ensemble", "networks", "learners", "replay", "run.collect", "run.evaluate", "types"]
install_import_hook([f"sunrise.{module}" for module in CHECKED], "beartype.beartype")

import pytest  # noqa: E402

from sunrise.compilation import use_cache  # noqa: E402

use_cache()
LONGEST = ("test_kills.py", "test_learning.py", "test_documents.py", "test_ray.py", "test_experiments.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that no process is left with one of them when the others are done."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
