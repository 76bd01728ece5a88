"""What a person sees on the screen: all on stderr, in the same words everywhere."""

import contextlib
import sys
from collections.abc import Mapping
from typing import Any, TextIO, cast

from rich.console import Console


class Screen:
    """Standard error, whatever it is just now; a terminal that is gone takes no run with it."""

    @property
    def stream(self) -> TextIO:
        stream: TextIO = getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # what is under a live line
        return stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


console = Console(file=cast("TextIO", Screen()), highlight=False)


def say(text: str) -> None:
    """A line as it is: no markup, and no wrapping that would break a path to copy."""
    console.print(text, markup=False, soft_wrap=True)


def counted(timesteps: int, env_steps: int) -> str:
    """A number of timesteps, with the simulator's beside it where they are others."""
    return f"{timesteps:,} timesteps{simulated(timesteps, env_steps)}"


def simulated(timesteps: int, env_steps: int) -> str:
    """A number of simulator steps, where they are others than timesteps."""
    return f" ({env_steps:,} simulator steps)" if env_steps != timesteps else ""


def members(count: int) -> str:
    """How many agents there are."""
    return f"{count} member{'s' * (count != 1)}"


def as_table(row: Mapping[str, Any]) -> str:
    """A row of metrics as Stable-Baselines3 shows it: by group, a name and a number a line."""
    groups: dict[str, dict[str, str]] = {}
    for name, value in row.items():
        group, _, own = name.rpartition("/")
        groups.setdefault(group or "run", {})[own] = f"{value:.3g}" if isinstance(value, float) else f"{value:,}"
    left = max(len(own) for names in groups.values() for own in names) + 3
    right = max(len(text) for names in groups.values() for text in names.values())
    rule = "-" * (left + right + 7)
    lines = [rule]
    for group, names in groups.items():
        lines.append(f"| {group + '/':<{left}} | {'':<{right}} |")
        lines += [f"| {'   ' + own:<{left}} | {text:<{right}} |" for own, text in names.items()]
    return "\n".join([*lines, rule])


def number(value: float | None) -> str:
    """A number as it is shown, or a dash where there is none."""
    return "-" if value is None else f"{value:.1f}"
