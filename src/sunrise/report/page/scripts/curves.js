// The curves: a chart a task, and the controls that all of them obey.

class Curves {
  constructor(report) {
    this.report = report;
    this.group = new Group();
    this.axis = "timesteps";
    this.width = 1;
    this.hidden = { arms: new Set(), seeds: new Set() };
    this.band = true;
    this.singles = true;
    this.panels = new Map();
    this.grid = make("div", { class: "charts" });
    this.controls = make("div", { class: "controls" });
    this.note = make("p", { class: "note" });
    this.section = make(
      "section",
      { id: "curves", "aria-labelledby": "curves-title" },
      make("h2", { id: "curves-title" }, "Learning curves"),
      this.controls,
      this.grid,
      this.note,
    );
    new ResizeObserver(() => this.fit()).observe(this.grid);
    this.seen = new IntersectionObserver((entries) => this.sight(entries), { rootMargin: "300px" });
    this.update();
  }

  /** Take up the report as it is now: the first time, and whenever a run has logged. */
  update() {
    const runs = Object.values(this.report.runs);
    const shape = JSON.stringify([
      this.report.arms,
      this.report.tasks,
      runs.map((run) => [run.id, run.arm, run.task, run.seed]),
    ]);
    if (shape !== this.shape) {
      this.shape = shape;
      for (const panel of this.panels.values()) {
        this.seen.unobserve(panel.chart.holder);
        panel.chart.remove();
      }
      this.panels.clear();
      fillControls(this, runs);
      this.grid.replaceChildren(...this.report.tasks.map((task) => this.panel(task)));
      this.grid.classList.toggle("one", this.report.tasks.length === 1);
    }
    for (const panel of this.panels.values()) panel.known.clear();
    this.draw();
  }

  panel(task) {
    const runs = Object.values(this.report.runs).filter((run) => run.task === task);
    const arms = this.report.arms.filter((arm) => runs.some((run) => run.arm === arm));
    const place = (arm) => this.report.arms.indexOf(arm);
    const lines = [
      ...runs.map((run) => ({
        key: run.id,
        label: `${run.arm}, seed ${run.seed}`,
        place: place(run.arm),
        kind: "seed",
        arm: run.arm,
      })),
      ...arms.flatMap((arm) =>
        ["low", "high"].map((kind) => ({ key: `${arm} ${kind}`, label: arm, place: place(arm), kind, arm })),
      ),
      ...arms.map((arm) => ({ key: arm, label: arm, place: place(arm), kind: "mean", arm })),
    ];
    const chart = new LineChart(this.group, {
      title: task,
      lines,
      height: this.report.tasks.length === 1 ? 400 : 270,
      yName: "Return at evaluation: the mean over seeds, its interval, and single seeds",
      told: (at) => this.told(task, at),
    });
    const behind = tableBehind(`${task}, as drawn`, () => this.table(task));
    this.panels.set(task, {
      task,
      arms,
      chart,
      behind,
      runs: () => Object.values(this.report.runs).filter((run) => run.task === task),
      known: new Map(),
    });
    this.seen.observe(chart.holder);
    return make(
      "figure",
      { class: "card" },
      make("figcaption", {}, make("h3", {}, task), make("span", { class: "axes" }, "return")),
      chart.holder,
      chart.readout,
      behind.details,
    );
  }

  // -- drawing -----------------------------------------------------------------------------------------------------------

  axisOf(run) {
    if (this.axis === "hours") return run.eval.hours;
    if (this.axis === "timesteps") return run.eval.timesteps;
    return run.eval.timesteps.map((step) => step * run.action_repeat);
  }

  /** The seeds of a method that are shown, smoothed and on the chart's axis, and their summary. */
  partOf(panel, arm, runs, axis) {
    const key = JSON.stringify([arm, this.axis, this.width, runs.map((run) => run.id)]);
    if (!panel.known.has(key)) {
      if (panel.known.size > 64) panel.known.clear();
      const seeds = runs.map((run) => placed(this.axisOf(run), smoothed(run.eval.mean_return, this.width), axis));
      panel.known.set(key, { seeds: new Map(runs.map((run, place) => [run.id, seeds[place]])), ...summary(seeds) });
    }
    return panel.known.get(key);
  }

