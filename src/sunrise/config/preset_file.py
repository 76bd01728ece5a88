"""Settings in a file: a run's config.json, or a preset file in YAML or JSON.

A preset file is a mapping of settings, or this, where `algo` and `env_id` may be left out:

    algo: sac
    env_id: Hopper-v5
    settings: {learning_rate: 1e-3, net_arch: [256, 256]}

One that `sunrise tune` wrote also says on which seeds the settings were chosen (`tuned_on`) and by which scores
(`chosen_by`); both are then in the config.json of every run that is made from it.

Nothing in a file is executed or constructed: it is words, numbers, truth values, lists and mappings (`marked.py`).
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sunrise.config.algorithms import Algorithm, algorithm
from sunrise.config.check import check
from sunrise.config.ensemble import resolve_temperature, resolve_weighting
from sunrise.config.groups import Config, env_options, from_pixels
from sunrise.config.marked import Marked, read_yaml
from sunrise.config.migrations import migrated
from sunrise.config.settings import flatten_config, plain, unknown_setting, with_settings
from sunrise.config.tracking import TRACKING
from sunrise.errors import SunriseError, near
from sunrise.files import documents
from sunrise.files.folder import Folder, open_file

KINDS: dict[str, type] = {"algo": str, "env_id": str, "settings": dict, "tuned_on": list, "chosen_by": dict}
"""What a preset file has where it is more than a mapping of settings."""
NAME = re.compile(r'"(\w+)"\s*(?::|$)')
"""A name in JSON, whose colon may be on the next line."""
NO_KEYWORDS = ("env_id", "wrapper", "total_timesteps", "run_dir")
"""Settings of a run that an agent in Python is not given: where, in what and how long it learns, and its folder."""
NOT_FOR_FILES = ("run_dir", *TRACKING)
"""Settings that the user says, and no file of somebody else's: where a run is written to and shown."""


class PresetFile(NamedTuple):
    """What a file says; its settings are held against an algorithm by `settings_of`."""

    path: Path
    algo: str
    """The algorithm it is for; empty where it does not say."""
    env_id: str
    """The environment it is for; empty where it does not say."""
    settings: dict[str, Any]
    lines: dict[str, int]
    """The line of each setting, where it is known."""
    is_run: bool
    """Whether it is a run's config.json."""
    imported_from: Any = None
    """Where a run's algorithm is from, if it is not ours."""
    labels: Mapping[str, Any] = MappingProxyType({})
    """How the settings were chosen: what config.json of a run says that is made from them."""

    def where(self, name: str) -> str:
        """Where a setting stands, to begin a sentence with."""
        return f"{self.path}, line {self.lines[name]}: " if name in self.lines else f"{self.path}: "


def read_preset_file(path: Path) -> PresetFile:
    """Read a preset file, a run's config.json, or that of a run's folder."""
    path = path / "config.json" if path.is_dir() else path
    found, lines = _read_json(path) if path.suffix == ".json" else _read_yaml(path)
    is_run = isinstance(found.get("settings"), dict) and "policy" in found
    if not is_run and not found.keys() & KINDS:
        found = {"settings": found}
    for name, value in found.items():
        if name not in KINDS and not is_run:
            raise SunriseError(
                f"{path} has {name!r} beside algo, env_id and settings.{near(name, KINDS, count=1, alike=0.7)} "
                "Settings stand under `settings`."
            )
        if name in KINDS and not isinstance(value, KINDS[name]):
            raise SunriseError(f"{path}: {name} is {value!r}, but must be of type {KINDS[name].__name__}.")
    settings = migrated(found.get("settings", {}))
    env_id = found.get("env_id", "") or (str(settings.get("env_id", "")) if is_run else "")
    labels: dict[str, Any] = {name: found[name] for name in ("tuned_on", "chosen_by") if name in found}
    if not all(type(seed) is int for seed in labels.get("tuned_on", [])):
        raise SunriseError(f"{path}: tuned_on must be a list of seeds.")
    own = found.get("imported_from")
    return PresetFile(path, found.get("algo", ""), env_id, settings, lines, is_run, own, labels)


