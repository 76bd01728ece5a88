"""What a file of agents or a run's folder says about itself, and what is believed of it. Nothing in it is executed."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.check import check_kind, declared_in
from sunrise.config.migrations import migrated
from sunrise.config.settings import plain
from sunrise.errors import DamagedError, SunriseError
from sunrise.store.checkpoint import Checkpoints
from sunrise.store.run_folder import CHANGEABLE, RunFolder
from sunrise.store.saved import Checkpoint
from sunrise.store.tensors import read_about, require_seal

FORMAT = "sunrise-model-1"
KINDS = {
    "algo": str,
    "policy": str,
    "settings": dict,
    "timesteps": int,
    "observation_space": dict,
    "action_space": dict,
}
"""What a file of agents says about itself, and of which kind."""
BEGUN = {"action_repeat": int, "versions": dict, "machine": dict, "command": list}
"""What a checkpoint says of the run's beginning besides its settings, and of which kind."""
log = logging.getLogger("sunrise")


def read_model(file: BinaryIO, name: object, algorithm: Algorithm | None = None) -> dict[str, Any]:
    """What an open file says about its agents; one that is not of this algorithm is refused."""
    require_seal(file, name)
    about = read_about(file, name)
    if about.get("format") != FORMAT or not all(isinstance(about.get(key), kind) for key, kind in KINDS.items()):
        raise DamagedError(f"{name} is not a model of ours.")
    if algorithm is not None and algorithm.name != about["algo"]:
        raise SunriseError(f"{name} is a model of {about['algo']}, not of {algorithm.name}.")
    about["settings"] = migrated(about["settings"])
    require_settings(algorithm or ALGORITHMS.get(about["algo"]), about["settings"], name)
    return about


def require_settings(algorithm: Algorithm | None, settings: Mapping[str, Any], where: object) -> None:
    """Refuse a name that is no setting: what else a constructor takes is not for a file to say.

    Without the algorithm, which may be somebody's own, nothing can be made of them: they are only looked at.
    """
    if algorithm is None:
        return
    known = dict(declared_in(algorithm.defaults))
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        raise SunriseError(f"{where} has a setting {unknown[0]!r}, which {algorithm.name} does not have.")
    for setting, value in settings.items():
        if (setting, value) != ("learning_rate", "schedule"):
            check_kind(setting, plain(value), known[setting].kind)


def read_run(path: Path) -> dict[str, Any]:
    """How a run was begun: `algo`, `policy`, `settings` and what else config.json has.

    What its checkpoints say rules, because they are checksummed, and a difference in config.json is refused. Only what
    `CHANGEABLE` names may be another, by a command. What cannot be read of config.json is made good from them.
    """
    folder = RunFolder(path)
    own: dict[str, Any] | None = None
    try:
        own, seal = folder.config()
        own = {**own, "settings": migrated(own["settings"])}
    except DamagedError as error:
        problem = error
    saved = Checkpoints(folder.checkpoints).read_newest(config_of, with_replay=False, aloud=False)
    if saved is None:
        if own is None:
            raise problem
        if seal == "broken":
            raise DamagedError(
                f"{path / 'config.json'} is damaged: it does not have its checksum. Begin the run again."
            )
        require_settings(ALGORITHMS.get(own["algo"]), own["settings"], path / "config.json")
        return checked(own, path)
    if own is None:
        log.warning("%s What the checkpoint says is used instead.", problem)
        return saved
    old = "versions" not in saved  # written before checkpoints knew how a run began
    changed = differences(saved, own, {"run_dir", *CHANGEABLE} if seal == "whole" or old else {"run_dir"})
    if changed:
        name, (ours, theirs) = next(iter(changed.items()))
        raise SunriseError(
            f"{path / 'config.json'} says {name} = {theirs}, but the run was begun with {ours}: put that back, or "
            "remove config.json and it is made again."
        )
    if seal != "whole" and not old:
        log.warning("%s is damaged: what the checkpoint says is used instead.", path / "config.json")
        return saved
    now = {name: own["settings"][name] for name in CHANGEABLE if name in own["settings"]}
    return checked({**own, **saved, "settings": {**saved["settings"], **now}}, path)


def checked(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """What is looked at before the settings are: numbers that count."""
    for name, number in (
        ("total_timesteps", config["settings"].get("total_timesteps")),
        ("action_repeat", config.get("action_repeat", 1)),
    ):
        if type(number) is not int or number < 1:
            raise DamagedError(f"{path} is not a run: its {name} is {number!r}.")
    return config


def config_of(found: Checkpoint) -> dict[str, Any]:
    """How a run was begun, by one of its checkpoints."""
    with found.open_agents() as file:
        about = read_model(file, found.path)
    begun = about.get("begun")
    if begun is None:
        begun = {}
    elif not isinstance(begun, dict) or not all(type(begun.get(key)) is kind for key, kind in BEGUN.items()):
        raise DamagedError("what it says of the run's beginning is not ours")
    settings = about["settings"]
    if about.get("learning_rate_schedule"):
        settings["learning_rate"] = "schedule"
    own: dict[str, Any] = {name: about[name] for name in ("algo", "imported_from", "policy") if name in about}
    return checked({**own, "settings": settings, **begun}, found.path)


def differences(saved: Mapping[str, Any], own: Mapping[str, Any], free: set[str]) -> dict[str, tuple[str, str]]:
    """What config.json says otherwise than a checkpoint; `free` may be another."""
    ours, theirs = ({"algo": c["algo"], "policy": c["policy"], **c["settings"]} for c in (saved, own))
    names = sorted((ours.keys() | theirs.keys()) - free)
    texts = ({name: json.dumps(side[name]) if name in side else "nothing" for name in names} for side in (ours, theirs))
    pairs = zip(*(text.items() for text in texts), strict=True)
    return {name: (a, b) for (name, a), (_, b) in pairs if a != b}


def settings_to_resume(path: Path, config: Mapping[str, Any], learning_rate: Any) -> dict[str, Any]:
    """The settings of a run in a folder, which may have been moved, with the schedule that a file cannot hold."""
    settings: dict[str, Any] = config["settings"] | {"run_dir": str(path)}
    if learning_rate is not None:
        settings["learning_rate"] = learning_rate
    elif isinstance(settings.get("learning_rate"), str):
        raise SunriseError(
            f"{path} was trained with a schedule of learning rates, which a file cannot hold: give it again, "
            "as `learning_rate` of `resume`."
        )
    return settings
