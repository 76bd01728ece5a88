"""What a person sees while a run goes on: a live line on a terminal, a line an event elsewhere. All on stderr."""

import contextlib
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from sunrise.evaluate import Evaluation
    from sunrise.train import Trainer


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


class ProgressLine:
    """Timesteps, timesteps a second, time left, the last return and the last evaluation."""

    def __init__(self, total: int, enabled: bool) -> None:
        self.enabled, self.total = enabled, total
        self.live = enabled and console.is_terminal
        self.began, self.first = time.perf_counter(), 0
        self.shown = -1.0
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("timesteps{task.fields[simulated]}  {task.fields[speed]:.0f}/s"),
            TimeRemainingColumn(),
            TextColumn("return {task.fields[last]}  eval {task.fields[evaluation]}"),
            console=console,
            disable=not self.live,
        )
        fields: dict[str, Any] = {"speed": 0.0, "simulated": "", "last": "-", "evaluation": "-"}
        self.task = self.progress.add_task("training", total=total, **fields)

    def __enter__(self) -> "ProgressLine":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def step(self, trainer: "Trainer") -> None:
        """Show where the run is, a few times a second."""
        now = time.perf_counter()
        if not self.live or (now - self.shown < 0.2 and trainer.timesteps < self.total):
            return
        self.shown = now
        if not self.first:
            self.began, self.first = now, trainer.timesteps
        self.progress.update(
            self.task,
            completed=trainer.timesteps,
            simulated=simulated(trainer.timesteps, trainer.env_steps),
            speed=(trainer.timesteps - self.first) / max(now - self.began, 1e-9),
            last=_number(trainer.last_return),
            evaluation=_number(trainer.last_evaluation and trainer.last_evaluation.mean),
        )

    def metrics(self, row: dict[str, Any]) -> None:
        """Without a terminal: a line for each row of metrics."""
        if self.enabled and not self.live:
            left = (self.total - row["timesteps"]) / max(row["time/steps_per_s"], 1e-9)
            done = counted(row["timesteps"], row["env_steps"])
            say(
                f"{done} of {self.total:,}  {row['time/steps_per_s']:.0f} timesteps/s  {left / 60:.1f} min left  "
                f"return {_number(row.get('rollout/return_mean'))}"
            )

    def evaluation(self, timesteps: int, env_steps: int, result: "Evaluation") -> None:
        if self.enabled and not self.live:
            say(
                f"{counted(timesteps, env_steps)}  evaluation: mean return {_number(result.mean)} "
                f"± {_number(result.std)} over {len(result.returns)} episodes"
            )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
