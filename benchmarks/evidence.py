"""The runs of docs/results/protocol.md, as data: two at a time, each bound to one core, resumed where they stopped.

`.venv/bin/python benchmarks/evidence.py` runs what is not done, rung by rung; `--list` shows what there is. Runs live
in evidence/ (not committed); what a finished one leaves for the record goes to benchmarks/results/evidence/. With
`--again` what is on record is run once more: git then shows whether its rows are the same.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sunrise.config.presets import AUTHORS_SAC
from sunrise.experiments import runs as trials
from sunrise.experiments.cores import usable
from sunrise.experiments.executor import Execution, execute
from sunrise.experiments.paper import Arm
from sunrise.files import documents

HERE = Path(__file__).parent
ROOT = HERE.parent
RUNS, KEPT = ROOT / "evidence", HERE / "results" / "evidence"
PEERS = ROOT / ".venv-peers" / "bin" / "python"
THINNED = 100
"""Rows of metrics that are kept of a run, or a few more: the last always is."""


class Run(NamedTuple):
    """One training."""

    rung: str
    env: str
    arm: str
    seed: int
    algo: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.env}__{self.arm}__{self.seed}".replace("/", "-").replace(" ", "_")

    @property
    def folder(self) -> Path:
        return RUNS / self.rung / self.name

    @property
    def kept(self) -> Path:
        return KEPT / self.rung / self.name


# -- the ladder --------------------------------------------------------------------------------------------------------

EVERY_2500 = {"total_timesteps": 30_000, "eval_freq": 2_500, "eval_episodes": 5}
DQN = {
    "total_timesteps": 15_000,
    "eval_freq": 1_000,
    "eval_episodes": 10,
    "learning_rate": 1e-3,
    "batch_size": 64,
    "buffer_size": 50_000,
    "learning_starts": 500,
    "target_update_interval": 500,
}
OUR_DQN = {"ensemble_size": 1, "train_freq": 1, "exploration_initial_eps": 0.1, "exploration_final_eps": 0.1}
SMALL = {"net_arch": (64, 64), "batch_size": 64, "learning_rate": 1e-3, "learning_starts": 500}
SMALL_TASKS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {"total_timesteps": 5_000, "eval_freq": 500, "eval_episodes": 10},
    "dmc/cartpole-swingup": {"total_timesteps": 10_000, "eval_freq": 1_000, "eval_episodes": 5},
}
INGREDIENTS: dict[str, dict[str, Any]] = {
    "N=1": {"ensemble_size": 1},
    "confidence": {},
    "none": {"weighting": "none"},
    "relative": {"weighting": "relative"},
    "inverse_variance": {"weighting": "inverse_variance"},
    "random": {"weighting": "random"},
    "member": {"exploration": "member"},
}
SPARSE: dict[str, dict[str, Any]] = {
    "N=1": {"ensemble_size": 1},
    "member": {"exploration": "member"},
    "ucb1": {"ucb_lambda": 1.0},
    "ucb10": {"ucb_lambda": 10.0},
}
HOPPER = "sunrise/Hopper-v0"
LONG = {"total_timesteps": 100_000, "eval_freq": 5_000, "eval_episodes": 10}
TABLE1: dict[str, dict[str, Any]] = {"N=1": {"ensemble_size": 1}, "SUNRISE": {}, "relative": {"weighting": "relative"}}
AUTHORS = {**AUTHORS_SAC, "eval_steps": 0}
CHECKS: dict[str, dict[str, Any]] = {"authors": AUTHORS, "authors64": {**AUTHORS, "batch_size": 64}}
ATARI: dict[str, dict[str, Any]] = {"N=1": {"ensemble_size": 1}, "SUNRISE": {}, "constant": {"weighting": "constant"}}


def two_sacs(rung: str, seeds: range) -> Iterator[Run]:
    for seed, env in product(seeds, ("Hopper-v5", "HalfCheetah-v5")):
        yield Run(rung, env, "ours", seed, "sac", {**EVERY_2500, "ensemble_size": 1})
        yield Run(rung, env, "sb3", seed, "sb3-sac", EVERY_2500)


def base_learners() -> Iterator[Run]:
    yield from two_sacs("1-base", range(1, 4))
    for seed in range(1, 11):
        yield Run("1-base", "CartPole-v1", "ours", seed, "dqn", {**DQN, **OUR_DQN})
        yield Run("1-base", "CartPole-v1", "sb3", seed, "sb3-dqn", DQN)


def small() -> Iterator[Run]:
    for seed, (env, task), noise in product(range(1, 11), SMALL_TASKS.items(), (0.0, 1.0)):
        for arm, own in INGREDIENTS.items():
            label = f"{arm}__noise" if noise else arm
            yield Run("2-small", env, label, seed, "sac", {**SMALL, **task, **own, "reward_noise": noise})


def sparse() -> Iterator[Run]:
    length = {"total_timesteps": 15_000, "eval_freq": 1_000, "eval_episodes": 5}
    for seed, (arm, own) in product(range(1, 9), SPARSE.items()):
        yield Run("3-sparse", "dmc/cartpole-swingup_sparse", arm, seed, "sac", {**length, **own})


def table1(rung: str, *envs: str) -> Iterator[Run]:
    for env in envs:
        for seed, arm in [*product(range(1, 6), ("N=1", "SUNRISE")), *product(range(1, 6), ("relative",))]:
            yield Run(rung, env, arm, seed, "sac", {**LONG, **TABLE1[arm]})


def checks() -> Iterator[Run]:
    """One agent on the task of rung 4, with other settings than ours."""
    for (arm, own), seed in product(CHECKS.items(), range(1, 6)):
        yield Run("4-checks", HOPPER, arm, seed, "sac", {**TABLE1["N=1"], **own, **LONG})


def authors_sunrise() -> Iterator[Run]:
    """SUNRISE beside the checks' one agent, with the same switches."""
    for seed in range(1, 6):
        yield Run("4-authors", HOPPER, "SUNRISE-authors", seed, "sac", {**TABLE1["SUNRISE"], **AUTHORS, **LONG})