  /** What a chart draws now: the axis, then the values of every line, nothing but nulls for what is hidden. */
  dataOf(panel) {
    const drawable = panel.runs().filter((run) => run.eval.mean_return.length > 0 && this.axisOf(run));
    const axis = commonAxis(drawable.map((run) => this.axisOf(run)));
    const nothing = new Array(axis.length).fill(null);
    panel.shown = drawable.filter((run) => !this.hidden.arms.has(run.arm) && !this.hidden.seeds.has(run.seed));
    panel.parts = new Map(
      panel.arms.map((arm) => [
        arm,
        this.partOf(
          panel,
          arm,
          panel.shown.filter((run) => run.arm === arm),
          axis,
        ),
      ]),
    );
    const values = panel.chart.lines.map((line) => {
      const part = panel.parts.get(line.arm);
      if (line.kind === "seed") return (this.singles && part.seeds.get(line.key)) || nothing;
      return part[line.kind].length && (line.kind === "mean" || this.band) ? part[line.kind] : nothing;
    });
    return [axis, ...values];
  }

  /** Draw what can be seen at once, and the rest when there is time. */
  draw() {
    if (!this.section.isConnected || this.section.hidden) return;
    for (const panel of this.panels.values()) panel.stale = true;
    const first = ![...this.panels.values()].some((panel) => panel.chart.plot);
    const visible = [...this.panels.values()].filter((panel, place) => (first ? place < 4 : panel.visible));
    for (const panel of visible) this.drawPanel(panel);
    this.drawRest();
    this.note.textContent =
      `Horizontal: ${AXES[this.axis]}. Bands: 95 % bootstrap interval of the mean over the seeds shown. A mean ends where the first of its seeds ends.` +
      (this.width > 1
        ? ` Each point is the mean of up to ${this.width} evaluations about it; tables of scores are not smoothed.`
        : "");
  }

  drawPanel(panel) {
    panel.stale = false;
    panel.chart.show(this.dataOf(panel));
    panel.chart.rescale();
    panel.behind.refresh();
  }

  drawRest(now = false) {
    clearTimeout(this.later);
    const stale = [...this.panels.values()].filter((panel) => panel.stale);
    if (now) stale.forEach((panel) => this.drawPanel(panel));
    else if (stale.length) {
      this.later = setTimeout(() => {
        if (stale[0].stale) this.drawPanel(stale[0]);
        this.drawRest();
      }, 30);
    }
  }

  sight(entries) {
    for (const entry of entries) {
      const panel = [...this.panels.values()].find((one) => one.chart.holder === entry.target);
      if (!panel) continue;
      panel.visible = entry.isIntersecting;
      if (panel.visible && panel.stale) this.drawPanel(panel);
    }
  }

  redraw() {
    for (const panel of this.panels.values()) panel.chart.outdated = true;
    this.draw();
    for (const [place, sample] of [...this.controls.querySelectorAll(".sample")].entries())
      sample.replaceWith(lineSample(place));
  }

  fit() {
    for (const panel of this.panels.values()) panel.chart.resize(panel.chart.holder.clientWidth);
  }

  // -- in words ----------------------------------------------------------------------------------------------------------

  told(task, at) {
    const panel = this.panels.get(task);
    const digits = this.axis === "hours" ? 2 : 0;
    const parts = [make("span", { class: "at" }, `${shown(panel.chart.axis[at], digits)} ${AXES[this.axis]}`)];
    for (const arm of panel.arms) {
      const { mean, low, high } = panel.parts.get(arm);
      if (mean[at] === null || mean[at] === undefined) continue;
      const between = low[at] === null ? "" : ` [${shown(low[at])}, ${shown(high[at])}]`;
      parts.push(
        make(
          "span",
          { class: "value" },
          lineSample(this.report.arms.indexOf(arm)),
          make("b", {}, arm),
          ` ${shown(mean[at])}${between}`,
        ),
      );
    }
    return parts;
  }

  table(task) {
    const panel = this.panels.get(task);
    const arms = panel.arms.filter((arm) => panel.parts.get(arm).mean.length);
    const columns = [
      { name: AXES[this.axis], number: true },
      ...arms.flatMap((arm) => [
        { name: arm, number: true },
        { name: `${arm}: interval`, number: true },
      ]),
    ];
    const rows = spreadOut(panel.chart.axis.length, 60).map((at) => [
      { text: shown(panel.chart.axis[at], this.axis === "hours" ? 3 : 0), value: panel.chart.axis[at] },
      ...arms.flatMap((arm) => {
        const { mean, low, high } = panel.parts.get(arm);
        return [
          { text: shown(mean[at]), value: mean[at] },
          low[at] === null || low[at] === undefined
            ? "–"
            : { text: `${shown(low[at])} to ${shown(high[at])}`, value: low[at] },
        ];
      }),
    ]);
    return sortedTable(
      `${task}: mean return over seeds${this.width > 1 ? `, smoothed over ${this.width} evaluations` : ""}`,
      columns,
      rows,
    );
  }
}
