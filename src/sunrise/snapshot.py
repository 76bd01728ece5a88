"""All of a run at one moment: taken from the loop and its parts, and put back into new ones.

What is stored: agents and optimisers, the sums of metrics, replay with masks and priorities, every generator, the
collector with the journal of each environment's episode, and the loop's counters. Evaluation has no state.
"""

import logging
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from sunrise.checkpoint import Snapshot
from sunrise.errors import DamagedError
from sunrise.evaluate import Evaluation
from sunrise.facts import check_facts, readable
from sunrise.manifest import Span
from sunrise.replay.rings import Ring
from sunrise.saved import Checkpoint
from sunrise.tensors import named_leaves
from sunrise.train import Trainer
from sunrise.types import Episode, Replay

log = logging.getLogger("sunrise")
LOOP = (
    "timesteps",
    "decisions",
    "updates",
    "episodes",
    "steps_since_round",
    "rows_since_round",
    "next_log",
    "next_eval",
    "next_save",
    "log_episodes",
    "last_return",
    "evaluated_at",
    "flat_updates",
)
"""The trainer's counters."""


def copied(tree: Any) -> dict[str, np.ndarray]:
    """Copies of a tree's leaves by name; a leaf on a device is fetched, because the next update takes its memory."""
    return {name: np.array(leaf, copy=True) for name, leaf in named_leaves(tree).items()}


def trees(trainer: Trainer) -> dict[str, Any]:
    """What is replaced as a whole."""
    return {"tally": trainer.tally, "obs": trainer.collector.obs}


def in_place(trainer: Trainer) -> dict[str, np.ndarray]:
    """The small arrays that are read and written in place."""
    collector = trainer.collector
    own = {"episode": collector.episode, "acting": collector.acting, "total": collector.total}
    own |= {"length": collector.length, "resetting": collector.resetting, "chosen": trainer.chosen}
    return own | {f"replay.{name}": array for name, array in trainer.replay.counters().items()}


def generators(trainer: Trainer) -> dict[str, np.random.Generator]:
    """Every NumPy generator of a run."""
    return {
        "masks": trainer.mask_rng,
        "warmup": trainer.warmup_rng,
        "replay": trainer.replay.rng,
        "members": trainer.collector.rng,
        "reward_noise": trainer.collector.noise_rng,
    }


def take(trainer: Trainer, about: Mapping[str, Any], since: Mapping[str, Span], with_replay: bool = True) -> Snapshot:
    """The run as it is now, with the rows of replay that are newer than `since`."""
    rings = trainer.replay.rings() if with_replay else {}
    # One row more than is new: the last row of a broken episode is marked as such when the next one comes.
    starts = {name: max(since[name].stop - 1, ring.oldest, 0) if name in since else 0 for name, ring in rings.items()}
    collector = trainer.collector
    arrays = copied(in_place(trainer)) | copied(trees(trainer))
    for e, journal in enumerate(collector.journal):
        arrays |= {f"journal.{e}": journal.actions.copy(), f"legs.{e}": journal.lengths}
    last = trainer.last_evaluation
    return Snapshot(
        timesteps=trainer.timesteps,
        agents=copied(trainer.ensemble),
        about=about,
        arrays=arrays,
        facts={
            "loop": {name: getattr(trainer, name) for name in LOOP},
            "generators": {name: rng.bit_generator.state for name, rng in generators(trainer).items()},
            "finished": list(trainer.finished),  # it is appended to while this is written
            "last_evaluation": None if last is None else last._asdict(),
            "restarts": collector.restarts.total,
            "failures": list(collector.restarts.recent),
            "with_replay": with_replay,
        },
        rows={f"{n}/{key}": rows for n, ring in rings.items() for key, rows in ring.since(starts[n]).items()},
        spans={name: Span(starts[name], ring.written) for name, ring in rings.items()},
        oldest={name: ring.oldest for name, ring in rings.items()},
    )


def put(trainer: Trainer, found: Checkpoint, facts: Mapping[str, Any]) -> None:
    """Make a new trainer what it was at a checkpoint; DamagedError where it makes no sense.

    An environment that cannot be brought back to where it was begins a new episode, and that is said.
    """
    check_facts(facts, LOOP, found.manifest.timesteps)
    with readable():
        arrays = found.arrays()
        device = next(iter(trainer.tally.updates.devices()))
        trainer.ensemble = jax.device_put(found.load_agents(trainer.ensemble), device)
        back = fitted(trees(trainer), arrays)
        trainer.tally = jax.device_put(jax.tree.map(jax.numpy.array, back["tally"]), device)
        for name, array in in_place(trainer).items():
            array[...] = wanted(arrays, name, array)
        for name, rng in generators(trainer).items():
            rng.bit_generator.state = facts["generators"][name]
        for name in LOOP:
            setattr(trainer, name, facts["loop"][name])
        trainer.finished = [Episode(*episode) for episode in facts["finished"]]
        last = facts["last_evaluation"]
        trainer.last_evaluation = None if last is None else Evaluation(**last)
        put_replay(trainer.replay, found)
        trainer.start_clock()
        collector = trainer.collector
        collector.timesteps = trainer.timesteps
        collector.restarts.total, collector.restarts.recent = facts["restarts"], list(facts["failures"])
        for e, journal in enumerate(collector.journal):
            journal.put(arrays[f"journal.{e}"], arrays[f"legs.{e}"])
    for e, why in collector.take_up(back["obs"]).items():
        log.warning(
            "Environment %d did not come back to where it was: %s. "
            "It goes on with a new episode, so this run is not bit for bit the one that was never stopped.",
            *(e, why),
        )


def put_replay(replay: Replay, found: Checkpoint) -> None:
    """Write the rows of every segment back; every row that is needed must be there."""
    rings = replay.rings()  # with the counters already back
    upto = {name: ring.oldest for name, ring in rings.items()}
    for segment in found.manifest.segments:
        if segment.spans.keys() != rings.keys():
            raise DamagedError(f"{segment.file} is of another replay buffer")
        rows = found.segment(segment)
        for name, ring in rings.items():
            start, stop = segment.spans[name]
            own = {key: rows.get(f"{name}/{key}") for key in ring.arrays}
            put_rows(ring, start, stop, own, segment.file)
            if start <= upto[name]:
                upto[name] = max(upto[name], stop)
    if any(upto[name] != ring.written for name, ring in rings.items()):
        raise DamagedError("segments of replay are missing")
    replay.restored()


def put_rows(ring: Ring, start: int, stop: int, rows: Mapping[str, np.ndarray | None], file: str) -> None:
    """Write a segment's rows of one ring, after a look at their shapes."""
    checked = {}
    for key, array in ring.arrays.items():
        own = rows[key]
        if own is None or own.shape != (stop - start, *array.shape[1:]) or own.dtype != array.dtype:
            raise DamagedError(f"{file} does not fit the replay buffer")
        checked[key] = own
    ring.put(start, checked)


def wanted(arrays: Mapping[str, np.ndarray], name: str, like: Any) -> np.ndarray:
    """An array of a checkpoint, of the shape and type it must have."""
    found = arrays.get(name)
    if found is None or found.shape != like.shape or found.dtype != like.dtype:
        raise DamagedError(f"{name} of the checkpoint does not fit this run")
    return found


def fitted(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A tree like another, with a checkpoint's arrays for leaves."""
    leaves = [wanted(arrays, name, leaf) for name, leaf in named_leaves(like).items()]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)
