// The curves: a chart a task, and the controls that all of them obey.

const AXES = { timesteps: "timesteps", env_steps: "simulator steps", hours: "hours" };

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
    this.section = make("section", { id: "curves", "aria-labelledby": "curves-title" }, make("h2", { id: "curves-title" }, "Learning curves"), this.controls, this.grid, this.note);
    new ResizeObserver(() => this.fit()).observe(this.grid);
    this.update();
  }

  /** Take up the report as it is now: the first time, and whenever a run has logged. */
  update() {
    const runs = Object.values(this.report.runs);
    const shape = JSON.stringify([this.report.arms, this.report.tasks, runs.map((run) => [run.id, run.arm, run.task, run.seed])]);
    if (shape !== this.shape) {
      this.shape = shape;
      for (const panel of this.panels.values()) panel.chart.remove();
      this.panels.clear();
      this.buildControls(runs);
      this.grid.replaceChildren(...this.report.tasks.map((task) => this.panel(task)));
      this.grid.classList.toggle("one", this.report.tasks.length === 1);
    }
    this.draw();
  }

  panel(task) {
    const runs = Object.values(this.report.runs).filter((run) => run.task === task);
    const arms = this.report.arms.filter((arm) => runs.some((run) => run.arm === arm));
    const place = (arm) => this.report.arms.indexOf(arm);
    const lines = [
      ...runs.map((run) => ({ key: run.id, label: `${run.arm}, seed ${run.seed}`, place: place(run.arm), kind: "seed", run })),
      ...arms.flatMap((arm) => ["low", "high"].map((kind) => ({ key: `${arm} ${kind}`, label: arm, place: place(arm), kind, arm }))),
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
    this.panels.set(task, { task, runs, arms, chart, behind, cache: new Map() });
    return make("figure", { class: "card" }, make("figcaption", {}, make("h3", {}, task), make("span", { class: "axes" }, "return")), chart.holder, chart.readout, behind.details);
  }

  // -- controls ----------------------------------------------------------------------------------------------------------

  buildControls(runs) {
    const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
    const hours = runs.some((run) => run.eval.hours);
    const simulated = runs.some((run) => run.action_repeat !== 1);
    const axes = Object.keys(AXES).filter((name) => name === "timesteps" || (name === "hours" ? hours : simulated));
    this.axis = axes.includes(this.axis) ? this.axis : "timesteps";
    this.controls.replaceChildren(
      this.toggles("Methods", this.report.arms, "arms", (arm, place) => [lineSample(place), make("span", {}, arm)]),
      this.toggles("Seeds", seeds, "seeds", (seed) => [String(seed)]),
      this.smoothing(runs),
      this.choice("Axis", axes),
      make("fieldset", {}, make("legend", {}, "Show"), this.check("interval", "band"), this.check("single seeds", "singles")),
      this.zoomButtons(),
    );
  }

  toggles(title, names, kind, content) {
    for (const name of this.hidden[kind]) if (!names.includes(name)) this.hidden[kind].delete(name);
    const buttons = names.map((name, place) => {
      const button = make("button", { type: "button", class: "toggle", "aria-pressed": String(!this.hidden[kind].has(name)) }, content(name, place));
      button.addEventListener("click", () => {
        const gone = this.hidden[kind];
        if (gone.has(name)) gone.delete(name);
        else gone.add(name);
        button.setAttribute("aria-pressed", String(!gone.has(name)));
        this.draw();
      });
      return button;
    });
    return make("fieldset", { class: `toggles ${kind}` }, make("legend", {}, title), make("div", { class: "wrap" }, buttons));
  }

  smoothing(runs) {
    const longest = Math.max(1, ...runs.map((run) => run.eval.mean_return.length));
    const most = Math.max(1, Math.min(25, Math.floor(longest / 4)));
    const id = newId("smoothing");
    const output = make("output", { for: id });
    const say = () => (output.textContent = this.width === 1 ? "none" : `over ${this.width} evaluations`);
    const slider = make("input", { type: "range", id, min: 0, max: most, step: 1, value: (this.width - 1) / 2 });
    slider.addEventListener("input", () => {
      this.width = 2 * Number(slider.value) + 1;
      slider.setAttribute("aria-valuetext", this.width === 1 ? "none" : `mean over ${this.width} evaluations`);
      say();
      this.draw();
    });
    say();
    return make("fieldset", { class: "smoothing" }, make("legend", {}, make("label", { for: id }, "Smoothing")), make("div", { class: "wrap" }, slider, output));
  }

  choice(title, names) {
    const group = newId("axis");
    const options = names.map((name) => {
      const input = make("input", { type: "radio", name: group, value: name });
      input.checked = name === this.axis;
      input.addEventListener("change", () => {
        this.axis = name;
        this.group.range = null;
        this.draw();
        this.group.zoom(null);
      });
      return make("label", { class: "radio" }, input, make("span", {}, AXES[name]));
    });
    return make("fieldset", { class: "choice" }, make("legend", {}, title), make("div", { class: "wrap joined" }, options));
  }

  check(text, name) {
    const input = make("input", { type: "checkbox" });
    input.checked = this[name];
    input.addEventListener("change", () => {
      this[name] = input.checked;
      this.draw();
    });
    return make("label", { class: "check" }, input, text);
  }

  zoomButtons() {
    const act = { "Zoom in": ["+", () => this.group.scale(0.5)], "Zoom out": ["−", () => this.group.scale(2)], "Move left": ["←", () => this.group.pan(-0.25)], "Move right": ["→", () => this.group.pan(0.25)] };
    const buttons = Object.entries(act).map(([label, [sign, click]]) => make("button", { type: "button", class: "small", "aria-label": label, title: label, click }, sign));
    const reset = make("button", { type: "button", class: "small", click: () => this.group.zoom(null) }, "Reset");
    const late = [buttons[1], buttons[2], buttons[3], reset];
    const changed = (range) => late.forEach((button) => button.setAttribute("aria-disabled", String(!range)));
    this.group.changed = changed;
    changed(this.group.range);
    return make("fieldset", { class: "zoom" }, make("legend", {}, "Zoom"), make("div", { class: "wrap" }, buttons, reset));
  }

  // -- drawing -----------------------------------------------------------------------------------------------------------

  axisOf(run) {
    if (this.axis === "hours") return run.eval.hours;
    if (this.axis === "timesteps") return run.eval.timesteps;
    return run.eval.timesteps.map((step) => step * run.action_repeat);
  }

  /** What a chart draws now: the axis, then the values of every line, nothing but nulls for what is hidden. */
  dataOf({ runs, arms, chart, task }) {
    const drawable = (run) => run.eval.mean_return.length > 0 && this.axisOf(run);
    const shownNow = runs.filter((run) => drawable(run) && !this.hidden.arms.has(run.arm) && !this.hidden.seeds.has(run.seed));
    const axis = commonAxis(runs.filter(drawable).map((run) => this.axisOf(run)));
    const nothing = new Array(axis.length).fill(null);
    const seeds = new Map(shownNow.map((run) => [run.id, placed(this.axisOf(run), smoothed(run.eval.mean_return, this.width), axis)]));
    const summaries = new Map();
    for (const arm of arms) summaries.set(arm, summary(shownNow.filter((run) => run.arm === arm).map((run) => seeds.get(run.id))));
    this.panels.get(task).summaries = summaries;
    this.panels.get(task).shown = shownNow;
    const values = chart.lines.map((line) => {
      if (line.kind === "seed") return (this.singles && seeds.get(line.run.id)) || nothing;
      const found = summaries.get(line.arm)[line.kind];
      return found.length && (line.kind === "mean" || this.band) ? found : nothing;
    });
    return [axis, ...values];
  }

  draw() {
    if (!this.section.isConnected || this.section.hidden) return;
    for (const panel of this.panels.values()) {
      const data = this.dataOf(panel);
      panel.chart.xName = AXES[this.axis];
      panel.chart.show(data);
      panel.behind.refresh();
    }
    for (const chart of this.group.charts) chart.rescale();
    const cut = [...this.panels.values()].some((panel) => this.unequal(panel));
    this.note.textContent =
      `Horizontal: ${AXES[this.axis]}. Bands: 95 % bootstrap interval of the mean over the seeds shown (${RESAMPLES} resamples).` +
      (this.width > 1 ? ` Each point is the mean of up to ${this.width} evaluations about it.` : "") +
      (cut ? " A mean ends where the first of its seeds ends." : "");
  }

  unequal(panel) {
    return panel.arms.some((arm) => {
      const ends = panel.shown.filter((run) => run.arm === arm).map((run) => run.eval.timesteps[run.eval.timesteps.length - 1]);
      return new Set(ends).size > 1;
    });
  }

  redraw() {
    for (const panel of this.panels.values()) panel.chart.redraw();
    for (const [place, sample] of [...this.controls.querySelectorAll(".sample")].entries()) sample.replaceWith(lineSample(place));
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
      const { mean, low, high } = panel.summaries.get(arm);
      if (mean[at] === null || mean[at] === undefined) continue;
      const between = low[at] === null ? "" : ` [${shown(low[at])}, ${shown(high[at])}]`;
      parts.push(make("span", { class: "value" }, lineSample(this.report.arms.indexOf(arm)), make("b", {}, arm), ` ${shown(mean[at])}${between}`));
    }
    return parts;
  }

  table(task) {
    const panel = this.panels.get(task);
    const arms = panel.arms.filter((arm) => panel.summaries.get(arm).mean.length);
    const columns = [{ name: AXES[this.axis], number: true }, ...arms.flatMap((arm) => [{ name: arm, number: true }, { name: `${arm}: interval`, number: true }])];
    const rows = spreadOut(panel.chart.axis.length, 60).map((at) => [
      { text: shown(panel.chart.axis[at], this.axis === "hours" ? 3 : 0), value: panel.chart.axis[at] },
      ...arms.flatMap((arm) => {
        const { mean, low, high } = panel.summaries.get(arm);
        return [{ text: shown(mean[at]), value: mean[at] }, low[at] === null || low[at] === undefined ? "–" : { text: `${shown(low[at])} to ${shown(high[at])}`, value: low[at] }];
      }),
    ]);
    return sortedTable(`${task}: mean return over seeds${this.width > 1 ? `, smoothed over ${this.width} evaluations` : ""}`, columns, rows);
  }
}
