"""Which settings make sense: their kinds, their bounds, and what goes together."""

import dataclasses
import math
import types
import typing
from typing import Any, Literal, TypeVar

from sunrise.errors import SunriseError, near
from sunrise.settings import Config, flatten_config

L = TypeVar("L")
Bound = tuple[float, float]
POSITIVE: Bound = (1, math.inf)
NOT_NEGATIVE: Bound = (0, math.inf)
BOUNDS: dict[str, Bound] = {
    "ensemble_size": POSITIVE,
    "bootstrap_prob": (0, 1),
    "weight_temperature": NOT_NEGATIVE,
    "ucb_lambda": NOT_NEGATIVE,
    "buffer_size": POSITIVE,
    "learning_starts": NOT_NEGATIVE,
    "batch_size": POSITIVE,
    "gamma": (0, 1),
    "train_freq": POSITIVE,
    "reward_noise": NOT_NEGATIVE,
    "n_step": POSITIVE,
    "priority_exponent": (0, 1),
    "importance_start": (0, 1),
    "importance_horizon": NOT_NEGATIVE,
    "eval_epsilon": (0, 1),
    "epsilon": (0, 1),
    "sticky_actions": (0, 1),
    "camera": NOT_NEGATIVE,
    "render_size": POSITIVE,
    "action_repeat": POSITIVE,
    "frame_stack": POSITIVE,
    "anti_aliasing": NOT_NEGATIVE,
    "shadow_size": NOT_NEGATIVE,
    "alpha_learning_rate": NOT_NEGATIVE,
    "alpha_beta": (0, 0.999999),
    "encoder_tau": (0, 1),
    "filters": POSITIVE,
    "conv_layers": POSITIVE,
    "feature_dim": POSITIVE,
    "crop_size": POSITIVE,
    "translate_size": POSITIVE,
    "shift_pad": NOT_NEGATIVE,
    "contrastive_weight": NOT_NEGATIVE,
    "views": POSITIVE,
    "target_views": POSITIVE,
    "n_atoms": (2, math.inf),
    "noisy_std": NOT_NEGATIVE,
    "adam_eps": NOT_NEGATIVE,
    "target_update_interval": POSITIVE,
    "max_grad_norm": NOT_NEGATIVE,
    "action_noise": NOT_NEGATIVE,
    "target_policy_noise": NOT_NEGATIVE,
    "target_noise_clip": NOT_NEGATIVE,
    "policy_delay": POSITIVE,
    "n_critics": POSITIVE,
    "critic_subset": POSITIVE,
    "dropout": (0, 0.999999),
    "weight_decay": NOT_NEGATIVE,
    "discor_temperature": (1e-6, math.inf),
    "gradient_steps": (-1, math.inf),
    "learning_rate": NOT_NEGATIVE,
    "tau": (0, 1),
    "total_timesteps": POSITIVE,
    "seed": (0, 2**32 - 1),
    "num_envs": POSITIVE,
    "eval_freq": NOT_NEGATIVE,
    "eval_episodes": POSITIVE,
    "eval_max_steps": NOT_NEGATIVE,
    "eval_steps": NOT_NEGATIVE,
    "log_freq": POSITIVE,
    "save_freq": NOT_NEGATIVE,
    "keep": POSITIVE,
    "max_env_restarts": NOT_NEGATIVE,
    "env_timeout": NOT_NEGATIVE,
}


def kinds_of(group: Any) -> dict[str, Any]:
    """The kind of every setting of a group, and of the groups inside it, by its name."""
    kinds: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(type(group)).items():
        value = getattr(group, name)
        kinds |= kinds_of(value) if dataclasses.is_dataclass(value) else {name: kind}
    return kinds


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; a truth value is no number."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(entry, parts[0]) for entry in value)
    if kind is float:
        return type(value) in (int, float)
    return kind not in (int, str, bool, types.NoneType) or type(value) is kind


def check_kind(name: str, value: Any, kind: Any) -> None:
    """Refuse a value of the wrong kind, or a choice that there is not."""
    if fits(value, kind):
        return
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        known = ", ".join(map(str, choices))
        raise SunriseError(f"{name} is {value!r}, but must be one of {known}.{near(str(value), choices, count=1)}")
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        raise SunriseError(f"{name} is {value!r}, but must be {' or '.join(map(in_words, typing.get_args(kind)))}.")
    raise SunriseError(f"{name} is {value!r}, but must be of type {getattr(kind, '__name__', kind)}.")


def in_words(kind: Any) -> str:
    """One of several kinds, as a sentence names it."""
    if typing.get_origin(kind) is Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    words = {float: "a number", int: "a whole number", str: "a word", types.NoneType: "nothing"}
    return words.get(kind, str(kind))


def check(config: Config[L]) -> Config[L]:
    """`config` itself if every setting makes sense; otherwise an error that names the one that does not."""
    settings = flatten_config(config)
    for name, kind in kinds_of(config).items():
        check_kind(name, settings[name], kind)
    for name, value in settings.items():
        low, high = BOUNDS.get(name, (-math.inf, math.inf))
        if isinstance(value, int | float) and not (math.isfinite(value) and low <= value <= high):
            wanted = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
            raise SunriseError(f"{name} is {value}, but must be {wanted}.")
    if config.training.gradient_steps == 0:
        raise SunriseError("gradient_steps is 0, but must be at least 1, or -1 for as many as transitions.")
    if config.ensemble.bootstrap_prob == 0:
        raise SunriseError("bootstrap_prob is 0, but must be above 0: no member would see a transition.")
    if settings.get("v_min", -1) >= settings.get("v_max", 1):
        raise SunriseError(f"v_min is {settings['v_min']}, but must be below v_max, which is {settings['v_max']}.")
    training, rows = config.training, config.training.buffer_size // config.run.num_envs
    if rows <= training.n_step:
        raise SunriseError(
            f"buffer_size is {training.buffer_size}, but must be more than {training.n_step * config.run.num_envs}: "
            "an environment's share of it holds no window of n_step transitions and what follows."
        )
    widths = settings.get("net_arch", (1,))
    if not isinstance(widths, tuple) or not widths or not all(isinstance(w, int) and w > 0 for w in widths):
        raise SunriseError(f"net_arch is {widths}, but must be one or more layers of at least 1 unit.")
    for name in ("simba_actor", "simba_critic"):
        size = settings.get(name, (1, 1))
        if not isinstance(size, tuple) or len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
            raise SunriseError(f"{name} is {size}, but must be a width and a number of blocks of at least 1.")
    return config
