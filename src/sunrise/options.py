"""What each command takes: a field is a flag, the text under it is its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from sunrise.config.tasks import RendererChoice


@dataclass
class Start:
    """What is looked at before the rest: what the defaults depend on, and how long the training was asked to be."""

    preset: str = "ours"
    env_id: str = ""
    total_timesteps: int | None = None
    total_env_steps: int | None = None


@dataclass
class Preset:
    """Where the settings start from."""

    preset: str = "ours"
    """Whose settings to start from, which flags still change: `ours`, or those of the code of SUNRISE's `authors`; for
    sac also `redq`, `droq` or `simba`, of which an ensemble is made as of any learner (--ensemble-size 1: the plain
    one)."""


@dataclass
class Simulated:
    """How long to train, counted otherwise."""

    total_env_steps: int | None = None
    """Simulator steps (timesteps times action repeat or frame skip) to train for, instead of --total-timesteps."""


@dataclass
class Evaluate:
    """Evaluate a run's last checkpoint: one line of JSON on stdout."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's folder."""
    episodes: int = 10
    """Whole episodes to run."""
    seed: int | None = None
    """Seed of the episodes; default: the run's own."""
    trust_env: bool = False
    """Let the run's environment import the module it names (an id like mymodule:MyEnv-v0)."""
    renderer: RendererChoice | None = None
    """Who draws what an agent of pixels sees; default: who drew it in training. Another one draws other pictures."""


@dataclass
class Resume:
    """Go on with a run that was stopped, exactly where its last good checkpoint is."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's folder."""
    total_timesteps: int | None = None
    """Train until this many timesteps instead; default: what the run was begun with."""
    total_env_steps: int | None = None
    """The same in simulator steps."""
    trust_env: bool = False
    """Let the run's environment import the module it names (an id like mymodule:MyEnv-v0)."""
    max_env_restarts: int | None = None
    """Endure this many failures of environments instead."""
    env_timeout: float | None = None
    """Wait this many seconds for an environment instead."""


@dataclass
class Inspect:
    """Show what is in a run, a checkpoint or a model file: sizes, the last good step, whether it verifies."""

    path: Annotated[Path, tyro.conf.Positional]
    """The run's folder, the folder of one of its checkpoints, or a model file."""
    json: bool = False
    """One line of JSON instead of a table."""


@dataclass
class Record:
    """Film a run's last checkpoint: an MP4 of noiseless episodes."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run's folder."""
    out: Path | None = None
    """The film; default: videos/step-N.mp4 in the run's folder."""
    episodes: int = 1
    """Episodes to film, one after another."""
    seed: int | None = None
    """Seed of the episodes; default: the run's own."""
    trust_env: bool = False
    """Let the run's environment import the module it names (an id like mymodule:MyEnv-v0)."""
    renderer: RendererChoice | None = None
    """Who draws what an agent of pixels sees; default: who drew it in training. Another one draws other pictures."""


@dataclass
class Envs:
    """List environments with their observations, actions and the extra they need."""

    pattern: Annotated[str, tyro.conf.Positional] = ""
    """Show only ids with a word that begins like this."""


@dataclass
class Demo:
    """Train five agents on Pendulum until it is solved, print a table and draw the result."""

    out: Path = Path("demo")
    """Folder for the run and the picture."""
    seed: int = 1
    """Seed of the run."""


@dataclass
class Bench:
    """Measure speed on this machine, with the limit beside it."""

    members: tuple[int, ...] = (1, 2, 5, 10)
    """Ensemble sizes."""
    repeats: int = 60
    """Updates timed for each size; the best counts."""
    out: Path | None = None
    """Also write the numbers as JSON to this file."""


@dataclass
class Reproduce:
    """Run an experiment of the paper and write its table or figure with the paper's numbers beside ours."""

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