def atari() -> Iterator[Run]:
    length = {"total_timesteps": 100_000, "eval_freq": 10_000, "eval_episodes": 10}
    for seed, (arm, own) in product(range(1, 4), ATARI.items()):
        yield Run("5-atari", "ALE/Freeway-v5", arm, seed, "rainbow", {**length, **own})


def ladder() -> Iterator[Run]:
    """Every run in the order in which they are made, rung by rung."""
    yield from base_learners()
    yield from two_sacs("1-again", range(4, 11))
    yield from small()
    yield from sparse()
    yield from table1("4-table1", HOPPER)
    yield from checks()
    yield from authors_sunrise()
    yield from table1("5-table1", "sunrise/Ant-v0", "sunrise/Walker-v0", "sunrise/Cheetah-v0")
    yield from atari()


# -- running -----------------------------------------------------------------------------------------------------------


def is_peer(run: Run) -> bool:
    """Whether another library trains it."""
    return run.algo.startswith("sb3-")


def trial(run: Run) -> trials.Run:
    """One of ours, as the executor takes it: what is kept of it is small."""
    files = {"keep": 1, "keep_replay": False, "save_freq": 5_000, "run_dir": relative(run.folder)}
    settings = {**run.settings, **files, "env_id": run.env, "seed": run.seed}
    return trials.Run(Arm(run.arm, run.algo), run.env, run.seed, settings, run.folder)


