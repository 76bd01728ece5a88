"""The numbers that docs/results/README.md has in its sentences, beside its tables: writes docs/results/beside.md.

`.venv/bin/python benchmarks/beside.py` needs no run: it reads the committed rows, as `verdicts.py` does. None of these
numbers was planned, and none decides.
"""

import itertools
from collections.abc import Iterator, Sequence

import gymnasium
import numpy as np
from scipy import stats

from seen import Scores, coverage, effects_needed, power
from sunrise.report.protocols import AREA, LAST, Protocol, mean_of_last, scored
from sunrise.report.published import published_for
from sunrise.report.results import Run
from verdicts import PAGES, Outcome, difference, hours, kept_runs, outcomes, shown, times_to

HOPPER = "sunrise/Hopper-v0"
REPLICATION = {
    HOPPER: {"SUNRISE": 1618.0, "N=1": 322.0},
    "sunrise/Ant-v0": {"SUNRISE": 834.0, "N=1": 724.0},
    "sunrise/Walker-v0": {"SUNRISE": 46.0, "N=1": -392.0},
    "sunrise/Cheetah-v0": {"SUNRISE": 3879.0, "N=1": 3211.0},
}
"""Mai et al. (2022), last evaluations at 100,000 timesteps, 25 runs."""
ITS_ERROR = 195.0
"""The standard error that it gives for SUNRISE on Hopper."""
DEAD = 0.51
"""A weight is alive where one backup of 20 has more."""


def student(x: Scores, y: Scores) -> tuple[float, float, float]:
    """The difference of two means with the 95 % interval of Student's t, the variances not assumed equal (Welch)."""
    low, high = stats.ttest_ind(x, y, equal_var=False).confidence_interval()
    return float(x.mean() - y.mean()), float(low), float(high)


def permutation(x: Scores, y: Scores) -> float:
    """Two-sided, of the difference of means, over every way to deal the scores to two arms."""
    both, size = np.concatenate([x, y]), len(x)
    chosen = np.array(list(itertools.combinations(range(len(both)), size)))
    sums = both[chosen].sum(axis=1)
    spread = np.abs(sums / size - (both.sum() - sums) / len(y))
    return float(np.mean(spread >= abs(x.mean() - y.mean()) - 1e-9))


def all_seeds() -> list[str]:
    """Rung 1's SAC with the seeds of both times."""
    runs = [run for rung in ("1-base", "1-again") for run in kept_runs(rung)]
    areas = scored(runs, AREA)
    rows = ["| task | runs | areas | difference of areas [95 %] |", "|---|---|---|---|"]
    for env in ("Hopper-v5", "HalfCheetah-v5"):
        x, y = (np.array(areas[env, arm]) for arm in ("ours", "sb3"))
        rows.append(f"| {env} | {len(x)}, {len(y)} | {x.mean():.4g}, {y.mean():.4g} | {shown(difference(x, y))} |")
    return ["## 1: SAC against Stable-Baselines3's, all ten seeds", "", *rows]


def five_by_ucb(small: Outcome) -> list[str]:
    """Rung 2's question that was not asked."""
    areas = scored(small.compared, AREA)
    rows = ["| task | difference of areas [95 %] |", "|---|---|"]
    for env in dict.fromkeys(env for env, _ in areas):
        rows.append(f"| {env} | {shown(difference(*(np.array(areas[env, arm]) for arm in ('confidence', 'N=1'))))} |")
    return ["## 2: five agents with the paper's weight and UCB − one agent", "", *rows]


def single_agent(small: Outcome) -> list[str]:
    """What one agent of rung 2 has at the end."""
    rows = ["| task | mean | worst |", "|---|---|---|"]
    for (env, arm), scores in scored(small.compared, LAST).items():
        if arm == "N=1":
            rows.append(f"| {env} | {np.mean(scores):.0f} | {min(scores):.0f} |")
    return ["## 2: last evaluations of one agent", "", *rows]


