"""All of a run at one moment, between memory and a checkpoint: the names that its state has on disk.

What is stored: agents and optimisers, the sums of metrics, replay with masks and priorities, every generator, the
collector with the journal of each environment's episode, and the loop's counters.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from sunrise.errors import DamagedError
from sunrise.rings import ReplayState, Rows
from sunrise.run.evaluate import Evaluation
from sunrise.run.journal import JournalState
from sunrise.run.restarts import RestartsState
from sunrise.run.state import CollectorState, Counters, LiveState, LoopState, MeterState, RunState
from sunrise.store.checkpoint import Snapshot
from sunrise.store.facts import check_facts, readable
from sunrise.store.manifest import Span
from sunrise.store.saved import Checkpoint
from sunrise.trees import named_leaves
from sunrise.types import Episode


def copied(tree: Any) -> dict[str, np.ndarray]:
    """Copies of a tree's leaves by name; a leaf on a device is fetched, because the next update takes its memory."""
    return {name: np.array(leaf, copy=True) for name, leaf in named_leaves(tree).items()}


def arrays_of(state: RunState) -> dict[str, Any]:
    """The trees and arrays beside the agents, by their names on disk; the journals, whose lengths change, apart."""
    own = state.collector
    named = {"tally": state.live.tally, "obs": own.obs, "chosen": state.meter.chosen}
    named |= {"episode": own.episode, "acting": own.acting, "total": own.total, "length": own.length}
    named |= {"resetting": own.resetting, "rewards": state.rewards}
    return named | {f"replay.{name}": array for name, array in state.replay.counters.items()}


def take(state: RunState, about: Mapping[str, Any], since: Mapping[str, Span], with_replay: bool = True) -> Snapshot:
    """Copies of a run's state, with the rows of replay that are newer than `since`."""
    rings = state.replay.rings if with_replay else {}
    # One row more than is new: the last row of a broken episode is marked as such when the next one comes.
    starts = {name: max(since[name].stop - 1, ring.oldest, 0) if name in since else 0 for name, ring in rings.items()}
    loop, collector = state.loop, state.collector
    arrays = copied(arrays_of(state))
    for e, journal in enumerate(collector.journal):
        arrays |= {f"journal.{e}": journal.actions.copy(), f"legs.{e}": journal.lengths}
    last = loop.last_evaluation
    return Snapshot(
        timesteps=loop.counters.timesteps,
        agents=copied(state.live.ensemble),
        about=about,
        arrays=arrays,
        facts={
            "loop": {**loop.counters._asdict(), "flat_updates": state.meter.flat_updates},
            "generators": {
                "masks": loop.mask_rng,
                "warmup": loop.warmup_rng,
                "replay": state.replay.rng,
                "members": collector.rng,
                "reward_noise": collector.noise_rng,
            },
            "finished": list(state.meter.finished),  # it is appended to while this is written
            "last_evaluation": None if last is None else last._asdict(),
            "restarts": collector.restarts.total,
            "failures": list(collector.restarts.recent),
            "with_replay": with_replay,
        },
        rows={f"{n}/{key}": rows for n, ring in rings.items() for key, rows in ring.since(starts[n]).items()},
        spans={name: Span(starts[name], ring.written) for name, ring in rings.items()},
        oldest={name: ring.oldest for name, ring in rings.items()},
    )


def read(found: Checkpoint, facts: Mapping[str, Any], like: RunState) -> RunState:
    """The state that a checkpoint holds, without the rows of replay; DamagedError where it does not fit `like`."""
    check_facts(facts, (*Counters._fields, "flat_updates"), found.manifest.timesteps)
    with readable():
        arrays, generators, last = found.arrays(), facts["generators"], facts["last_evaluation"]
        stored = fitted(arrays_of(like), arrays)
        counters = {name: stored[f"replay.{name}"] for name in like.replay.counters}
        return RunState(
            LiveState(found.load_agents(like.live.ensemble), stored["tally"]),
            LoopState(
                Counters(*(facts["loop"][name] for name in Counters._fields)),
                last_evaluation=None if last is None else Evaluation(**last),
                mask_rng=generators["masks"],
                warmup_rng=generators["warmup"],
            ),
            MeterState(facts["loop"]["flat_updates"], stored["chosen"], [Episode(*each) for each in facts["finished"]]),
            CollectorState(
                **{name: stored[name] for name in ("episode", "acting", "total", "length", "resetting", "obs")},
                journal=[
                    JournalState(arrays[f"journal.{e}"], arrays[f"legs.{e}"])
                    for e in range(len(like.collector.journal))
                ],
                restarts=RestartsState(facts["restarts"], list(facts["failures"])),
                rng=generators["members"],
                noise_rng=generators["reward_noise"],
            ),
            ReplayState({}, counters, generators["replay"]),
            stored["rewards"],
        )


def segments(found: Checkpoint) -> Iterator[Rows]:
    """The rows of a checkpoint's replay buffer, a segment at a time."""
    for segment in found.manifest.segments:
        yield Rows(segment.file, segment.spans, found.segment(segment))


def fitted(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A tree like another, with a checkpoint's arrays for leaves: of the same shapes and types."""
    leaves = []
    for name, leaf in named_leaves(like).items():
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise DamagedError(f"{name} of the checkpoint does not fit this run")
        leaves.append(found)
    return jax.tree.unflatten(jax.tree.structure(like), leaves)
