"""The documents' numbers, from the last outputs in benchmarks/results/: none is typed by hand.

`.venv/bin/python benchmarks/readme.py` writes every section between its marks.
"""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Result = dict[str, Any]


def speed(result: Result) -> list[str]:
    """SAC's update against its peers."""
    peers, learners, bench = result["peers"], result["learners"], result["bench"]
    ms = peers["update_ms"]
    return [
        "| one update, batch 256 | ms | |",
        "|---|---|---|",
        f"| **five SAC agents, ours** | **{ms['sunrise_5']:.1f}** | "
        f"{peers['fraction_of_peak']:.0%} of the matrix product's peak ({peers['sgemm_peak']:.0f} GFLOP/s) |",
        f"| five SAC agents, PyTorch loop that does what the authors' code does | {ms['torch_authors_5']:.1f} | "
        f"ours is {peers['faster_than_torch_authors']:.1f}x as fast |",
        f"| five SAC agents, PyTorch loop with our work only | {ms['torch_loop_5']:.1f} | "
        f"ours is {peers['faster_than_torch_loop']:.1f}x as fast |",
        f"| five SAC agents, the same tuned by hand | {ms['torch_tuned_loop_5']:.1f} | "
        f"ours is {peers['faster_than_tuned_torch_loop']:.1f}x as fast |",
        f"| one SAC agent, Stable-Baselines3 | {ms['sb3_1']:.1f} | "
        f"our five take {peers['time_of_one_sb3_agent']:.1f}x its time |",
        f"| five TD3 agents, ours | {learners['update_ms']['td3']:.1f} | "
        f"{learners['of_sac']['td3']:.2f} of SAC's GFLOP/s (its networks are larger) |",
        f"| five DisCor agents, ours | {learners['update_ms']['discor']:.1f} | "
        f"{learners['of_sac']['discor']:.2f} of SAC's GFLOP/s |",
        "",
        f"With one Hopper environment and five agents, {bench['loop']['outside_update']:.0%} of the training loop's "
        "time is spent outside the update.",
    ]


def rainbow(result: Result) -> list[str]:
    """Rainbow's update against a loop."""
    lines = ["| five Rainbow agents, one update, batch 32 | ours, ms | PyTorch loop, ms | |", "|---|---|---|---|"]
    for actions, entry in result["actions"].items():
        ms = entry["update_ms"]
        lines.append(
            f"| {actions} actions | **{ms['sunrise_5']:.0f}** | {ms['torch_loop_5']:.0f} | "
            f"ours is {entry['faster_than_torch_loop']:.1f}x as fast |"
        )
    return lines


def atari_loop(result: Result) -> list[str]:
    """A whole game."""
    return [
        "A game of 100,000 timesteps with five agents takes about "
        f"{result['extrapolated_minutes_of_100k']:.0f} minutes ({result['game']}, {result['actions']} actions; "
        f"extrapolated from {result['measured_steps']:,} steps), of which sampling and priorities are "
        f"{result['sampling_and_priorities']:.0%}.",
    ]


def convolution(result: Result) -> list[str]:
    """RAD's encoders against XLA's own convolution and PyTorch."""
    ms = result["ms"]
    return [
        f"Five RAD encoders, batch {result['rows']}, forward and backward: ours {ms['sunrise_5']:.0f} ms, a PyTorch "
        f"loop {ms['torch_loop_5']:.0f} ms, XLA's own convolution under `vmap` {ms['xla_vmap_5']:.0f} ms.",
    ]


def checkpoint(result: Result) -> list[str]:
    """What saving costs."""
    return [
        f"Measured with five agents and a buffer of {result['buffer']:,} Hopper transitions, saved every "
        f"{result['interval_timesteps']:,}: {1e3 * result['training_thread_s']:.0f} ms on the training thread,",
        f"{result['until_on_disk_s']:.2f} s until it is on disk, at most "
        f"{result['share_of_training_time_at_most']:.2%} of the training time.",
    ]


