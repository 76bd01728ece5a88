"""The tasks that are known by name, and what the paper sets for them."""

from typing import Literal, NamedTuple

RendererName = Literal["egl", "osmesa", "warp"]
RendererChoice = Literal["auto", RendererName]

GYM_TASKS = ("Cheetah", "Walker", "Hopper", "Ant", "SlimHumanoid")
"""The paper's Gym tasks, in its order: `sunrise/<name>-v0`."""
ATARI_FRAMES = 4
"""Frames that an action lasts in an Atari game."""
DMC_SUITE: dict[str, tuple[str, ...]] = {
    "acrobot": ("swingup", "swingup_sparse"),
    "ball_in_cup": ("catch",),
    "cartpole": ("balance", "balance_sparse", "swingup", "swingup_sparse", "two_poles", "three_poles"),
    "cheetah": ("run",),
    "dog": ("stand", "walk", "trot", "run", "fetch"),
    "finger": ("spin", "turn_easy", "turn_hard"),
    "fish": ("upright", "swim"),
    "hopper": ("stand", "hop"),
    "humanoid": ("stand", "walk", "run", "run_pure_state"),
    "humanoid_CMU": ("stand", "walk", "run"),
    "lqr": ("lqr_2_1", "lqr_6_2"),
    "manipulator": ("bring_ball", "bring_peg", "insert_ball", "insert_peg"),
    "pendulum": ("swingup",),
    "point_mass": ("easy", "hard"),
    "quadruped": ("walk", "run", "escape", "fetch"),
    "reacher": ("easy", "hard"),
    "stacker": ("stack_2", "stack_4"),
    "swimmer": ("swimmer6", "swimmer15"),
    "walker": ("stand", "walk", "run"),
}
"""Every task of every domain; written out, so that the ids are known without the extra."""


class PaperTask(NamedTuple):
    """What the paper sets for one task."""

    action_repeat: int
    learning_rate: float = 1e-3
    batch_size: int = 256


PAPER_TASKS: dict[str, PaperTask] = {
    "dmc/finger-spin": PaperTask(2),
    "dmc/cartpole-swingup": PaperTask(8),
    "dmc/reacher-easy": PaperTask(4),
    "dmc/cheetah-run": PaperTask(4, learning_rate=2e-4, batch_size=512),
    "dmc/walker-walk": PaperTask(2),
    "dmc/ball_in_cup-catch": PaperTask(4),
    "dmc/cartpole-swingup_sparse": PaperTask(8),
}
"""The six tasks of Table 2, and the one with a sparse reward."""

GAMES_100K = (
    *("Alien", "Amidar", "Assault", "Asterix", "BankHeist", "BattleZone", "Boxing", "Breakout", "ChopperCommand"),
    *("CrazyClimber", "DemonAttack", "Freeway", "Frostbite", "Gopher", "Hero", "Jamesbond", "Kangaroo", "Krull"),
    *("KungFuMaster", "MsPacman", "Pong", "PrivateEye", "Qbert", "RoadRunner", "Seaquest", "UpNDown"),
)
"""The 26 games of the paper's Atari 100K table."""
