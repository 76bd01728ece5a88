"""MuJoCo and dm_control look for a display when they are imported; here that is put aside where it must not matter."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def no_display() -> Iterator[None]:
    """Nothing that is imported meanwhile looks for a display."""
    backend = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = "disable"
    try:
        yield
    finally:
        del os.environ["MUJOCO_GL"]
        if backend is not None:
            os.environ["MUJOCO_GL"] = backend


def import_mujoco() -> None:
    """Import MuJoCo also where MUJOCO_GL names a driver that the machine does not have: it need not draw."""
    try:
        import mujoco
    except Exception:  # of whatever kind the search for the driver ends in
        with no_display():
            import mujoco  # noqa: F401