def weight_cost(result: Result) -> list[str]:
    """What the schemes add to an update."""
    ratio = result["median_ratio_to_none"]
    names = ("confidence", "relative", "signal", "inverse_variance")
    costs = ", ".join(f"{name} {ratio[name] - 1:+.1%}" for name in (*names, "constant"))
    most = max(result["bytes_over_none"][name] - 1 for name in names)
    load = f"load of {result['load_average']:.1f}"
    return [
        f"Cost in an update of {result['what']}: by the compiler's own count at most {most:.2%} more bytes than",
        "without weights, and no more operations. Timed (processor time, median of "
        f"{result['rounds']} rounds in turns, on a machine with a {load}):",
        f"{costs}. `constant` costs nothing: its figure is the noise of the others.",
    ]


def attack(result: Result) -> list[str]:
    """What came of damaging files."""
    kinds = {"corruption": "random corruptions", "edit": "hostile edits"}
    outcomes = ("refused", "passed over", "equal", "another run, well signed", "wrong")
    lines = ["| | readings | " + " | ".join(outcomes) + " | minutes |", "|---" * (len(outcomes) + 3) + "|"]
    for kind, name in kinds.items():
        own = result[kind]
        counts = [own["readings"].get(outcome, 0) for outcome in outcomes]
        shown = " | ".join(f"{count:,}" for count in (sum(counts), *counts))
        lines.append(f"| {own['cases']:,} {name} | {shown} | {own['seconds'] / 60:.0f} |")
    return lines


def kills(result: Result) -> list[str]:
    """How often runs were killed at events on their files."""
    lines = ["| a run with | kills at file events | compared with the run never killed |", "|---|---|---|"]
    return [*lines, *(f"| {kind} | {own['kills']} | {own['outcome']} |" for kind, own in result.items())]


def sweep(result: Result) -> list[str]:
    """What running many runs costs."""
    median, beyond, two = result["overhead"]["median"], result["overhead"]["overhead_s"], result["two_trials"]
    side, after = (statistics.median(two["steps_per_s"][way]) for way in ("side_by_side", "one_after_the_other"))
    return [
        f"A trial of a second ({median['in_one_process']:.1f} s in a process that has everything compiled) costs",
        f"{beyond['local']:.1f} s more in a process of its own and {beyond['ray']:.1f} s more on Ray (medians of "
        f"{len(result['overhead']['seconds_a_trial']['ray'])} rounds in turns).",
        f"Two trials of {two['members']} SAC agents on {result['machine']['cores']} cores: side by side, a core each, "
        f"they make {side:.0f} timesteps a second together,",
        f"one after the other with all cores {after:.0f}: side by side is {two['gain']:.1f}x the throughput.",
    ]


SECTIONS: dict[str, tuple[str, str, Callable[[Result], list[str]]]] = {
    "speed": ("docs/speed.md", "sac", speed),
    "rainbow": ("docs/speed.md", "rainbow", rainbow),
    "atari": ("docs/speed.md", "atari_loop", atari_loop),
    "convolution": ("docs/speed.md", "convolution", convolution),
    "checkpoint": ("docs/reliability.md", "checkpoint", checkpoint),
    "attack": ("docs/reliability.md", "attack", attack),
    "kills": ("docs/reliability.md", "kills", kills),
    "sweep": ("docs/cluster.md", "sweep", sweep),
    "weight_cost": ("docs/weights.md", "weight_cost", weight_cost),
}
"""The document, the result and the text of each section."""


def put(document: Path, name: str, lines: list[str]) -> None:
    """Write lines between the marks of that name in a document."""
    mark, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = document.read_text().split(mark, 1)
    text = "\n".join(lines).strip("\n")
    document.write_text(f"{before}{mark}\n{text}\n{end}{rest.split(end, 1)[1]}")


def main() -> None:
    """Put every section whose result is there between its marks."""
    for name, (document, file, section) in SECTIONS.items():
        path = HERE / "results" / f"{file}.json"
        if path.exists():
            put(HERE.parent / document, name, section(json.loads(path.read_text())))


if __name__ == "__main__":
    main()
