"""The paper's experiments as data: who is compared, on what, for how long, and what the paper published.

Per-environment values of T, β and λ were never published; `SEARCH` has the sets the paper chose from, and our arms use
our defaults (T = 20, from pixels 10; β = 1, λ = 1), which are not tuned.
"""

import csv
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from sunrise.config.tasks import GAMES_100K

SEARCH: dict[str, dict[str, tuple[float, ...]]] = {
    "gym": {"weight_temperature": (10, 20, 50), "bootstrap_prob": (0.5, 1.0), "ucb_lambda": (1, 5, 10)},
    "dmc": {"weight_temperature": (10, 100), "bootstrap_prob": (0.5, 1.0), "ucb_lambda": (1, 5, 10)},
    "atari": {"weight_temperature": (10, 40), "bootstrap_prob": (0.5, 1.0), "ucb_lambda": (1, 10)},
}
"""The paper's search sets; it chose per environment, on the training environments."""

ATARI_TABLE = "table3_atari_100k.csv"
GYM = ("sunrise/Cheetah-v0", "sunrise/Walker-v0", "sunrise/Hopper-v0", "sunrise/Ant-v0", "sunrise/SlimHumanoid-v0")
HUMANOID, ANT, HOPPER, CHEETAH = GYM[4], GYM[3], GYM[2], GYM[0]
SPARSE_CARTPOLE = "dmc/cartpole-swingup_sparse"
DMC_TASKS = {
    "dmc/finger-spin": "Finger-spin",
    "dmc/cartpole-swingup": "Cartpole-swing",
    "dmc/reacher-easy": "Reacher-easy",
    "dmc/cheetah-run": "Cheetah-run",
    "dmc/walker-walk": "Walker-walk",
    "dmc/ball_in_cup-catch": "Cup-catch",
}
"""The tasks of Table 2 with the paper's names."""
DMC = tuple(DMC_TASKS)


@dataclass(frozen=True)
class Arm:
    """One curve or one row of a table."""

    name: str
    algo: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run."""

    envs: tuple[str, ...]
    timesteps: int
    seeds: int
    eval_freq: int
    eval_episodes: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every arm at this scale."""
    smaller: Mapping[int, int] = field(default_factory=dict)
    """Widths of networks replaced at this scale."""
    simulator_steps: bool = False
    """`timesteps` and `eval_freq` count steps of the simulator: a task that repeats actions has fewer timesteps."""


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str
    title: str
    arms: tuple[Arm, ...]
    paper: Scale
    quick: Scale
    published_as: str = ""
    """How the paper got its numbers, where it has a table of them."""
    note: str = ""


