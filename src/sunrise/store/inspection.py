"""What is in a run, a checkpoint or a model file, and whether it verifies. It only reads."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sunrise.errors import DamagedError, SunriseError
from sunrise.files import documents
from sunrise.files.folder import Folder
from sunrise.store.checkpoint import STEP, Checkpoints
from sunrise.store.facts import of_kind, readable
from sunrise.store.manifest import MANIFEST
from sunrise.store.reading import read_model, read_run
from sunrise.store.run_folder import RunFolder
from sunrise.store.saved import Checkpoint
from sunrise.store.tensors import open_model


def inspect_path(path: Path) -> dict[str, Any]:
    """Findings about a run's folder, the folder of a checkpoint, or a model file."""
    if path.exists() and not path.is_dir():
        with open_model(path) as file:
            about = read_model(file, path)
            kept = {name: about.get(name) for name in ("algo", "policy", "timesteps")}
            return {"kind": "model", "path": str(path), "bytes": file.seek(0, 2), **kept}
    if (step := STEP.fullmatch(path.name)) and path.is_dir():
        found = inspect_checkpoint(Checkpoints(path.parent), int(step[1]))
        if not found:
            raise SunriseError(f"{path} is no checkpoint, or it is there no longer.")
        return {"kind": "checkpoint", "path": str(path), **found}
    return inspect_run(path)


def inspect_run(path: Path) -> dict[str, Any]:
    """What a run's folder holds, and what is wrong with it."""
    folder, problems = RunFolder(path), []
    if not folder.holds_a_run:
        raise SunriseError(f"{path} is not a run: it has no config.json.")
    config: dict[str, Any] = {"settings": {}}
    try:
        config = read_run(path)
    except SunriseError as error:
        problems.append(str(error))
    status = folder.read_status()
    if not status and folder.files.status("status.json") is not None:
        problems.append("status.json is damaged.")
    settings, repeat = config["settings"], config.get("action_repeat", 1)
    total, timesteps = settings.get("total_timesteps"), status.get("timesteps")
    checkpoints = Checkpoints(folder.checkpoints)
    found = [entry for step in checkpoints.steps() if (entry := inspect_checkpoint(checkpoints, step))]
    good = [entry["timesteps"] for entry in found if entry["verifies"]]
    evaluations: list[float] = []
    try:
        evaluations = [row["mean_return"] for row in folder.read_eval()]
        folder.read_metrics()
    except DamagedError as error:
        problems.append(str(error))
    fault = None
    try:
        fault = read_fault(folder.files.sub("fault"))
    except DamagedError as error:
        problems.append(f"fault.json is damaged: {error}")
    return {
        "kind": "run",
        "path": str(path),
        "algo": config.get("algo"),
        "env_id": settings.get("env_id"),
        "ensemble_size": settings.get("ensemble_size"),
        "action_repeat": repeat,
        "renderer": None if settings.get("renderer") in (None, "auto") else settings["renderer"],
        "total_timesteps": total,
        "total_env_steps": total and total * repeat,
        "status": status.get("status", "unknown"),
        "killed": status.get("killed"),
        "timesteps": timesteps,
        "env_steps": timesteps and timesteps * repeat,
        "error": status.get("error"),
        "best_evaluation": max(evaluations, default=None),
        "last_evaluation": evaluations[-1] if evaluations else None,
        "bytes": folder.files.nbytes(),
        "checkpoints": found,
        "last_good_step": good[-1] if good else None,
        "fault": fault,
        "problems": problems,
    }


def read_fault(folder: Folder) -> dict[str, Any] | None:
    """What is known of a failure: its error, its timestep, and what was not finite."""
    try:
        with readable():
            fault, seal = documents.unsealed(documents.decode_mapping(folder.read("fault.json", documents.SMALL)))
            of_kind(fault["timesteps"], int)
            of_kind(fault["error"], str)
            for name in fault["not_finite"]:
                of_kind(name, str)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(str(error.strerror)) from None
    if seal == "broken":
        raise DamagedError("it does not have its checksum")
    return fault


def inspect_checkpoint(checkpoints: Checkpoints, timesteps: int) -> dict[str, Any]:
    """One checkpoint: what it holds if it is whole, what is wrong with it if not; nothing where it has been pruned."""
    try:
        return {"timesteps": timesteps, "verifies": True, **contents(checkpoints.read(timesteps))}
    except DamagedError as error:
        if timesteps not in checkpoints.steps():
            return {}
        return {"timesteps": timesteps, "verifies": False, "problem": str(error)}


def contents(found: Checkpoint) -> dict[str, Any]:
    """Sizes of a whole checkpoint, and where its run was."""
    files = {name: total.size for name, total in found.manifest.files.items()}
    facts = found.facts()
    with readable():
        of_kind(facts["loop"]["updates"], int)
        of_kind(facts["loop"]["episodes"], int)
        own = found.folder.status(MANIFEST)
        return {
            "files": files | {MANIFEST: own.st_size if own else 0},
            "replay_bytes": sum(segment.sum.size for segment in found.manifest.segments),
            "replay_segments": len(found.manifest.segments),
            "updates": facts["loop"]["updates"],
            "episodes": facts["loop"]["episodes"],
            "can_go_on": facts["with_replay"],
        }


def print_findings(findings: dict[str, Any]) -> None:
    """Findings for a person."""
    screen = Console(highlight=False, soft_wrap=True)
    screen.print(f"{findings['kind']} {findings['path']}")
    for name, value in findings.items():
        if name not in ("kind", "path", "checkpoints", "fault", "files", "problems") and value is not None:
            shown = megabytes(value) if name.endswith("bytes") else value
            screen.print(f"  {name.replace('_', ' '):<18}{shown}")
    for name, size in findings.get("files", {}).items():
        screen.print(f"  {name:<22}{megabytes(size)}")
    if findings.get("checkpoints"):
        table = Table("timestep", "verifies", "agents and state", "replay", "segments", "updates")
        for entry in findings["checkpoints"]:
            if entry["verifies"]:
                own = megabytes(sum(entry["files"].values()))
                replay = megabytes(entry["replay_bytes"])
                numbers = own, replay, str(entry["replay_segments"]), f"{entry['updates']:,}"
                table.add_row(f"{entry['timesteps']:,}", "yes", *numbers)
            else:
                table.add_row(f"{entry['timesteps']:,}", f"NO: {entry['problem']}", "-", "-", "-", "-")
        screen.print(table)
    for problem in findings.get("problems", ()):
        screen.print(f"  problem: {problem}", markup=False)
    if findings.get("fault"):
        fault = findings["fault"]
        screen.print(f"fault at timestep {fault['timesteps']:,}: {fault['error']}")
        for name in fault["not_finite"]:
            screen.print(f"  not finite: {name}")
        screen.print("  fault/agents.safetensors has the agents before it, fault/batch.safetensors the minibatch.")


def megabytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e6:,.2f} MB"
