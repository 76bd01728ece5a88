"""Writes `agents/classes.pyi`: the keywords of each agent as types, so that editors and type checkers know them.

`python -m sunrise.config.typed` prints it; `make keywords` puts it in its place, and a test notices when it is old.
"""

from sunrise.config.algorithms import ALGORITHMS
from sunrise.config.fields import Field, fields, written

HEAD = """# The agents and their keywords as types, made by `make keywords` from the settings; do not edit.

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, Unpack

from sunrise.agents.agent import Agent
from sunrise.agents.environments import EnvArgument
from sunrise.envs.make import AnyEnv, Maker

class OthersKeywords(TypedDict, total=False):
    # Stable-Baselines3's that are no settings: see sunrise/compat/arguments.py
    stats_window_size: int
    monitor_wrapper: bool
    replay_buffer_class: Any
    replay_buffer_kwargs: Mapping[str, Any] | None
    optimize_memory_usage: bool
    n_steps: int
    use_sde: bool
    sde_sample_freq: int
    use_sde_at_warmup: bool
    _init_setup_model: bool

"""
CLASS = """
class {cls}(Agent, algo="{name}"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[{cls}Keywords],
    ) -> None: ...
"""
NAMES = {
    "sac": "SAC",
    "td3": "TD3",
    "discor": "DisCor",
    "rainbow": "Rainbow",
    "dqn": "DQN",
    "rad": "RAD",
    "drq": "DrQ",
    "curl": "CURL",
    "random": "Random",
}
LONGEST = 120
"""Characters of a line."""
NOT_KEYWORDS = ("env_id", "total_timesteps")


def kind_of(field: Field) -> str:
    """The type of a keyword: a learning rate may be a schedule, and a sequence of sizes any sequence."""
    text = written(field.kind).replace("NoneType", "None")
    if field.name == "learning_rate":
        return "float | Callable[[float], float]"
    if field.name == "train_freq":
        return "int | tuple[int, str]"
    if field.name == "action_noise":
        return "Any"
    if field.name == "seed":
        return "int | None"
    if field.name == "wrapper":
        return "str | tuple[str, ...] | list[str]"
    return f"{text} | list[int]" if text.startswith("tuple[int") else text


def entry(name: str, kind: str) -> str:
    """One keyword; what is too long for a line is in brackets, as the formatter puts it."""
    line = f"    {name}: {kind}"
    return line if len(line) <= LONGEST else f"    {name}: (\n        {kind}\n    )"


def keywords(name: str) -> str:
    """One algorithm's keywords as a TypedDict."""
    settings = [f for f in fields(ALGORITHMS[name].defaults) if f.name not in NOT_KEYWORDS]
    lines = [
        f"class {NAMES[name]}Keywords(OthersKeywords, total=False):",
        *(entry(f.name, kind_of(f)) for f in settings),
    ]
    return "\n".join(lines) + "\n"


def module() -> str:
    """All of the file."""
    parts = [keywords(name) + CLASS.format(cls=cls, name=name) for name, cls in NAMES.items()]
    return HEAD + "\n".join(parts) + "\nAGENTS: dict[str, type[Agent]]\n"


if __name__ == "__main__":
    print(module(), end="")
