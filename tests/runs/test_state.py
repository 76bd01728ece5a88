"""Whatever a part of a run carries from step to step is in the state it offers, or is said here not to belong there."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sunrise import SAC, Rainbow
from sunrise.agents import Agent
from sunrise.files.folder import Folder
from sunrise.replay.sequence import SequenceReplay
from sunrise.replay.uniform import UniformReplay
from sunrise.run.collect import Collector
from sunrise.run.evaluate import Evaluator
from sunrise.run.journal import Journal
from sunrise.run.live import LiveEnsemble
from sunrise.run.loop import Trainer
from sunrise.run.meter import Meter
from sunrise.run.restarts import Restarts
from sunrise.run.reward_scale import RewardScale
from sunrise.store.logs import Logs

PART, SETTING = "a part with a state of its own", "made from the settings"
MADE = "made from the settings and the environment's spaces"
PROCESS = "of the process that trains, not of the run"
NOT_STATE: dict[type, dict[str, str]] = {
    Trainer: {
        **dict.fromkeys(("live", "collector", "replay", "meter", "reward_scale"), PART),
        **dict.fromkeys(("config", "learning_rate", "random_actions", "explore_key", "update_key"), SETTING),
        **dict.fromkeys(("action_repeat", "action_space"), MADE),
        **dict.fromkeys(("events", "evaluator"), PROCESS),
        "between_steps": "true whenever a state may be taken",
        "_pending": "looked at before a state is taken",
    },
    Meter: {
        "live": PART,
        **dict.fromkeys(("looks_at_disagreement", "candidates"), MADE),
        **dict.fromkeys(("_start", "_clock"), PROCESS),
    },
    LiveEnsemble: {
        **dict.fromkeys(("functions", "placement"), MADE),
        "numbers": "made from the settings; a schedule sets the learning rate again before each update",
    },
    Collector: {
        **dict.fromkeys(("seed", "members", "gamma", "truncation", "reward_noise"), SETTING),
        **dict.fromkeys(("env", "count", "mode", "seeds_each", "ours", "reseeds"), MADE),
        **dict.fromkeys(("stopping", "since"), PROCESS),
        "said": "what each process says once",
        "timesteps": "the loop's, which tells it at each step",
    },
    Journal: dict.fromkeys(("room", "count", "starts"), "offered as `actions` and `lengths`"),
    Restarts: {"limit": SETTING},
    RewardScale: {"gamma": SETTING},
    UniformReplay: {
        **dict.fromkeys(("capacity", "nbytes"), SETTING),
        **dict.fromkeys(("batch", "mask", "written"), "in the rings and the counters: see the test of memory"),
    },
    SequenceReplay: {
        **dict.fromkeys(("nbytes", "prioritised", "gamma", "n_step", "exponent"), SETTING),
        **dict.fromkeys(("importance", "importance_from", "importance_until"), SETTING),
        **dict.fromkeys(
            ("store", "action", "reward", "goes_on", "ended", "mask", "tail", "ready", "head", "tree"),
            "in the rings and the counters: see the test of memory",
        ),
    },
    Logs: {"folder": MADE, **dict.fromkeys(("_sums", "_sizes"), "offered by name, as sizes and checksums")},
    Evaluator: {
        **dict.fromkeys(("make", "exploit", "space", "run", "epsilon"), MADE),
        **dict.fromkeys(("envs", "since"), PROCESS),
    },
}
"""By part: what is not in its state, and why."""
MADE_ANEW = ("nodes",)
"""Arrays of a replay buffer of which its state has a part: a sum tree is a function of its leaves."""
TINY: dict[str, Any] = {"ensemble_size": 2, "batch_size": 8, "buffer_size": 90, "learning_starts": 50, "seed": 3}
KINDS: dict[str, tuple[type[Agent], str, dict[str, Any]]] = {
    "uniform": (SAC, "Pendulum-v1", TINY | {"net_arch": (8, 8), "normalise_rewards": True}),
    "prioritised": (Rainbow, "CartPole-v1", TINY | {"net_arch": (8,), "n_atoms": 5, "n_step": 3}),
}


@pytest.fixture(scope="module", params=KINDS)
def trainer(request: pytest.FixtureRequest) -> Trainer:
    cls, env, settings = KINDS[request.param]
    model = cls("MlpPolicy", env, **settings, eval_freq=0).learn(24, progress_bar=False)
    assert model.trainer is not None
    return model.trainer


def parts(trainer: Trainer) -> list[Any]:
    collector = trainer.collector
    some = [trainer.reward_scale] if trainer.reward_scale else []
    own = [collector, collector.restarts, *collector.journal]
    return [trainer, trainer.live, trainer.meter, *own, trainer.replay, *some]


def fields(part: Any) -> set[str]:
    """The names that a part's state has; of the whole run's state, the loop's own."""
    if isinstance(part, Trainer):
        loop = part.state().loop
        return {*loop._fields, *loop.counters._fields} - {"counters"}
    return set(part.state()._fields)


