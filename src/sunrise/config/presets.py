"""Presets by name: the settings in which somebody's published code differs from our defaults."""

from collections.abc import Callable, Mapping
from typing import Any

Settings = Mapping[str, Any]

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

# -- the tables --------------------------------------------------------------------------------------------------------

SAC_PRESETS: Mapping[str, Settings] = {"authors": AUTHORS_SAC, "redq": REDQ, "droq": DROQ, "simba": SIMBA}

MBPO_ENTROPY = {"Hopper": -1.0, "HalfCheetah": -3.0, "Walker2d": -3.0, "Ant": -4.0, "Humanoid": -2.0}
"""Target entropies of Gymnasium's MuJoCo tasks that REDQ and DroQ took over from MBPO."""


def mbpo_entropy(env_id: str) -> Settings:
    """The target entropy of one of MBPO's tasks, of any version."""
    task = env_id.partition("-v")[0]
    return {"target_entropy": MBPO_ENTROPY[task]} if task in MBPO_ENTROPY else {}


def simba_task(env_id: str) -> Settings:
    """On DeepMind Control, where episodes do not end early, SimBa has one critic, and an action lasts two steps."""
    return {"n_critics": 1, "action_repeat": 2} if env_id.startswith("dmc/") else {}


TASKS: Mapping[str, Callable[[str], Settings]] = {"redq": mbpo_entropy, "droq": mbpo_entropy, "simba": simba_task}
"""What a preset sets for one environment, by its id."""


def of_task(preset: str, env_id: str) -> Settings:
    """The settings that a preset has for one environment alone."""
    return TASKS[preset](env_id) if preset in TASKS else {}