def peer_command(run: Run) -> list[str]:
    """What trains a peer. It cannot be resumed: a run that was stopped begins anew."""
    shutil.rmtree(run.folder, ignore_errors=True)
    about = {"algo": run.algo, "env_id": run.env, "seed": run.seed, **run.settings, "run_dir": relative(run.folder)}
    return [str(PEERS), str(HERE / "peers" / "sb3_learning.py"), json.dumps(about)]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def keep(run: Run) -> None:
    """Copy what is small of a finished run: its settings, its evaluations and some of its metrics."""
    run.kept.mkdir(parents=True, exist_ok=True)
    config, seal = documents.unsealed(json.loads((run.folder / "config.json").read_text()))
    if seal == "broken":
        raise SystemExit(f"{relative(run.folder)}/config.json is damaged.")
    if not is_peer(run):
        config["command"] = ["sunrise", *config["command"][1:]]
        config["commit"] = git("log", "-1", "--format=%h", "--", "src")
    here = json.loads(json.dumps(config).replace(f"{ROOT}/", ""))  # no path of the machine it ran on
    (run.kept / "config.json").write_bytes(documents.sealed(here))
    metrics = run.folder / "metrics.jsonl"
    if metrics.exists():
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        rows = rows[-1 :: -max(len(rows) // THINNED, 1)][::-1]
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (run.kept / "metrics.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            short = [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
            writer.writerows(short)
    shutil.copy(run.folder / "eval.csv", run.kept / "eval.csv")  # last: it says that a run is kept


def git(*words: str) -> str:
    """What git says of the code that made a run."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def finished(run: Run) -> bool:
    status = run.folder / "status.json"
    return status.exists() and json.loads(status.read_text()).get("status") == "finished"


def work(core: int, runs: Iterator[Run], lock: threading.Lock) -> None:
    """Take one peer's run after another, on one core."""
    while True:
        with lock:
            run = next(runs, None)
        if run is None:
            return
        if not finished(run):
            run.folder.parent.mkdir(parents=True, exist_ok=True)
            print(f"core {core}: {run.rung}/{run.name}", flush=True)
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            with (RUNS / "log.txt").open("a") as log:
                command = ["taskset", "-c", str(core), *peer_command(run)]
                subprocess.run(command, cwd=ROOT, env=environment, stderr=log, stdout=log, check=False)
        if finished(run):
            keep(run)
        else:
            print(f"core {core}: {run.rung}/{run.name} did not finish; see {relative(RUNS)}/log.txt", flush=True)


def run_peers(runs: Sequence[Run], workers: int) -> None:
    """Those of another library, side by side."""
    left, lock = iter(runs), threading.Lock()
    threads = [threading.Thread(target=work, args=(core, left, lock)) for core in usable()[:workers]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the runs and which are kept")
    rungs, tasks, arms = ({getattr(run, name) for run in ladder()} for name in ("rung", "env", "arm"))
    parser.add_argument("--rungs", nargs="*", default=[], choices=sorted(rungs), help="only these")
    parser.add_argument("--arms", nargs="*", default=[], choices=sorted(arms), help="only these, in the order given")
    parser.add_argument("--tasks", nargs="*", default=[], choices=sorted(tasks), help="only these, in the order given")
    parser.add_argument("--again", action="store_true", help="run what is kept once more, and keep that instead")
    parser.add_argument("--workers", type=int, default=0, help="runs side by side; default: as many as cores")
    parser.add_argument("--ray-address", help="a Ray cluster instead")
    options = parser.parse_args()
    chosen = [run for run in ladder() if not options.rungs or run.rung in options.rungs]
    if options.tasks:
        chosen = sorted((r for r in chosen if r.env in options.tasks), key=lambda run: options.tasks.index(run.env))
    if options.arms:
        chosen = sorted((r for r in chosen if r.arm in options.arms), key=lambda run: options.arms.index(run.arm))
    if options.list:
        for run in chosen:
            print("kept" if (run.kept / "eval.csv").exists() else "    ", run.rung, run.name)
        return
    RUNS.mkdir(exist_ok=True)
    os.nice(19)
    chosen = [run for run in chosen if options.again or not (run.kept / "eval.csv").exists()]
    workers = options.workers or len(usable())
    run_peers([run for run in chosen if is_peer(run)], workers)
    ours = {run.folder: run for run in chosen if not is_peer(run)}
    for run in ours.values():
        if finished(run):
            keep(run)
    execution = Execution(0 if options.ray_address else workers, options.ray_address, cpus=1)
    failures = execute([trial(run) for run in ours.values()], execution, then=lambda done: keep(ours[done.folder]))
    if failures:
        names = ", ".join(failure.run.folder.name for failure in failures)
        raise SystemExit(f"failed: {names}. The protocol wants that said in docs/results/README.md.")


if __name__ == "__main__":
    main()
