"""Shapes are checked at run time, and compiled programs are kept between test sessions."""

import os
from pathlib import Path

from jaxtyping import install_import_hook

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "jax"))

CHECKED = ["ensemble", "networks", "learners", "replay", "collect", "evaluate", "types", "convolution", "pixels"]
install_import_hook([f"sunrise.{module}" for module in CHECKED], "beartype.beartype")

from sunrise.compilation import use_cache  # noqa: E402

use_cache()