def quick(*envs: str, timesteps: int = 4000) -> Scale:
    """A scale for a few minutes on two cores: it shows the mechanism, not the result."""
    small = {"learning_starts": 500, "batch_size": 64, "buffer_size": 100_000, "log_freq": 500}
    return Scale(envs, timesteps, 1, timesteps // 4, 3, small, {256: 64, 1024: 256, 400: 64, 300: 64})


def full(envs: tuple[str, ...], timesteps: int, seeds: int) -> Scale:
    """The paper's scale, evaluated by our protocol: 10 episodes every 10,000 timesteps."""
    return Scale(envs, timesteps, seeds, 10_000, 10)


def quick_atari(*games: str) -> Scale:
    """Three games for a quarter of an hour on two cores, with the real network."""
    small = {"learning_starts": 400, "buffer_size": 10_000, "log_freq": 500}
    return Scale(tuple(f"ALE/{game}-v5" for game in games), 2000, 1, 1000, 2, small)


def full_dmc(
    envs: tuple[str, ...], env_steps: int, seeds: int, eval_env_steps: int = 10_000, episodes: int = 10
) -> Scale:
    """The paper's scale on DeepMind Control, in simulator steps."""
    return Scale(envs, env_steps, seeds, eval_env_steps, episodes, simulator_steps=True)


def quick_dmc(*envs: str) -> Scale:
    """Small pictures and few of them, for a few minutes on two cores."""
    small = {
        "render_size": 48,
        "crop_size": 40,
        "filters": 16,
        "batch_size": 32,
        "ensemble_size": 2,
        "learning_starts": 200,
        "buffer_size": 10_000,
        "log_freq": 200,
    }
    return Scale(envs, 8000, 1, 4000, 2, small, {1024: 128}, simulator_steps=True)


ATARI = tuple(f"ALE/{game}-v5" for game in GAMES_100K)
RAINBOW = Arm("Rainbow", "rainbow", {"ensemble_size": 1})
SUNRISE_RAINBOW = Arm("SUNRISE", "rainbow", {})
CONSTANT_RAINBOW = Arm("SUNRISE with the constant weight 0.5", "rainbow", {"weighting": "constant"})
"""Rainbow's Adam has a large ε, so that a weight of 0.5 alone is a smaller step size: the control for it."""
PIXEL_SAC = Arm("SAC", "rad", {"ensemble_size": 1, "augmentation": "none"})
SUNRISE_PIXEL_SAC = Arm("SUNRISE on SAC", "rad", {"augmentation": "none"})
RAD = Arm("RAD", "rad", {"ensemble_size": 1})
SUNRISE_RAD = Arm("SUNRISE on RAD", "rad", {})
SAC = Arm("SAC", "sac", {"ensemble_size": 1})
TD3 = Arm("TD3", "td3", {"ensemble_size": 1})
DISCOR = Arm("DisCor", "discor", {"ensemble_size": 1})
SUNRISE = Arm("SUNRISE", "sac", {})
NO_WBB = Arm("SUNRISE without weighted backups", "sac", {"weighting": "none"})
NOISE: dict[str, Any] = {"reward_noise": 1.0}
LARGE_NOISE: dict[str, Any] = {"reward_noise": 5.0}
FIVE_UPDATES: dict[str, Any] = {"ensemble_size": 1, "gradient_steps": 5}
"""Updates a timestep; where steps are collected in rounds, as many times more."""


def under(arm: Arm, name: str = "", **settings: Any) -> Arm:
    """An arm under other settings; it is no longer the paper's row."""
    return Arm(name or arm.name, arm.algo, {**arm.settings, **settings})


MORE_UPDATES = (
    SAC,
    SUNRISE,
    Arm("SAC, 256 units, 5 updates", "sac", {**FIVE_UPDATES, "net_arch": (256, 256)}),
    Arm("SAC, 1024 units, 5 updates", "sac", {**FIVE_UPDATES, "net_arch": (1024, 1024)}),
)
SIZES = tuple(Arm(f"N = {n}", "sac", {"ensemble_size": n}) for n in (1, 2, 3, 5, 7))
SIZES_NOTE = "The paper does not say which sizes it drew; 1, 2, 3, 5 and 7 are our choice."

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment(
            "table1",
            "OpenAI Gym at 200k timesteps",
            (SAC, TD3, SUNRISE),
            full(GYM, 200_000, 10),
            quick(HOPPER, CHEETAH),
            published_as="200,000 timesteps, 10 runs, the authors' protocol and simulator of 2021",
        ),
        Experiment(
            "fig2",
            "Noisy rewards: r' = r + N(0, 1) in training",
            tuple(under(arm, **NOISE) for arm in (SAC, DISCOR, SUNRISE, NO_WBB)),
            full(GYM, 200_000, 4),
            quick(HOPPER),
            note="The paper does not say how long its curves are; 200k is our choice.",
        ),
        Experiment(
            "fig3a",
            "Large reward noise on SlimHumanoid: r' = r + N(0, 5²) in training",
            (
                *(under(arm, **LARGE_NOISE) for arm in (SAC, DISCOR, SUNRISE)),
                under(SUNRISE, "SUNRISE with random weights", weighting="random", **LARGE_NOISE),
                under(SUNRISE, "SUNRISE without UCB", exploration="member", **LARGE_NOISE),
            ),
            full((HUMANOID,), 200_000, 10),
            quick(HUMANOID),
            note="N(0, 5) is read as a standard deviation of 5. The length is our choice.",
        ),
        Experiment(
            "fig3b",
            "UCB exploration on Cartpole with a sparse reward, from its state",
            (SUNRISE, under(SUNRISE, "SUNRISE without UCB", exploration="member")),
            full_dmc((SPARSE_CARTPOLE,), 100_000, 5, episodes=5),
            dataclasses.replace(quick(SPARSE_CARTPOLE, timesteps=32_000), simulator_steps=True),
            note="The paper says neither how long its curves are nor whether it uses pixels; both are our choice.",
        ),
        Experiment(
            "fig3c",
            "More updates and parameters for one agent, on SlimHumanoid",
            MORE_UPDATES,
            full((HUMANOID,), 1_000_000, 4),
            quick(HUMANOID, timesteps=2000),
        ),
        Experiment(
            "fig3d",
            "Ensemble size on Ant",
            SIZES,
            full((ANT,), 200_000, 4),
            quick(ANT, timesteps=3000),
            note=SIZES_NOTE,
        ),
        Experiment(
            "table3",
            "Atari games at 100k timesteps (400k frames)",
            (RAINBOW, SUNRISE_RAINBOW, CONSTANT_RAINBOW),
            full(ATARI, 100_000, 3),
            quick_atari("Freeway", "Boxing", "Pong"),
            published_as="100,000 timesteps, 3 runs, the authors' protocol",
        ),
        Experiment(
            "table2",
            "DeepMind Control from pixels at 100k and 500k simulator steps",
            (RAD, SUNRISE_RAD),
            full_dmc(DMC, 500_000, 5, 50_000),
            quick_dmc("dmc/cartpole-swingup"),
            published_as="5 runs, the authors' protocol",
        ),
        Experiment(
            "fig6",
            "DeepMind Control learning curves from pixels",
            (PIXEL_SAC, SUNRISE_PIXEL_SAC, RAD, SUNRISE_RAD),
            full_dmc(DMC, 500_000, 5),
            quick_dmc("dmc/cartpole-swingup"),
        ),
        Experiment(
            "fig7",
            "Atari learning curves (the paper's Figures 7 to 9)",
            (RAINBOW, SUNRISE_RAINBOW),
            full(ATARI, 100_000, 3),
            quick_atari("Freeway"),
        ),
        Experiment("fig4", "Gym learning curves", MORE_UPDATES, full(GYM, 1_000_000, 4), quick(HOPPER, timesteps=2000)),
        Experiment(
            "fig5",
            "Ensemble size on every task",
            SIZES,
            full(GYM, 200_000, 4),
            quick(HOPPER, timesteps=3000),
            note=SIZES_NOTE,
        ),
    )
}


def published(file: str) -> list[dict[str, str]]:
    """The rows of one of the paper's tables."""
    text = resources.files("sunrise.experiments").joinpath("data", file).read_text()
    return list(csv.DictReader(text.splitlines()))


def task_of(env: str) -> str:
    """The paper's name of an environment."""
    if env in DMC_TASKS:
        return DMC_TASKS[env]
    return env.split("/")[1].rsplit("-v", 1)[0].replace("SlimHumanoid", "SlimHumanoid-ET")