def weight_and_return(sparse: Outcome) -> list[str]:
    """Whether rung 3's weights are alive, and in which runs."""
    own = [run for run in sparse.runs if run.arm != "N=1"]
    dead = [run.metrics["timesteps"][run.metrics["train/weight_p95"] <= DEAD] for run in own]
    last = np.array([run.metrics["train/weight_p95"][-1] for run in own])
    together = stats.spearmanr(last, [LAST.score(run) for run in own])
    return [
        "## 3: the weight and the return",
        "",
        f"Of {len(own)} ensembles {sum(last <= DEAD)} have a dead weight at the end; in none is it dead before "
        f"{min(np.concatenate(dead)):,.0f} timesteps. Rank correlation of the last weight (95 % of a minibatch) and "
        f"the last evaluation: {together.statistic:.2f}, p = {together.pvalue:.2f}.",
    ]


def soonest(sparse: Outcome) -> list[str]:
    """Rung 3's times to a return of 100, one agent against each of the others."""
    times = {
        arm: np.array(times_to([run for run in sparse.runs if run.arm == arm])[0], float)
        for arm in ("N=1", "member", "ucb1", "ucb10")
    }
    rows = ["| one agent against | p, exact permutation test of the means |", "|---|---|"]
    rows += [f"| {arm} | {permutation(times['N=1'], times[arm]):.2f} |" for arm in times if arm != "N=1"]
    return ["## 3: timesteps to a return of 100", "", *rows]


def weights_by_run(outcome: Outcome, arms: Sequence[str], fewest: int) -> list[str]:
    """The 95 % of a minibatch's weights in single runs: the largest after so many timesteps, and the last."""
    rows = [f"| task | arm | largest after {fewest:,} timesteps | last, run by run |", "|---|---|---|---|"]
    for env, arm in sorted({(run.env, run.arm) for run in outcome.compared if run.arm in arms}):
        own = [run for run in outcome.compared if (run.env, run.arm) == (env, arm)]
        after = [run.metrics["train/weight_p95"][run.metrics["timesteps"] > fewest] for run in own]
        last = ", ".join(f"{weight[-1]:.2f}" for weight in sorted(after, key=lambda weight: weight[-1]))
        rows.append(f"| {env} | {arm} | {max(np.nanmax(weight) for weight in after):.3f} | {last} |")
    return [f"## {outcome.rung.name[0]}: the largest weights (95 % of a minibatch) in single runs", "", *rows]


def other_temperatures(runs: Sequence[Run]) -> list[str]:
    """Until when the paper's weight would be above 0.51 for one backup of 20 with its other temperatures."""
    rows = ["| T | above 0.51 for one backup of 20 until |", "|---|---|"]
    own = [run.metrics for run in runs if run.arm == "SUNRISE"]
    for temperature in (10, 20, 50):
        until = 0.0
        for metrics in own:
            weight = 1 / (1 + np.exp(temperature * metrics["train/disagreement_p05"])) + 0.5
            until = max([until, *metrics["timesteps"][weight > DEAD]])
        rows.append(f"| {temperature} | {until:,.0f} |")
    text = "By the rows that were kept, every second one of seeds 1 to 4: a row of 9,000 speaks for up to 10,000."
    title = "## 4: the paper's weight by the disagreement that was logged, with each T of its set"
    return [title, "", text, "", *rows]


def hopper(runs: Sequence[Run]) -> list[str]:
    """Rung 4 by other ways than the one that decides."""
    rows = ["| SUNRISE − N=1, by | difference | bootstrap [95 %] | Student's t [95 %] |", "|---|---|---|---|"]
    for name, x, y in ways(runs):
        (mean, low, high), (_, low_t, high_t) = difference(x, y), student(x, y)
        rows.append(f"| {name} | {mean:+.0f} | [{low:.0f}, {high:.0f}] | [{low_t:.0f}, {high_t:.0f}] |")
    lasts = scored(runs, LAST)
    rows += ["", *beside_replication(runs)]
    x, y = (np.array(lasts[HOPPER, arm]) for arm in ("SUNRISE", "N=1"))
    rows += ["", apart(x, y)]
    return ["## 4: SUNRISE and one agent on Hopper", "", *rows]


def apart(x: Scores, y: Scores) -> str:
    """How far the replication's difference on Hopper is from that of these last evaluations."""
    more = (REPLICATION[HOPPER]["SUNRISE"] - REPLICATION[HOPPER]["N=1"]) - (x.mean() - y.mean())
    error = np.sqrt(stats.sem(x) ** 2 + stats.sem(y) ** 2 + ITS_ERROR**2)
    known = f"both ({error:.0f}; of the replication's only SUNRISE's is published)."
    return f"The replication's difference is {more:.0f} larger than ours, {more / error:.1f} standard errors of {known}"


