"""Arguments as Stable-Baselines3 has them, in our settings; what has no equal here is refused by naming what has.

Its classes and PyTorch's are known by their names: neither is imported.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sunrise.errors import SunriseError

ACTIVATIONS = {
    "ReLU": "relu",
    "Tanh": "tanh",
    "ELU": "elu",
    "LeakyReLU": "leaky_relu",
    "SiLU": "silu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
}
"""PyTorch's classes by name."""
POLICIES = {"SACPolicy": "MlpPolicy", "TD3Policy": "MlpPolicy", "DQNPolicy": "MlpPolicy"}
"""What classes of policies are called that have another name as an argument."""
SAME_REPLAY = ("ReplayBuffer", "DictReplayBuffer")


class Habits(NamedTuple):
    """Arguments that are about what is shown, not about what is learned: no file keeps them."""

    stats_window_size: int = 100
    """Episodes that the means of `model.logger` are over."""
    monitor_wrapper: bool = True
    """Whether `get_env()` counts episodes as SB3's Monitor does."""


def policy_name(policy: Any) -> Any:
    """A policy by its name, also where its class was given."""
    if not isinstance(policy, type):
        return policy
    return POLICIES.get(policy.__name__, policy.__name__)


def translated(algo: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], Habits]:
    """Keywords as the user wrote them -> settings by our names, and habits. `known` are the algorithm's settings."""
    settings, habits = dict(given), {}
    for name in Habits._fields:
        if name in settings:
            habits[name] = settings.pop(name)
    if type(habits.get("stats_window_size", 1)) is not int or habits.get("stats_window_size", 1) < 1:
        raise SunriseError(f"stats_window_size is {habits['stats_window_size']!r}, but must be a whole number above 0.")
    if type(settings.get("learning_rate")).__name__ == "ConstantSchedule":
        settings["learning_rate"] = float(settings["learning_rate"](1.0))  # a number, which a file can hold
    frequency = settings.get("train_freq")
    if isinstance(frequency, list | tuple):
        settings["train_freq"], settings["train_freq_unit"] = both(frequency)
    for name, value in given.items():
        if name in known and name != "action_noise":
            continue
        if name in RULES:
            del settings[name]
            settings |= RULES[name](algo, known, value)
    return settings, Habits(**habits)


def both(frequency: Any) -> tuple[Any, str]:
    """`(4, "episode")` apart."""
    if len(frequency) != 2 or frequency[1] not in ("step", "episode"):
        raise SunriseError(f'train_freq is {frequency!r}, but must be a number, (n, "step") or (n, "episode").')
    return frequency[0], frequency[1]


