"""What is in a run, a checkpoint or a model file, and whether it verifies. It only reads."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sunrise.checkpoint import MANIFEST, Checkpoint, Checkpoints
from sunrise.manifest import DamagedError
from sunrise.record import RunFolder
from sunrise.tensors import read_about


def inspect_path(path: Path) -> dict[str, Any]:
    """Findings about a run's folder, the folder of a checkpoint, or a model file."""
    if path.is_file():
        about = read_about(path)
        kept = {name: about.get(name) for name in ("algo", "policy", "timesteps")}
        return {"kind": "model", "path": str(path), "bytes": path.stat().st_size, **kept}
    if path.name.startswith("step-") and path.is_dir():
        return {"kind": "checkpoint", "path": str(path), **inspect_checkpoint(Checkpoints(path.parent), path)}
    return inspect_run(path)


def inspect_run(path: Path) -> dict[str, Any]:
    """What a run's folder holds."""
    folder = RunFolder(path)
    config, status = folder.config(), folder.read_status()
    settings, repeat = config["settings"], int(config.get("action_repeat", 1))
    total, timesteps = settings.get("total_timesteps"), status.get("timesteps")
    checkpoints = Checkpoints(folder.checkpoints)
    found = [inspect_checkpoint(checkpoints, checkpoints.path(step)) for step in checkpoints.steps()]
    good = [entry["timesteps"] for entry in found if entry["verifies"]]
    evaluations = [row["mean_return"] for row in folder.read_eval()]
    fault = path / "fault" / "fault.json"
    return {
        "kind": "run",
        "path": str(path),
        "algo": config["algo"],
        "env_id": settings.get("env_id"),
        "ensemble_size": settings.get("ensemble_size"),
        "action_repeat": repeat,
        "renderer": None if settings.get("renderer") in (None, "auto") else settings["renderer"],
        "total_timesteps": total,
        "total_env_steps": total and total * repeat,
        "status": status.get("status", "unknown"),
        "timesteps": timesteps,
        "env_steps": timesteps and timesteps * repeat,
        "error": status.get("error"),
        "best_evaluation": max(evaluations, default=None),
        "last_evaluation": evaluations[-1] if evaluations else None,
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "checkpoints": found,
        "last_good_step": good[-1] if good else None,
        "fault": json.loads(fault.read_text()) if fault.exists() else None,
    }


def inspect_checkpoint(checkpoints: Checkpoints, path: Path) -> dict[str, Any]:
    """One checkpoint: what it holds if it is whole, and otherwise what is wrong with it."""
    timesteps = int(path.name.removeprefix("step-"))
    try:
        found = checkpoints.read(timesteps)
    except DamagedError as error:
        return {"timesteps": timesteps, "verifies": False, "problem": str(error)}
    return {"timesteps": timesteps, "verifies": True, **contents(found)}


def contents(found: Checkpoint) -> dict[str, Any]:
    """Sizes of a whole checkpoint, and where its run was."""
    files = {name: total.size for name, total in found.manifest.files.items()}
    facts = found.facts()
    return {
        "files": files | {MANIFEST: (found.path / MANIFEST).stat().st_size},
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
        if name not in ("kind", "path", "checkpoints", "fault", "files") and value is not None:
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
    if findings.get("fault"):
        fault = findings["fault"]
        screen.print(f"fault at timestep {fault['timesteps']:,}: {fault['error']}")
        for name in fault["not_finite"]:
            screen.print(f"  not finite: {name}")
        screen.print("  fault/agents.safetensors has the agents before it, fault/batch.safetensors the minibatch.")


def megabytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e6:,.2f} MB"
