"""How long runs may take, from the products of an update and the speed of the machine this was built on.

Nothing is measured and nothing that computes is imported: a list of runs is there at once, whatever else the machine
is doing. So the estimate is good to a factor of two or so, and says what it rests on.
"""

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sunrise.config.ensemble import EnsembleSettings
from sunrise.config.groups import Config, from_pixels
from sunrise.config.learners import SACSettings
from sunrise.experiments.runs import Run, configured, repeat_of

RATE = 100e9
"""Multiply-adds, counted as two, that an update does in a second on two cores of the machine this was built on."""
BASIS = "for 2 cores of an AMD EPYC virtual machine with nothing else to do; it is not measured on this machine"
COMPILE_SECONDS, STEP_SECONDS, EVAL_STEP_SECONDS, PICTURE_SECONDS = 20.0, 1.5e-3, 1.2e-3, 2e-2
OBSERVED, ACTED = 20, 6
"""Numbers in an observation and in an action of a usual task: they matter little beside the layers."""
ATARI_ACTIONS = 9
FORWARD, TRAINED = 2, 6
"""Operations a weight and row: a forward pass, and one with its gradients."""


def estimate(runs: Sequence[Run]) -> list[float]:
    """Seconds each run may take; 0 for one that is done."""
    known: dict[tuple[str, str], float] = {}
    seconds = []
    for run in runs:
        kind = (run.arm.name, run.env)
        if kind not in known:
            known[kind] = run_seconds(configured(run), run.arm.algo)
        seconds.append(0.0 if run.done else known[kind])
    return seconds


def weights(*sizes: int) -> int:
    """Weights of layers of these sizes."""
    return sum(i * o for i, o in pairwise(sizes))


def update_flops(config: Config[Any], algo: str) -> float:
    """Operations of an update of one agent."""
    learner, rows = config.learner, config.training.batch_size
    if algo == "random":
        return 0.0
    if algo in ("rainbow", "dqn"):
        hidden, atoms = learner.net_arch, learner.n_atoms if getattr(learner, "distributional", False) else 1
        trunk = 16 * 16 * weights(100, 32) + 9 * weights(800, 64)
        heads = weights(576, *hidden, ATARI_ACTIONS * atoms) + weights(576, *hidden, atoms)
        return float(rows * (trunk + heads) * (2 * FORWARD + TRAINED))
    if from_pixels(config):
        return rows * picture_flops(config, algo)
    own = getattr(learner, "sac", learner)
    if not hasattr(own, "architecture"):  # somebody's own: as if it were SAC with its layers
        own = dataclasses.replace(SACSettings(), net_arch=getattr(own, "net_arch", (256, 256)))
    critics, arch = own.architecture.n_critics, own.net_arch
    critic, actor = weights(OBSERVED + ACTED, *arch, 1), weights(OBSERVED, *arch, 2 * ACTED)
    delay = own.policy_delay
    step = critics * critic * (FORWARD + TRAINED) + actor * FORWARD
    step += (actor * TRAINED + critics * critic * 2 * FORWARD) / delay
    if algo == "discor":
        step += critics * weights(OBSERVED + ACTED, *arch, arch[-1], 1) * (2 * FORWARD + TRAINED)
    return float(rows * step)


def picture_flops(config: Config[Any], algo: str) -> float:
    """Operations a row: convolutions are nearly all of them."""
    pixel = config.learner.pixel
    side = getattr(config.learner, "crop_size", config.env.render_size)
    place, channels, convolved = (side - 3) // 2 + 1, 3 * config.env.frame_stack, 0
    for layer in range(pixel.conv_layers):
        place -= 2 * (layer > 0)
        convolved += place**2 * 9 * (channels if layer == 0 else pixel.filters) * pixel.filters
    projected = place**2 * pixel.filters * pixel.feature_dim
    heads = weights(pixel.feature_dim + ACTED, *pixel.net_arch, 1)
    looked = (convolved + projected) * (2 * FORWARD + TRAINED) + 2 * heads * (FORWARD + TRAINED)
    return float(looked) * {"rad": 1.0, "curl": 1.6, "drq": 2.0}[algo]


def run_seconds(config: Config[Any], algo: str) -> float:
    """Seconds of a whole run."""
    steps, training, run = config.run.total_timesteps, config.training, config.run
    members = ensemble_cost(config.ensemble)
    slow = from_pixels(config) or algo in ("rainbow", "dqn")  # further from the peak than plain products
    rate = RATE / 2 if slow else RATE
    updates = max(steps - training.learning_starts, 0) * abs(training.gradient_steps) / training.train_freq
    evaluations = steps // run.eval_freq if run.eval_freq else 0
    evaluated = evaluations * 1000 / repeat_of(config, run.env_id) * run.eval_episodes
    seen = (steps + evaluated) * PICTURE_SECONDS if from_pixels(config) else 0.0
    learning = updates * members * update_flops(config, algo) / rate
    return COMPILE_SECONDS + learning + steps * STEP_SECONDS + evaluated * EVAL_STEP_SECONDS / 2 + seen


def ensemble_cost(settings: EnsembleSettings) -> float:
    """What an ensemble costs in agents: shared votes ask every critic about every member's action."""
    return settings.ensemble_size * (2.0 if settings.weight_votes == "shared" else 1.0)


def run_bytes(config: Config[Any], algo: str) -> int:
    """Bytes of disk that a whole run takes: replay, and the checkpoints that are kept."""
    training, run, learner = config.training, config.run, config.learner
    rows = min(training.buffer_size, run.total_timesteps) if run.keep_replay else 0
    if from_pixels(config):
        seen = 3 * config.env.render_size**2
        agent = 4 * (config.env.render_size // 2) ** 2 * learner.pixel.filters * learner.pixel.feature_dim * 2
    elif algo == "rainbow":
        seen, agent = 84 * 84, 4 * update_flops(config, algo) / (training.batch_size * (2 * FORWARD + TRAINED))
    else:
        own = getattr(learner, "sac", learner)
        seen, arch = 4 * 2 * OBSERVED, getattr(own, "net_arch", (1,))
        agent = 4.0 * 3 * weights(OBSERVED + ACTED, *arch, 1)
    members = config.ensemble.ensemble_size
    # An agent's parameters with those of its targets, and Adam's two moments.
    states = run.keep * members * agent * 4
    return int(rows * (seen + 4 * (ACTED + 3) + members) + states + 100 * run.total_timesteps / run.log_freq)


def as_bytes(count: float) -> str:
    """An amount of room as people say it."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 0.1):,.1f} MB"


def as_time(seconds: float) -> str:
    """A time as people say it, as roughly as it is known."""
    if seconds > 5400:
        return f"{seconds / 3600:.1f} hours"
    return f"{math.ceil(seconds / 60)} minutes" if seconds > 60 else "a minute"