def _read_json(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """A JSON file, and the line of every name in it; one that carries a checksum must have it."""
    try:
        with open_file(path, documents.SMALL) as file:
            text = file.read(documents.SMALL).decode()
        found, seal = documents.unsealed(documents.decode_mapping(text))
    except ValueError as error:
        raise SunriseError(f"{path} cannot be read as JSON: {error}.") from None
    if seal == "broken":
        raise SunriseError(f"{path} is damaged: it does not have its checksum.")
    return found, {name: number for number, line in enumerate(text.split("\n"), 1) for name in NAME.findall(line)}


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """A YAML file, and the line of every name in it."""
    lines: dict[str, int] = {}

    def bare(marked: Marked) -> Any:
        if isinstance(marked.value, dict):
            lines.update({name: entry.line for name, entry in marked.value.items()})
            return {name: bare(entry) for name, entry in marked.value.items()}
        return [bare(entry) for entry in marked.value] if isinstance(marked.value, list) else marked.value

    found = bare(read_yaml(path))
    if not isinstance(found, dict):
        raise SunriseError(f"{path} must be a mapping of settings, such as `learning_rate: 1e-3`.")
    return found, lines


def settings_of(file: PresetFile, known: Algorithm) -> dict[str, Any]:
    """The checked settings of a file for an algorithm; a wrong one is refused with where it stands.

    Of a run, what was decided for it is open again (`auto`), so that a flag has its consequences; what had no effect in
    its environment is left out, and so are its folder and who followed it.
    """
    if file.algo not in ("", known.name, known.imported_from):
        raise SunriseError(
            f"{file.path} is {'a run' if file.is_run else 'a preset'} of {file.algo}, not of {known.name}."
        )
    names = flatten_config(known.defaults)
    for name, value in file.settings.items():
        if name not in names:
            raise SunriseError(unknown_setting(name, names, file.where(name)))
        if name in NOT_FOR_FILES and not file.is_run:
            raise SunriseError(f"{file.where(name)}{name} is not for a file to say: give it yourself.")
        if (name, value) == ("learning_rate", "schedule"):
            raise SunriseError(
                f"{file.path} is of a run with a schedule of learning rates, which a file cannot hold: copy the "
                "settings you want to a file of your own."
            )
    try:
        config = check(with_settings(known.defaults, file.settings))
    except SunriseError as error:  # it begins with the name of the setting
        raise SunriseError(f"{file.where(str(error).partition(' ')[0])}{error}") from None
    settings = {name: value for name, value in flatten_config(config).items() if name in file.settings}
    if not file.is_run:
        return settings
    without_effect = () if env_options(config.env, file.env_id) else tuple(flatten_config(config.env))
    left = {name: value for name, value in settings.items() if name not in (*NOT_FOR_FILES, *without_effect)}
    return left | undecided(config)


def undecided(config: Config[Any]) -> dict[str, Any]:
    """The settings of a run that are what `auto` makes of the others, as they were before that was decided."""
    ensemble, found = config.ensemble, dict[str, Any]()
    if ensemble.weighting == resolve_weighting(dataclasses.replace(ensemble, weighting="auto")):
        found["weighting"] = "auto"
    auto = dataclasses.replace(ensemble, weight_temperature="auto")
    if ensemble.weight_temperature == resolve_temperature(auto, from_pixels(config)):
        found["weight_temperature"] = "auto"
    if config.training.prioritised and config.training.importance_horizon == config.run.total_timesteps:
        found["importance_horizon"] = 0
    return found


def settings_from(path: str | Path, algo: str | Algorithm | None = None) -> dict[str, Any]:
    """The settings of a file as keywords of an agent: `SAC("MlpPolicy", env, **sunrise.settings_from("best.yaml"))`.

    `algo` is the algorithm they are for; it is only needed where the file does not say, or is of one of your own.
    """
    file = read_preset_file(Path(path))
    if not (algo or file.algo):
        raise SunriseError(f"{path} does not say for which algorithm it is: give `algo`, such as 'sac'.")
    known = algo if isinstance(algo, Algorithm) else algorithm(algo or file.algo)
    return {name: value for name, value in settings_of(file, known).items() if name not in NO_KEYWORDS}


def write_preset_file(
    path: Path,
    algo: str,
    env_id: str,
    settings: Mapping[str, Any],
    tuned_on: Sequence[int] = (),
    chosen_by: Mapping[str, Any] | None = None,
) -> None:
    """Write a preset file in YAML, which `train --config` reads: whole, or not at all.

    `tuned_on` are the seeds on which the settings were chosen, `chosen_by` are the scores there.
    """
    lines = [f"algo: {json.dumps(algo)}", f"env_id: {json.dumps(env_id)}", f"settings:{'' if settings else ' {}'}"]
    # A value in JSON is the same value in YAML, and a word in quotation marks stays a word.
    lines += [f"  {name}: {json.dumps(plain(value), allow_nan=False)}" for name, value in settings.items()]
    lines += [f"tuned_on: {json.dumps(list(tuned_on))}"] if tuned_on else []
    chosen = [f"  {name}: {json.dumps(value, allow_nan=False)}" for name, value in (chosen_by or {}).items()]
    lines += ["chosen_by:", *chosen] if chosen else []
    path.parent.mkdir(parents=True, exist_ok=True)
    Folder(path.parent).write(path.name, ("\n".join(lines) + "\n").encode())
