"""The arrays of an agent by name, to be read and set; and its seed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sunrise.compat import archive
from sunrise.config.check import check
from sunrise.config.settings import with_settings
from sunrise.errors import SunriseError
from sunrise.randomness import generator, root_key
from sunrise.store.tensors import read_arrays, require_seal
from sunrise.trees import named_leaves

POLICY = "policy"


def read(model: Any) -> dict[str, dict[str, np.ndarray]]:
    """Copies of all arrays: networks, targets and optimisers of all members, the first axis is the member."""
    return {POLICY: {name: np.array(leaf) for name, leaf in named_leaves(model.ensemble).items()}}


def write(model: Any, given: Any, exact: bool) -> None:
    """Take arrays from a dict like that of `read`, or from a saved model; a wrong name or shape is refused."""
    own = named_leaves(model.ensemble)
    if isinstance(given, str | Path):
        path = archive.found(given)
        with archive.opened(path) as file:
            given = {POLICY: read_arrays(file, path, sum(leaf.nbytes for leaf in own.values()))}
            require_seal(file, path)
    if not isinstance(given, Mapping) or set(given) - {POLICY} or (exact and POLICY not in given):
        raise SunriseError('parameters must be a dict like {"policy": {name: array}}, as get_parameters gives them.')
    new = dict(given.get(POLICY, {}))
    odd = new.keys() ^ own.keys() if exact else new.keys() - own.keys()
    if odd:
        raise SunriseError(f"parameters do not fit: {sorted(odd)[0]!r} is on one side only.")
    leaves = []
    for name, leaf in own.items():
        value = np.asarray(new.get(name, leaf))
        if value.shape != leaf.shape:
            raise SunriseError(f"parameters do not fit: {name} is {value.shape}, {leaf.shape} was expected.")
        leaves.append(jax.numpy.array(value, leaf.dtype))
    ensemble = jax.tree.unflatten(jax.tree.structure(model.ensemble), leaves)
    model.live.restore(model.live.state()._replace(ensemble=ensemble))


def reseed(model: Any, seed: int) -> None:
    """Give every generator of a model another seed."""
    if model.folder is not None:
        raise SunriseError(
            "a run that is kept in a folder has one seed, or it could not be resumed: give it as `seed`."
        )
    model.config = check(with_settings(model.config, {"seed": seed}))
    trainer = model.trainer
    if trainer is None:
        return
    trainer.config = model.config
    trainer.explore_key, trainer.update_key = root_key(seed, "explore"), root_key(seed, "update")
    trainer.mask_rng, trainer.warmup_rng = generator(seed, "masks"), generator(seed, "warmup")
    trainer.replay.rng, collector = generator(seed, "replay"), trainer.collector
    collector.seed, collector.rng = seed, generator(seed, "members")
    collector.noise_rng = generator(seed, "reward noise")
