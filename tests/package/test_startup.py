"""What need not be computed is not imported: looking at a list or a folder takes a moment."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sunrise import commands
from sunrise.cli import COMMANDS

HEAVY = ("jax", "gymnasium", "mujoco", "tensorboard", "matplotlib", "optax", "equinox")


def imported(program: str) -> set[str]:
    """The heavy packages that a program imports."""
    code = f"import sys\n{program}\nimport json\nprint('\\n' + json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*words: str) -> str:
    return f"from sunrise.cli import main\ntry:\n    main({list(words)!r})\nexcept SystemExit:\n    pass"


def test_importing_sunrise_imports_nothing_heavy_and_its_environments_come_with_gymnasium() -> None:
    assert imported("import sunrise") == set()
    assert imported("import sunrise\nsunrise.SAC") >= {"jax", "gymnasium"}
    both = "import sunrise\nimport gymnasium\nassert 'sunrise/Hopper-v0' in gymnasium.registry"
    assert "gymnasium" in imported(both)
    other = "import gymnasium\nimport sunrise\nassert 'dmc/cartpole-swingup' in gymnasium.registry"
    assert "gymnasium" in imported(other)


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("--help",),
        ("train",),
        ("train", "sac", "--help"),
        ("reproduce", "table3", "--scale", "paper", "--dry-run"),
        ("inspect", "nowhere"),
    ],
)
def test_a_command_that_makes_no_array_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert imported(command(*words)) == set()


def test_a_run_is_inspected_without_what_computes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = f"train random --env-id Pendulum-v1 --total-timesteps 20 --eval-freq 0 --run-dir {run}"
    subprocess.run([sys.executable, "-m", "sunrise", *words.split()], check=True, capture_output=True)
    assert imported(command("inspect", str(run))) == set()
    assert imported(command("inspect", str(run), "--json")) == set()


def test_a_command_is_a_file_and_a_line() -> None:
    files = {path.stem for path in Path(commands.__file__).parent.glob("*.py")}
    assert files - {"__init__", "execution", "flags", "learning"} == set(COMMANDS)
    for name in COMMANDS:
        assert callable(importlib.import_module(f"sunrise.commands.{name}").run)
