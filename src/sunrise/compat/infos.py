"""What environments say beside observations: Gymnasium's dict of arrays as Stable-Baselines3's list of dicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from sunrise.types import Episode, Observation, Seen

OTHERS = "sb3/infos"
"""Where `info` has the list itself, of an environment that speaks so."""
OWN = "sunrise/"
"""What begins so is said between our own parts."""
LAST = ("final_obs", "final_info")
"""What vector environments add for an episode's last step."""


def each(info: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Gymnasium's dict of arrays with masks -> a dict for each environment."""
    if OTHERS in info:
        return [dict(one) for one in info[OTHERS]]
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, values in info.items():
        if name.startswith(("_", OWN)) or name in LAST:
            continue
        if isinstance(values, Mapping):
            inside = each(values, count)
            for e in range(count):
                if inside[e]:
                    found[e][name] = inside[e]
            continue
        said = info.get(f"_{name}", np.ones(count, bool))
        for e in range(min(count, len(values))) if isinstance(values, np.ndarray | list | tuple) else ():
            if said[e]:
                found[e][name] = values[e]
    return found


def row(obs: Observation, e: int) -> Any:
    """The observation of one environment."""
    return jax.tree.map(lambda leaf: np.array(leaf[e]), obs)


def with_ends(seen: Seen, episodes: Sequence[Episode], seconds: float) -> list[dict[str, Any]]:
    """The dicts of a step, with what Stable-Baselines3 adds at the end of an episode."""
    count = len(seen.reward)
    infos, done = each(seen.info, count), seen.terminated | seen.truncated
    for e, info in enumerate(infos):
        info["TimeLimit.truncated"] = bool(seen.truncated[e] and not seen.terminated[e])
        if done[e]:
            info.setdefault("terminal_observation", row(seen.last_obs, e))
    for ended in episodes:
        episode = {"r": round(ended.total, 6), "l": ended.length, "t": round(seconds, 6)}
        infos[ended.env].setdefault("episode", episode)
    return infos