def with_authors(ours: Outcome, authors: Outcome) -> list[str]:
    """SUNRISE − one agent on Hopper with the authors' switches, and with either switches taken together."""
    rows = [
        "| SUNRISE − one agent | by | difference | bootstrap [95 %] | Student's t [95 %] |",
        "|---|---|---|---|---|",
    ]
    for name, way in (("area", AREA), ("last evaluation", LAST)):
        found = scored((*ours.compared, *authors.compared), way)
        x, y, own, one = (np.array(found[HOPPER, arm]) for arm in ("SUNRISE-authors", "authors", "SUNRISE", "N=1"))
        (mean, low, high), (_, low_t, high_t) = difference(x, y), student(x, y)
        rows.append(
            f"| the authors' switches | {name} | {mean:+.0f} | [{low:.0f}, {high:.0f}] | [{low_t:.0f}, {high_t:.0f}] |"
        )
        mean, low, high = difference(np.stack([x, own], 1), np.stack([y, one], 1))  # two tasks to the bootstrap
        rows.append(f"| the mean of both switches | {name} | {mean:+.0f} | [{low:.0f}, {high:.0f}] | |")
    lasts = scored(authors.compared, LAST)
    x, y = (np.array(lasts[HOPPER, arm]) for arm in ("SUNRISE-authors", "authors"))
    return ["## 4: with the authors' switches", "", *rows, "", apart(x, y)]


def beside_replication(runs: Sequence[Run]) -> list[str]:
    """Last evaluations of each arm, where it has two runs or more, and what the replication has there."""
    rows = [
        "| task | last evaluation of | runs | mean ± standard error | Student's t [95 %] | the replication |",
        "|---|---|---|---|---|---|",
    ]
    for (env, arm), scores in scored(runs, LAST).items():
        if len(scores) > 1:
            mean, error = np.mean(scores), stats.sem(scores)
            low, high = stats.t.interval(0.95, len(scores) - 1, mean, error)
            there = REPLICATION[env].get(arm)
            told = "" if there is None else f"{there:.0f}"
            rows.append(
                f"| {env} | {arm} | {len(scores)} | {mean:.0f} ± {error:.0f} | [{low:.0f}, {high:.0f}] | {told} |"
            )
    return rows


def other_tasks(runs: Sequence[Run]) -> list[str]:
    """What rung 5 has so far."""
    return ["## 5: other tasks beside the replication", "", *beside_replication(runs)] if runs else []


def idle() -> list[str]:
    """What doing nothing earns on the tasks of rungs 4 and 5: played, not read."""
    rows = ["| task | returns of three episodes |", "|---|---|"]
    for env_id in REPLICATION:
        env = gymnasium.make(env_id)
        returns = []
        for seed in range(3):
            env.reset(seed=seed)
            earned, over = 0.0, False
            while not over:
                _, reward, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
                earned, over = earned + float(reward), terminated or truncated
            returns.append(f"{earned:.0f}")
        env.close()
        rows.append(f"| {env_id} | {', '.join(returns)} |")
    return ["## 5: what an agent earns that does nothing", "", *rows]


def seeds_needed(runs: Sequence[Run]) -> list[str]:
    """How many runs an arm would show what others found on Hopper, if last evaluations are spread as ours are."""
    lasts = scored(runs, LAST)
    spreads = [float(np.std(lasts[HOPPER, arm], ddof=1)) for arm in ("SUNRISE", "N=1")]
    paper = {run.arm: entry.mean for run in runs for entry in published_for(run)}
    rows = ["| SUNRISE − N=1 at the last evaluation | difference | runs an arm | seen with five |", "|---|---|---|---|"]
    for name, there in (
        ("the replication, at 100,000 timesteps", REPLICATION[HOPPER]),
        ("the paper, at 200,000 timesteps", paper),
    ):
        effect = there["SUNRISE"] - there["N=1"]
        needed = next(size for size in itertools.count(2) if power(effect, spreads, size) >= 0.8)
        rows.append(f"| {name} | {effect:+.0f} | {needed} | {power(effect, spreads, 5):.0%} |")
    text = f"Seen four times of five by Student's t; deviations {spreads[0]:.0f} and {spreads[1]:.0f}."
    return ["## 4: how many runs would show what others found", "", text, "", *rows]


