"""The one way from what the user gave to a checked `Config`.

Defaults of the algorithm < what it sets for this environment < a preset < a file < keywords or flags.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from sunrise.config.algorithms import Algorithm
from sunrise.config.check import check
from sunrise.config.ensemble import resolve_temperature, resolve_weighting
from sunrise.config.groups import OPTIONS_FOR, Config, env_options, from_pixels
from sunrise.config.presets import Settings
from sunrise.config.settings import flatten_config, with_settings
from sunrise.errors import SunriseError, near

L = TypeVar("L")


def resolve(
    algorithm: Algorithm, settings: Mapping[str, Any], env: Any = None, preset: str | None = None
) -> Config[Any]:
    """Every setting, checked, with nothing left that is `auto`.

    `settings` are the user's own by name, `env` is an id or an environment, or None where it is not known yet.
    """
    start = defaults_for(algorithm, env, preset)
    config = check(with_settings(start, settings))
    if env is not None and not env_options(config.env, env):
        refuse_without_effect(start, config)
    return without_auto(config)


def defaults_for(algorithm: Algorithm, env: Any = None, preset: str | None = None) -> Config[Any]:
    """The settings before the user's own: the algorithm's, the environment's, and those of the preset asked for.

    An environment that is made already has its options, and the settings say them.
    """
    spec = None if isinstance(env, str) else getattr(env, "spec", None)
    env_id = env if isinstance(env, str) else spec.id if spec is not None else ""
    changes = {**algorithm.for_env(env_id), **preset_settings(algorithm, preset, env_id)}
    config = with_settings(algorithm.defaults, changes)
    if spec is not None and env_id.startswith(OPTIONS_FOR.get(type(config.env), "/")):
        from sunrise.envs.make import attribute

        own = flatten_config(type(config.env)())
        made_with = {name: value for name, value in spec.kwargs.items() if name in own}
        drawn = attribute(env, "renderer_name")
        config = with_settings(config, own | made_with | ({"renderer": drawn} if drawn else {}))
    return config


def preset_settings(algorithm: Algorithm, preset: str | None, env_id: str = "") -> Settings:
    """The settings of a preset by its name; none, or `ours`, is no change."""
    presets = algorithm.presets
    if preset in (None, "ours"):
        return {}
    if preset == "authors" and preset not in presets:
        raise SunriseError(f"the authors published no code for {algorithm.name}: there is no preset 'authors' for it.")
    if preset not in presets:
        known = ("ours", *presets)
        raise SunriseError(
            f"there is no preset {preset!r} for {algorithm.name}, only {', '.join(known)}."
            f"{near(preset, known, count=1)}"
        )
    return {**presets[preset].settings, **presets[preset].for_env(env_id)}


def refuse_without_effect(start: Config[Any], asked: Config[Any]) -> None:
    """Options of environments that we make are refused where the environment is another or is made already."""
    before = flatten_config(start.env)
    for name, value in flatten_config(asked.env).items():
        if value != before[name]:
            prefix = OPTIONS_FOR.get(type(asked.env), "")
            raise SunriseError(
                f"{name} is {value!r}, but that is an option of {prefix}... environments that are made by their id: "
                "it has no effect on this one."
            )


def without_auto(config: Config[L]) -> Config[L]:
    """`config` with what is `auto` decided, once and for all."""
    decided: dict[str, Any] = {
        "weighting": resolve_weighting(config.ensemble),
        "weight_temperature": resolve_temperature(config.ensemble, from_pixels(config)),
    }
    options = env_options(config.env, config.run.env_id)
    if options.get("pixels"):
        from sunrise.envs.renderers import resolve as resolve_renderer

        decided["renderer"] = resolve_renderer(options["renderer"])
    return with_settings(config, decided)


def as_begun(config: Config[L]) -> Config[L]:
    """`config` with what is decided when a run begins and stays when it is extended."""
    if not config.training.prioritised:
        return config
    horizon = config.training.importance_horizon or config.run.total_timesteps
    return with_settings(config, {"importance_horizon": horizon})
