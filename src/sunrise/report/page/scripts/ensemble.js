// What only an ensemble can tell: how far its members disagree, what weights that gives, and who acted.

const SPREADS = { disagreement: "Disagreement of the critics", weight: "Weight of a transition in the Bellman backup" };

class EnsembleView {
  constructor(report) {
    this.report = report;
    this.group = new Group();
    this.body = make("div", { class: "charts" });
    this.select = make("select", { id: "ensemble-run" });
    this.select.addEventListener("change", () => this.draw());
    const controls = make(
      "div",
      { class: "controls" },
      make("fieldset", {}, make("legend", {}, make("label", { for: "ensemble-run" }, "Run")), this.select),
    );
    this.section = make(
      "section",
      { id: "ensemble", "aria-labelledby": "ensemble-title" },
      make("h2", { id: "ensemble-title" }, "Inside the ensemble"),
      make(
        "p",
        { class: "lead" },
        "Of one run: how far its critics disagree about the minibatch, which weights that gives, and whose proposal was acted on.",
      ),
      controls,
      this.body,
    );
    new ResizeObserver(() => this.group.charts.forEach((chart) => chart.resize(chart.holder.clientWidth))).observe(
      this.body,
    );
    this.update();
  }

  runs() {
    return Object.values(this.report.runs).filter((run) => run.ensemble);
  }

  update() {
    const runs = this.runs();
    const before = this.select.value;
    const names = runs.map((run) => run.id).join("\n");
    if (names !== this.names) {
      this.names = names;
      this.select.replaceChildren(
        ...runs.map((run) => make("option", { value: run.id }, `${run.task} · ${run.arm} · seed ${run.seed}`)),
      );
      // The largest ensemble has most to show.
      const members = (run) => run.ensemble.chosen.length;
      const first = [...runs].sort((a, b) => members(b) - members(a))[0];
      this.select.value = runs.some((run) => run.id === before) ? before : first?.id;
    }
    this.section.hidden = runs.length === 0;
    this.draw();
  }

  draw() {
    const run = this.report.runs[this.select.value];
    if (!run || !this.section.isConnected || this.section.hidden) return;
    for (const chart of [...this.group.charts]) chart.remove();
    const timesteps = unpacked(run.ensemble.timesteps);
    const chosen = run.ensemble.chosen.map((packed) => Array.from(unpacked(packed)));
    const spreads = Object.keys(SPREADS).filter((name) => run.ensemble[name]);
    const figures = spreads.map((name) => this.spread(SPREADS[name], timesteps, unpackedAll(run.ensemble[name])));
    const members = chosen.length ? memberPicture("Whose action was taken", timesteps, chosen) : null;
    this.body.replaceChildren(...figures.map((entry) => entry.figure), ...(members ? [members] : []));
    figures.forEach((entry) => entry.chart.show(entry.data));
  }

  redraw() {
    for (const chart of this.group.charts) chart.redraw();
  }

  /** Mean, median and the 5 to 95 % range over the minibatch. */
  spread(title, timesteps, quantiles) {
    const gaps = (values) => Array.from(values ?? [], (value) => (Number.isNaN(value) ? null : value));
    const columns = {
      low: gaps(quantiles.p05),
      high: gaps(quantiles.p95),
      median: gaps(quantiles.p50),
      mean: gaps(quantiles.mean),
    };
    const lines = [
      { key: "low", label: "5 %", place: 0, kind: "low" },
      { key: "high", label: "95 %", place: 0, kind: "high" },
      { key: "median", label: "median", place: 0, kind: "line" },
      { key: "mean", label: "mean", place: 1, kind: "line" },
    ];
    const told = (at) => [
      make("span", { class: "at" }, `${shown(timesteps[at], 0)} timesteps`),
      make(
        "span",
        { class: "value" },
        lineSample(0),
        make("b", {}, "median"),
        ` ${shown(columns.median[at])} [5 to 95 %: ${shown(columns.low[at])} to ${shown(columns.high[at])}]`,
      ),
      make("span", { class: "value" }, lineSample(1), make("b", {}, "mean"), ` ${shown(columns.mean[at])}`),
    ];
    const chart = new LineChart(this.group, {
      title,
      lines,
      height: 240,
      yName: "Median, mean, and the range from 5 to 95 % over minibatches",
      told,
    });
    const legend = make(
      "p",
      { class: "legend" },
      make("span", {}, lineSample(0), "median, with 5 to 95 %"),
      make("span", {}, lineSample(1), "mean"),
    );
    const table = tableBehind(title, () =>
      sortedTable(
        title,
        ["timesteps", "5 %", "median", "mean", "95 %"].map((name) => ({ name, number: true })),
        spreadOut(timesteps.length, 60).map((at) => [
          timesteps[at],
          columns.low[at],
          columns.median[at],
          columns.mean[at],
          columns.high[at],
        ]),
      ),
    );
    const figure = make(
      "figure",
      { class: "card" },
      make("figcaption", {}, make("h3", {}, title)),
      legend,
      chart.holder,
      chart.readout,
      table.details,
    );
    return { figure, chart, data: [timesteps, columns.low, columns.high, columns.median, columns.mean] };
  }
}