def forgotten(part: Any) -> set[str]:
    return set(vars(part)) - fields(part) - NOT_STATE[type(part)].keys()


def test_every_attribute_is_in_the_state_or_is_said_not_to_be(trainer: Trainer) -> None:
    for part in parts(trainer):
        assert not forgotten(part), f"{type(part).__name__} does not offer these"
        assert NOT_STATE[type(part)].keys() <= vars(part).keys(), "this list names what is no more"
        assert not NOT_STATE[type(part)].keys() & fields(part)
        part.added = 1
        assert forgotten(part) == {"added"}
        del part.added


def test_every_counter_of_the_loop_is_what_its_state_says(trainer: Trainer) -> None:
    loop = trainer.state().loop
    assert {name: getattr(trainer, name) for name in loop.counters._fields} == loop.counters._asdict()
    assert trainer.meter.state().chosen is trainer.meter.chosen
    assert loop.mask_rng == trainer.mask_rng.bit_generator.state != loop.warmup_rng


def arrays(thing: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Every array of an object and of what it is made of."""
    if isinstance(thing, np.ndarray):
        yield name, thing
    elif isinstance(thing, dict | tuple | list):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from arrays(part, name)
    elif type(thing).__module__.startswith("sunrise.replay"):
        for own, part in vars(thing).items():
            yield from arrays(part, own)


def test_every_array_of_a_replay_buffer_is_in_its_rings_or_counters(trainer: Trainer) -> None:
    state = trainer.replay.state()
    offered = [*state.counters.values(), *(array for ring in state.rings.values() for array in ring.arrays.values())]
    own = dict(arrays(trainer.replay))
    assert len(own) >= 3
    for name, array in own.items():
        bytes_of = sum(np.shares_memory(array, each) for each in offered)
        assert bytes_of, f"{name} is in no ring and no counter"
        size = sum(each.nbytes for each in offered if np.shares_memory(array, each))
        assert size == array.nbytes or name in MADE_ANEW or name == "batch"


def test_logs_offer_the_size_and_the_checksum_of_each_file(tmp_path: Path) -> None:
    logs = Logs(Folder(tmp_path))
    logs.append_metrics({"timesteps": 1})
    assert vars(logs).keys() == NOT_STATE[Logs].keys()
    content = (tmp_path / "metrics.jsonl").read_bytes()
    assert logs.state()["metrics.jsonl"] == (len(content), hashlib.sha256(content).hexdigest())
    before = logs.state()
    logs.append_metrics({"timesteps": 2})
    assert logs.state() != before
    logs.restore(before)
    assert logs.state() == before
    assert (tmp_path / "metrics.jsonl").read_bytes() == content


def test_an_evaluation_has_no_state(trainer: Trainer) -> None:
    run = trainer.config.run
    evaluator = Evaluator(lambda: None, trainer.live.exploit, trainer.action_space, run, 0.0)  # type: ignore[arg-type, return-value]
    assert vars(evaluator).keys() == NOT_STATE[Evaluator].keys()