def ways(runs: Sequence[Run]) -> Iterator[tuple[str, Scores, Scores]]:
    """Scores of SUNRISE and of one agent, by several protocols."""

    def of(way: Protocol, seeds: Sequence[int] = range(1, 6)) -> tuple[Scores, Scores]:
        found = scored([run for run in runs if run.seed in seeds], way)
        return np.array(found[HOPPER, "SUNRISE"]), np.array(found[HOPPER, "N=1"])

    yield "area (decides)", *of(AREA)
    yield "area, without seed 5 of either", *of(AREA, range(1, 5))
    yield "area, without seed 5 of one agent", of(AREA)[0], of(AREA, range(1, 5))[1]
    yield "last evaluation", *of(LAST)
    yield "mean of the last five", *of(mean_of_last(5))
    arms = [[run for run in runs if run.arm == arm] for arm in ("SUNRISE", "N=1")]
    for name, score in (
        ("what training earned from 5,000 timesteps on", trained),
        ("area − what training earned", lead),
    ):
        x, y = (np.array([score(run) for run in own]) for own in arms)
        yield name, x, y


def trained(run: Run) -> float:
    """What training earned, from the first evaluation on."""
    later = run.metrics["timesteps"] >= run.evaluations["timesteps"][0]
    return float(np.nanmean(run.metrics["rollout/return_mean"][later]))


def lead(run: Run) -> float:
    """By how much evaluations earned more than training."""
    return AREA.score(run) - trained(run)


def run_by_run(runs: Sequence[Run]) -> list[str]:
    """Rung 4's two arms, seed by seed and evaluation by evaluation."""
    rows = ["| seed by seed | area | area − what training earned |", "|---|---|---|"]
    arms = {arm: sorted((r for r in runs if r.arm == arm), key=lambda run: run.seed) for arm in ("SUNRISE", "N=1")}
    for arm, own in arms.items():
        areas, leads = (", ".join(f"{score(run):.0f}" for run in own) for score in (AREA.score, lead))
        rows.append(f"| {arm} | {areas} | {leads} |")
    curves = {arm: np.mean([run.evaluations["mean_return"] for run in own], axis=0) for arm, own in arms.items()}
    apart = ", ".join(f"{value:+.0f}" for value in curves["SUNRISE"] - curves["N=1"])
    text = f"SUNRISE − N=1 at each evaluation, every 5,000 timesteps: {apart}."
    return ["## 4: seed by seed", "", *rows, "", text]


# -- the page ----------------------------------------------------------------------------------------------------------


def from_rows(found: Sequence[Outcome]) -> list[str]:
    """The part that is quick."""
    by_name = {outcome.rung.name: outcome for outcome in found}
    table1 = by_name["4-table1"].runs
    paused = [run for run in by_name["2-small"].runs if hours([run]) > 0.4]
    parts = (
        all_seeds(),
        five_by_ucb(by_name["2-small"]),
        weights_by_run(by_name["2-small"], ("confidence", "member"), 3_000),
        [f"{len(paused)} runs of rung 2 stood still for half an hour each: {hours(paused):.1f} of its hours."],
        single_agent(by_name["2-small"]),
        soonest(by_name["3-sparse"]),
        weights_by_run(by_name["3-sparse"], ("member", "ucb1", "ucb10"), 14_000),
        weight_and_return(by_name["3-sparse"]),
        hopper(table1),
        run_by_run(table1),
        with_authors(by_name["4-table1"], by_name["4-authors"]),
        seeds_needed(table1),
        other_temperatures(table1),
        other_tasks(by_name["5-table1"].runs),
    )
    return [line for part in parts if part for line in (*part, "")]


def main() -> None:
    """Write the page."""
    found = outcomes()
    head = "What the sentences of [the results](README.md) say beside their tables, from the committed rows by "
    lines = [
        "# Beside the results",
        "",
        head + "`benchmarks/beside.py`. Nothing here was planned, and nothing decides.",
    ]
    lines += ["", *from_rows(found), *idle(), "", *effects_needed(found), "", *coverage()]
    (PAGES / "beside.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
