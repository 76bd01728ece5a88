"""Optuna proposes, we train: ask and tell, with a journal of plain JSON lines beside the runs.

Whatever is killed, the journal has every trial that was asked for. One that was asked and not told is taken up again
under the parameters it was given, before anything new is asked; its runs go on in their folders. The randomness of a
proposal is made of the sampler's seed and the trial's number, so that no state of a sampler is kept anywhere, and a
tuning that was killed, also between two draws of one proposal, proposes what it would have proposed. What a run's
failure changes is the order: a trial that failed is told later than it would have been, and others do not know of it.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from sunrise.errors import SunriseError
from sunrise.experiments.rungs import Result
from sunrise.experiments.tuning import Candidate, Range, Tuning
from sunrise.files.folder import Folder, require_kind

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

Sampler = Literal["grid", "tpe", "random"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
JOURNAL, LOCK = "journal.jsonl", ".tune.lock"


def optuna() -> Any:
    """The package, or a sentence on how to get it."""
    try:
        import optuna as found
    except ImportError:
        raise SunriseError(
            'samplers other than `grid` are Optuna\'s: install the extra `tune` (pip install ".[tune]").'
        ) from None
    found.logging.set_verbosity(found.logging.WARNING)
    return found


def sampler_of(name: Sampler, seed: int, number: int) -> "BaseSampler":
    """A sampler for one proposal."""
    samplers, own = optuna().samplers, (seed * 1_000_003 + number) % 2**32
    if name == "tpe":
        return samplers.TPESampler(seed=own, multivariate=False, constant_liar=True)
    return samplers.RandomSampler(seed=own)


class Held:
    """A lock of Optuna's journal that is held already: one process has a tuning's folder at a time (`held`)."""

    def acquire(self) -> bool:
        """It is."""
        return True

    def release(self) -> None:
        """It goes with the process; a file as a lock, which is Optuna's own way, would outlive a kill."""


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Have a tuning's folder alone; another process that wants it is refused."""
    out.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(out / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SunriseError(f"{out} is being tuned by another process: wait for it, or stop it.") from None
    finally:
        os.close(descriptor)


def open_journal(out: Path) -> Any:
    """The journal of a folder that is held."""
    storages, path = optuna().storages, out / JOURNAL
    if (there := Folder(out).status(JOURNAL)) is not None:
        require_kind(there, stat.S_IFREG, path)
        mend(path)
    return storages.JournalStorage(storages.journal.JournalFileBackend(str(path), Held()))


def mend(path: Path) -> None:
    """Cut a line that a kill left half written: what is not a whole line was never said."""
    with path.open("r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
            file.flush()
            os.fsync(file.fileno())


class Proposals:
    """The study of one environment."""

    def __init__(self, out: Path, tuning: Tuning, env: str, sampler: Sampler, seed: int) -> None:
        self.tuning, self.env, self.sampler, self.seed = tuning, env, sampler, seed
        self.optuna = optuna()
        self.space = {name: values for name, (_, values) in tuning.space(env).items()}
        self.study: Study = self.optuna.create_study(
            storage=open_journal(out), study_name=env, direction="maximize", load_if_exists=True
        )
        search = {name: list(values) for name, values in self.space.items()}
        asked: dict[str, Any] = {"search": json.loads(json.dumps(search)), "algo": tuning.algo}
        asked |= {"seeds": tuning.select_seeds, "score": tuning.score, "sampler": [sampler, seed]}
        for name, value in asked.items():
            before = self.study.user_attrs.get(name, value)
            if before != value:
                raise SunriseError(
                    f"{out / JOURNAL} is a tuning with {name} = {before}, not {value}: choose another --out."
                )
            if name not in self.study.user_attrs:
                self.study.set_user_attr(name, value)

    def batch(self, total: int, size: int, without: set[int]) -> "list[tuple[Trial, Candidate]]":
        """The trials to run next: those that were asked and not told, and new ones up to the end of their batch."""
        trials = self.study.get_trials(deepcopy=False)
        waiting = [t.number for t in trials if not t.state.is_finished() and t.number not in without]
        first = waiting[0] if waiting else len(trials)
        for number in range(len(trials), min((first // size + 1) * size, total)):
            self.study.sampler = sampler_of(self.sampler, self.seed, number)
            waiting.append(self.study.ask().number)
        return [self.taken_up(number) for number in waiting]

    def taken_up(self, number: int) -> "tuple[Trial, Candidate]":
        """A trial with all its parameters: what it has been given stays, what is missing is drawn now.

        What it has been given is drawn once more, in vain: the randomness then stands where a kill between two draws
        left it.
        """
        self.study.sampler = sampler_of(self.sampler, self.seed, number)
        frozen = self.study.get_trials(deepcopy=False)[number]
        if frozen.params.keys() < self.space.keys():
            for name, drawn_from in frozen.distributions.items():
                if not drawn_from.single():
                    self.study.sampler.sample_independent(self.study, frozen, name, drawn_from)
        trial = self.optuna.trial.Trial(self.study, frozen._trial_id)
        settings = {name: self.suggested(trial, name, values) for name, values in self.space.items()}
        return trial, Candidate(named(number), settings)

    def suggested(self, trial: "Trial", name: str, values: "list[Any] | Range") -> Any:
        """A setting's value in a trial."""
        if isinstance(values, Range):
            if values.whole:
                return trial.suggest_int(name, int(values.low), int(values.high), log=values.log)
            return trial.suggest_float(name, values.low, values.high, log=values.log)
        # By their place: Optuna's journal holds plain values alone, and a list of layers is none.
        return decoded(values, trial.suggest_categorical(name, list(range(len(values)))))

    def tell(self, trial: "Trial", result: Result) -> None:
        """What became of a trial. One that failed is not told, and tried again by the next command."""
        if result.failed:
            return
        told = self.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        for length, mean in result.means.items():
            if length not in told:
                trial.report(mean, length)
        trial.set_user_attr("scores", list(result.scores))
        states = self.optuna.trial.TrialState
        value, state = (result.mean, states.COMPLETE) if result.complete else (None, states.PRUNED)
        self.study.tell(trial, value, state)

    def results(self) -> list[Result]:
        """What was told."""
        return [self.result(trial) for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished()]

    def result(self, trial: "FrozenTrial") -> Result:
        """A trial that is over, as it was told."""
        settings = {name: decoded(values, trial.params[name]) for name, values in self.space.items()}
        means: Mapping[int, float] = trial.intermediate_values
        complete = trial.state == self.optuna.trial.TrialState.COMPLETE
        lengths = (max(means), *(() if complete else (max(means) + 1,)))
        return Result(Candidate(named(trial.number), settings), means, tuple(trial.user_attrs["scores"]), lengths)


def named(number: int) -> str:
    """A trial's name, which its folders have."""
    return f"trial {number:04d}"


def decoded(values: "list[Any] | Range", suggested: Any) -> Any:
    """A setting's value from a trial's parameter: the place in a list, or a number of a range."""
    return suggested if isinstance(values, Range) else values[suggested]