def network(algo: str, known: Mapping[str, Any], policy_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings that `policy_kwargs` asks for."""
    settings: dict[str, Any] = {}
    for name, value in (policy_kwargs or {}).items():
        if name == "net_arch":
            settings |= layers(known, value)
        elif name == "activation_fn":
            settings |= activation(algo, known, value)
        elif name == "n_critics" and name in known:
            settings[name] = value
        elif name == "share_features_extractor" and value is False and "critic_net_arch" in known:
            continue  # ours share nothing
        else:
            raise SunriseError(
                f"policy_kwargs has {name!r}, but only net_arch, activation_fn and n_critics are known; networks of "
                "another kind are settings (network, layer_norm, dropout, weight_decay) or a learner of your own."
            )
    return settings


def layers(known: Mapping[str, Any], net_arch: Any) -> dict[str, Any]:
    """A list of layers, or `dict(pi=, qf=)`."""
    if not isinstance(net_arch, Mapping):
        return {"net_arch": net_arch}
    if "critic_net_arch" not in known or set(net_arch) != {"pi", "qf"}:
        wanted = "a list, or dict(pi=..., qf=...)" if "critic_net_arch" in known else "a list"
        raise SunriseError(f"net_arch is {net_arch!r}, but must be {wanted}.")
    if not net_arch["qf"]:
        raise SunriseError("net_arch has no layers for qf, but must have one at least.")
    return {"net_arch": net_arch["pi"], "critic_net_arch": net_arch["qf"]}


def activation(algo: str, known: Mapping[str, Any], function: Any) -> dict[str, Any]:
    """An activation by its name, or PyTorch's class of it."""
    name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
    found = ACTIVATIONS.get(name.rpartition(".")[2], name)
    if found not in ACTIVATIONS.values():
        raise SunriseError(f"activation_fn is {name}, but must be one of {', '.join(ACTIVATIONS)}.")
    if "activation" in known:
        return {"activation": found}
    if found != "relu":
        raise SunriseError(f"activation_fn is {name}, but the networks of {algo} have ReLU.")
    return {}


def only(wanted: Any, instead: str) -> Callable[[str, Mapping[str, Any], Any], dict[str, Any]]:
    """A keyword that may only say what is so in any case."""

    def rule(algo: str, known: Mapping[str, Any], value: Any) -> dict[str, Any]:
        if value != wanted or type(value) is not type(wanted):
            raise SunriseError(instead)
        return {}

    return rule


def action_noise(algo: str, known: Mapping[str, Any], noise: Any) -> dict[str, Any]:
    """TD3's noise as a number; NormalActionNoise with one σ for all dimensions is such a number."""
    sigma: Any = None
    if noise is None:
        sigma = 0.0
    elif type(noise).__name__ == "NormalActionNoise":
        mean, deviations = np.asarray(noise._mu, float), np.unique(np.asarray(noise._sigma, float))
        sigma = float(deviations[0]) if not mean.any() and deviations.size == 1 else None
    elif "action_noise" in known and isinstance(noise, int | float | np.number):
        sigma = noise
    if "action_noise" not in known:
        if sigma == 0:
            return {}
        raise SunriseError(
            f"action_noise is for td3: {algo} explores by its own policy and by the ensemble (ucb_lambda, exploration)."
        )
    if sigma is None:
        raise SunriseError(
            "action_noise must be NormalActionNoise of mean 0 with one sigma for all dimensions, or that sigma as a "
            "number; the ensemble explores besides (ucb_lambda)."
        )
    return {"action_noise": sigma}


def replay_class(algo: str, known: Mapping[str, Any], cls: Any) -> dict[str, Any]:
    """The ordinary buffers are ours in any case."""
    name = cls if cls is None else getattr(cls, "__name__", repr(cls))
    if name is None or name in SAME_REPLAY:
        return {}
    raise SunriseError(
        f"replay_buffer_class is {name}, but replay is ours: prioritised=True and n_step=... are settings, "
        "goals that are chosen afterwards (HER) there are not."
    )


def replay_options(algo: str, known: Mapping[str, Any], options: Mapping[str, Any] | None) -> dict[str, Any]:
    """What happens at a time limit is our `truncation`."""
    rest = dict(options or {})
    handled = rest.pop("handle_timeout_termination", None)
    if rest:
        raise SunriseError(
            f"replay_buffer_kwargs has {next(iter(rest))!r}, but only handle_timeout_termination is known (our "
            "truncation); n_step and prioritised are settings."
        )
    return {} if handled is None else {"truncation": "bootstrap" if handled else "terminal"}


def steps_of_returns(algo: str, known: Mapping[str, Any], count: Any) -> dict[str, Any]:
    """The same with one letter more."""
    return {"n_step": count}


NO_SDE = "use_sde and what belongs to it are refused: the ensemble explores (ucb_lambda, exploration='member')."
RULES: dict[str, Callable[[str, Mapping[str, Any], Any], dict[str, Any]]] = {
    "action_noise": action_noise,
    "replay_buffer_class": replay_class,
    "replay_buffer_kwargs": replay_options,
    "n_steps": steps_of_returns,
    "use_sde": only(False, NO_SDE),
    "sde_sample_freq": only(-1, NO_SDE),
    "use_sde_at_warmup": only(False, NO_SDE),
    "target_update_interval": only(1, "target_update_interval must be 1: targets move by tau at each update."),
    "optimize_memory_usage": only(
        False, "optimize_memory_usage is refused: stacked frames are kept once in any case, else lower buffer_size."
    ),
    "_init_setup_model": only(
        True, "_init_setup_model must be True: a model is whole when it is made. Without agents: load(...) a file."
    ),
    "support_multi_env": only(True, "support_multi_env is so in any case."),
}
"""Stable-Baselines3's keywords that are no settings here."""
