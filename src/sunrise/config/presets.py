"""The presets: settings in which somebody's published code differs from our defaults, in one list."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]


def nothing(env_id: str) -> Settings:
    """Every environment is played with the same settings."""
    return {}


class Preset(NamedTuple):
    """Settings to start from, by a name."""

    name: str
    text: str
    """Whose they are."""
    algorithms: tuple[str, ...]
    """The algorithms it is for."""
    settings: Settings
    for_env: Callable[[str], Settings] = nothing
    """What it sets besides for one environment, by its id."""


# -- the authors of SUNRISE --------------------------------------------------------------------------------------------

AUTHORS_EVALUATION = {"eval_freq": 1000, "eval_steps": 1000}
AUTHORS_SCHEDULE = {
    "train_freq": 1000,
    "gradient_steps": 1000,
    "warmup": "ensemble",
    "truncation": "terminal",
}
AUTHORS_SAC = {
    "init": "rlkit",
    "target_init": "random",
    "loss_normaliser": "mask",
    "weight_action": "fresh",
    "alpha_in_target": "after",
    **AUTHORS_SCHEDULE,
    **AUTHORS_EVALUATION,
}
AUTHORS_TD3 = {**AUTHORS_SCHEDULE, **AUTHORS_EVALUATION}
AUTHORS_RAINBOW = {
    "max_grad_norm": 0.0,
    "importance_horizon": 500_000,
    "buffer_size": 500_000,
    "learning_starts": 1599,
    "warmup": "ensemble",
    "truncation": "terminal",
    "empty_masks": "kept",
    "eval_epsilon": 0.001,
}

# -- stronger base learners --------------------------------------------------------------------------------------------

MANY_UPDATES = {
    "gradient_steps": 20,
    "policy_delay": 20,
    "learning_starts": 5000,
    "actor_value": "mean",
    "update_order": "together",
    "init": "xavier",
    "ent_coef": "auto",
}
"""What REDQ and DroQ have in common: twenty updates of the critics a timestep, the last of which steps the actor."""
REDQ = {**MANY_UPDATES, "n_critics": 10, "critic_subset": 2}
DROQ = {**MANY_UPDATES, "layer_norm": True, "dropout": 0.01}
SIMBA = {
    "network": "simba",
    "normalise_observations": True,
    "weight_decay": 1e-2,
    "learning_rate": 1e-4,
    "ent_coef": "auto_0.01",
    "target_entropy": "auto_0.5",
    "alpha_loss": "alpha",
    "update_order": "actor",
    "gradient_steps": 2,
    "learning_starts": 5000,
}

MBPO_ENTROPY = {"Hopper": -1.0, "HalfCheetah": -3.0, "Walker2d": -3.0, "Ant": -4.0, "Humanoid": -2.0}
"""Target entropies of Gymnasium's MuJoCo tasks that REDQ and DroQ took over from MBPO."""


def mbpo_entropy(env_id: str) -> Settings:
    """The target entropy of one of MBPO's tasks, of any version."""
    task = env_id.partition("-v")[0]
    return {"target_entropy": MBPO_ENTROPY[task]} if task in MBPO_ENTROPY else {}


def simba_on_dmc(env_id: str) -> Settings:
    """On DeepMind Control, where episodes do not end early, SimBa has one critic, and an action lasts two steps."""
    return {"n_critics": 1, "action_repeat": 2} if env_id.startswith("dmc/") else {}


# -- the list ----------------------------------------------------------------------------------------------------------

AUTHORS = "the code of SUNRISE's authors"
PRESETS = (
    Preset("authors", AUTHORS, ("sac", "discor"), AUTHORS_SAC),
    Preset("authors", AUTHORS, ("td3",), AUTHORS_TD3),
    Preset("authors", AUTHORS, ("rainbow",), AUTHORS_RAINBOW),
    Preset("authors", AUTHORS, ("random",), AUTHORS_EVALUATION),
    Preset("redq", "REDQ", ("sac",), REDQ, mbpo_entropy),
    Preset("droq", "DroQ", ("sac",), DROQ, mbpo_entropy),
    Preset("simba", "SimBa", ("sac",), SIMBA, simba_on_dmc),
)


def presets_of(algo: str) -> dict[str, Preset]:
    """The presets of one of our algorithms, by their names."""
    return {preset.name: preset for preset in PRESETS if algo in preset.algorithms}
