"""How vector environments begin their next episodes: Gymnasium's three modes, and what they leave behind."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from gymnasium.vector import AutoresetMode
from jaxtyping import Bool

from sunrise.envs.make import AnyVectorEnv
from sunrise.errors import SunriseError
from sunrise.replay.uniform import as_stored
from sunrise.types import Observation


class ResetMask(dict[str, Any]):
    """The options of a reset of some environments.

    Gymnasium's vector environments take the mask out of the very dict in which its wrappers look for it afterwards:
    taken out of this one, it is still there.
    """

    def __init__(self, begin: Bool[np.ndarray, "E"]) -> None:
        super().__init__(reset_mask=begin)

    def pop(self, key: str, *default: Any) -> Any:
        return self[key] if key in self else super().pop(key, *default)


def autoreset_mode(env: AnyVectorEnv) -> AutoresetMode:
    """How a vector environment begins its next episodes, as it says; Gymnasium's default where it says nothing."""
    said = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    try:
        return AutoresetMode(said)
    except ValueError:
        raise SunriseError(
            f"the vector environment says that its autoreset_mode is {said!r}, but must be one of "
            f"{', '.join(mode.value for mode in AutoresetMode)}."
        ) from None


def last_observations(next_obs: Observation, done: Bool[np.ndarray, "E"], info: Mapping[str, Any]) -> Observation:
    """The true last observation of each episode that is over, where environments have already begun the next."""
    if "final_obs" not in info:
        raise SunriseError(
            "the vector environment resets itself in the step that ends an episode, but does not give the last "
            'observation (info["final_obs"]), from which the value is bootstrapped: use another autoreset mode.'
        )
    last, finals = jax.tree.map(np.copy, next_obs), info["final_obs"]
    for e in np.flatnonzero(done):
        # Gymnasium has an array of observations there; a foreign one may have a batch, of which each leaf has rows.
        final = {name: rows[e] for name, rows in finals.items()} if isinstance(finals, Mapping) else finals[e]
        jax.tree.map(lambda rows, row, e=e: rows.__setitem__(e, row), last, as_stored(final))
    return last
