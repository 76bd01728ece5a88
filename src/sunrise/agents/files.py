"""An agent's file: what it says about itself, and what is believed of it. Nothing in it is executed."""

from pathlib import Path
from typing import Any

from sunrise.errors import SunriseError
from sunrise.record import RunFolder
from sunrise.tensors import read_about

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


def read_model(file: Path, algo: str) -> dict[str, Any]:
    """What a file says about its agents; one that is not of this algorithm is refused."""
    about = read_about(file)
    if about.get("format") != FORMAT or not all(isinstance(about.get(name), kind) for name, kind in KINDS.items()):
        raise SunriseError(f"{file} is not a model of ours.")
    if about["algo"] != algo:
        raise SunriseError(f"{file} is a model of {about['algo']}, not of {algo}.")
    return about


def read_run(folder: Path, algo: str, learning_rate: Any) -> tuple[str, dict[str, Any]]:
    """The policy and the settings that a run was begun with."""
    config = RunFolder(folder).config()
    if config["algo"] != algo:
        raise SunriseError(f"{folder} is a run of {config['algo']}, not of {algo}.")
    settings = config["settings"] | {"run_dir": str(folder)}
    if learning_rate is not None:
        settings["learning_rate"] = learning_rate
    elif isinstance(settings.get("learning_rate"), str):
        raise SunriseError(
            f"{folder} was trained with a schedule of learning rates, which a file cannot hold: give it again, "
            "as `learning_rate` of `resume`."
        )
    return str(config["policy"]), settings
