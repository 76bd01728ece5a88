"""`sunrise reproduce`: the experiments of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from sunrise.commands.execution import Where, WhereFlags
from sunrise.config.length import Length
from sunrise.config.tasks import RendererChoice
from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Run an experiment of the paper and report it: tables with the paper's numbers beside ours, curves, a page."""

    experiment: Annotated[str, tyro.conf.Positional]
    """table1, table2, table3, fig1b, fig2, fig3a, fig3b, fig3c, fig3d, fig4, fig5, fig6 or fig7."""
    scale: Literal["quick", "paper"] = "quick"
    """`quick` shows the mechanism in minutes; `paper` is the paper's size."""
    seeds: int | None = None
    """Seeds of every arm; default: the scale's."""
    envs: tuple[str, ...] = ()
    """Only these environments."""
    games: tuple[str, ...] = ()
    """Only these Atari games, such as Pong."""
    tasks: tuple[str, ...] = ()
    """Only these DeepMind Control tasks, such as cartpole-swingup."""
    preset: Literal["ours", "authors"] = "ours"
    """Our settings, or those of the authors' code."""
    total_timesteps: int | None = None
    """Timesteps of every run; default: the scale's."""
    total_env_steps: int | None = None
    """Simulator steps of every run, instead."""
    renderer: RendererChoice = "auto"
    """Who draws the pictures of an experiment from pixels; `auto` is OpenGL where there is any, else warp."""
    out: Path | None = None
    """Folder of the runs and the result; default: reproduce/{experiment}-{scale}."""
    dry_run: bool = False
    """Show the runs and an estimate of their time, and stop."""
    where: WhereFlags = field(default_factory=Where)


def run(arguments: Sequence[str]) -> None:
    """Run an experiment, or go on with it."""
    flags = tyro.cli(Flags, args=arguments, prog="sunrise reproduce")
    out = flags.out or Path("reproduce") / f"{flags.experiment}-{flags.scale}"
    if flags.experiment == "fig1b":
        fit_the_toy(flags, out)
        return
    from sunrise.commands.report import finish
    from sunrise.experiments.plan import reproduce_experiment

    changes: dict[str, Any] = {} if flags.renderer == "auto" else {"renderer": flags.renderer}
    outcome = reproduce_experiment(
        flags.experiment,
        flags.scale,
        flags.seeds,
        (
            *flags.envs,
            *(f"ALE/{game}-v5" for game in flags.games),
            *(f"dmc/{task.removeprefix('dmc/')}" for task in flags.tasks),
        ),
        flags.preset,
        Length(flags.total_timesteps, flags.total_env_steps),
        changes,
        out,
        flags.dry_run,
        flags.where.execution(at_least=0),
    )
    if outcome is not None:
        finish(outcome.folders, out / "report", outcome.title, outcome.about, outcome.cautions, outcome.arms)
        if outcome.failure:
            raise SunriseError(outcome.failure)


def fit_the_toy(flags: Flags, out: Path) -> None:
    """Figure 1b, which is no training."""
    from sunrise.experiments.toy import draw_cubic, fit_cubic

    if flags.dry_run:
        print("fig1b: one toy regression, about 20 seconds")
        return
    lengths = flags.total_timesteps, flags.total_env_steps
    if flags.envs or flags.games or flags.tasks or flags.seeds or any(lengths):
        raise SunriseError("fig1b is one toy regression: it takes no environments, seeds or steps.")
    fit = fit_cubic()
    draw_cubic(fit, out / "figure.png")
    inside, outside = fit.spread_inside, fit.spread_outside
    print(f"mean spread: {inside:.2f} where there are points, {outside:.2f} where there are none")
    print(f"Written: {out}/figure.png")
    if outside <= inside:
        raise SunriseError("the spread is not larger where there are no points: the ensemble failed its check.")
