// A chart of lines: uPlot draws, and what its mouse does the keyboard does too.
// Charts of a group share their cursor and zoom.

/** Charts that show the same axis. */
class Group {
  constructor() {
    this.charts = new Set();
    this.range = null;
    this.moving = false;
    this.changed = () => {};
  }

  /** Put every cursor at x; null takes them away. */
  point(x, from) {
    if (this.moving) return;
    this.moving = true;
    for (const chart of this.charts) {
      if (chart !== from) chart.pointAt(x);
      chart.tell(x);
    }
    this.moving = false;
  }

  /** Show a part of the axis in every chart; null shows all of it. */
  zoom(range) {
    this.range = range && range[1] > range[0] ? range : null;
    for (const chart of this.charts) chart.rescale();
    this.changed(this.range);
  }

  /** All that any chart has, from nought on. */
  extent() {
    const ends = [...this.charts]
      .filter((chart) => chart.axis.length)
      .map((chart) => [chart.axis[0], chart.axis[chart.axis.length - 1]]);
    return ends.length ? [Math.min(0, ...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[1]))] : [0, 1];
  }

  /** Zoom by a factor about x, or about the middle. */
  scale(factor, about) {
    const [low, high] = this.extent();
    const [from, to] = this.range ?? [low, high];
    const middle = about ?? (from + to) / 2;
    const next = [Math.max(middle - (middle - from) * factor, low), Math.min(middle + (to - middle) * factor, high)];
    this.zoom(next[0] <= low && next[1] >= high ? null : next);
  }

  /** Move the part that is shown by a share of its width. */
  pan(share) {
    if (!this.range) return;
    const [low, high] = this.extent();
    const [from, to] = this.range;
    const step = Math.min(Math.max((to - from) * share, low - from), high - to);
    this.zoom([from + step, to + step]);
  }
}

const KEYS = {
  ArrowLeft: (chart, shift) => (shift ? chart.group.pan(-0.25) : chart.step(-1)),
  ArrowRight: (chart, shift) => (shift ? chart.group.pan(0.25) : chart.step(1)),
  PageUp: (chart) => chart.step(-10),
  PageDown: (chart) => chart.step(10),
  Home: (chart) => chart.step(-Infinity),
  End: (chart) => chart.step(Infinity),
  "+": (chart) => chart.group.scale(0.5, chart.x),
  "=": (chart) => chart.group.scale(0.5, chart.x),
  "-": (chart) => chart.group.scale(2, chart.x),
  0: (chart) => chart.group.zoom(null),
  Escape: (chart) => {
    chart.group.zoom(null);
    chart.group.point(null);
  },
};

/**
 * One chart. `lines` are {key, label, place, kind: "mean" | "low" | "high" | "seed" | "line"}; `data` is the axis and then
 * the values of each line; `told` puts a point into words.
 */
class LineChart {
  constructor(group, { title, lines, height, told, xName, yName, yRange }) {
    Object.assign(this, { group, title, lines, height, told, xName, yRange });
    this.axis = [];
    this.x = null;
    this.holder = make("div", {
      class: "canvas",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": `${title}. ${yName}.`,
      "aria-describedby": "keys",
    });
    this.readout = make("p", { class: "readout" }, "\u00a0");
    this.holder.addEventListener("keydown", (event) => {
      const act = KEYS[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.readout.setAttribute("aria-live", "polite");
      act(this, event.shiftKey);
    });
    this.holder.addEventListener("blur", () => {
      this.readout.removeAttribute("aria-live");
      this.group.point(null);
    });
    group.charts.add(this);
  }

  /** Draw these numbers; the first time, make the chart. */
  show(data) {
    this.data = data;
    this.axis = data[0];
    if (this.plot && !this.outdated) this.plot.setData(data);
    else this.build();
    this.tell(this.x);
  }

  build() {
    this.outdated = false; // by another theme
    this.plot?.destroy();
    const width = Math.max(this.holder.clientWidth, 200);
    this.plot = new uPlot(this.options(width), this.data, this.holder);
    this.plot.root.querySelector("canvas").setAttribute("aria-hidden", "true");
  }

  /** The same with the colours and the width of now. */
  redraw() {
    if (this.data && this.holder.isConnected) this.build();
  }

  resize(width) {
    if (this.plot && width > 0 && Math.abs(width - this.plot.width) > 1)
      this.plot.setSize({ width, height: this.height });
  }

  remove() {
    this.plot?.destroy();
    this.group.charts.delete(this);
  }

  options(width) {
    const ink = inkOf("--soft");
    const grid = { stroke: inkOf("--grid"), width: 1 };
    const axis = { stroke: ink, grid, ticks: { ...grid, size: 4 }, font: "12px system-ui, sans-serif", gap: 5 };
    const wide = (plot, values) => (values ? 14 + 7 * Math.max(...values.map((value) => String(value).length)) : 50);
    const at = (kind, place) => this.lines.findIndex((line) => line.kind === kind && line.place === place) + 1;
    return {
      width,
      height: this.height,
      padding: [10, 20, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.group.zoom(null) },
        points: {
          size: 7,
          show: (plot, place) => (["mean", "line"].includes(this.lines[place - 1]?.kind) ? undefined : false),
        },
      },
      scales: {
        x: { time: false, range: () => this.group.range ?? this.ownRange() },
        y: this.yRange ? { range: this.yRange } : {},
      },
      axes: [
        { ...axis, values: (plot, splits) => splits.map(shortNumber), size: 30, space: 60 },
        { ...axis, values: (plot, splits) => splits.map(shortNumber), size: wide, space: 40 },
      ],
      series: [{}, ...this.lines.map((line) => this.styleOf(line))],
      bands: this.lines
        .filter((line) => line.kind === "high")
        .map((line) => ({
          series: [at("high", line.place), at("low", line.place)],
          fill: faint(lookOf(line.place).colour, 0.16),
        })),
      hooks: {
        setSelect: [(plot) => this.select(plot)],
        setCursor: [(plot) => this.hovered(plot)],
        draw: [(plot) => this.paintMarkers(plot)],
      },
    };
  }

  styleOf(line) {
    const look = lookOf(line.place);
    const style = { label: line.label, points: { show: false }, spanGaps: false };
    if (line.kind === "seed") return { ...style, stroke: faint(look.colour, 0.34), width: 1 };
    if (line.kind === "low" || line.kind === "high") return { ...style, stroke: "transparent", width: 0 };
    return { ...style, stroke: look.colour, width: 2.25, dash: look.dash };
  }

  ownRange() {
    const [low, high] = this.axis.length ? [Math.min(0, this.axis[0]), this.axis[this.axis.length - 1]] : [0, 1];
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  rescale() {
    if (!this.plot) return;
    const [min, max] = this.group.range ?? this.ownRange();
    this.plot.setScale("x", { min, max });
  }

  select(plot) {
    const { left, width } = plot.select;
    if (width > 4) this.group.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  hovered(plot) {
    const { left, idx } = plot.cursor;
    const x = left >= 0 && idx !== null && idx !== undefined ? this.axis[idx] : null;
    if (this.group.moving || x === this.x) return;
    this.x = x;
    this.group.point(x, this);
  }

  pointAt(x) {
    this.x = x;
    const left =
      x === null || !this.plot || !this.axis.length ? -10 : this.plot.valToPos(this.axis[nearest(this.axis, x)], "x");
    this.plot?.setCursor({ left, top: x === null ? -10 : 0 });
  }

  /** Move the cursor by some points, from the start of what is shown where there is none. */
  step(count) {
    const [from, to] = this.group.range ?? this.group.extent();
    const first = nearest(this.axis, from);
    const last = nearest(this.axis, to);
    const now = this.x === null ? (count < 0 ? last + 1 : first - 1) : nearest(this.axis, this.x);
    const place = Math.min(Math.max(now + count, first), last);
    this.group.point(this.axis[place]);
  }

  /** The values at x in words; without a cursor, those at the end. */
  tell(x) {
    const at = x === null ? this.lastKnown() : nearest(this.axis, x);
    this.readout.replaceChildren(...(at < 0 ? ["\u00a0"] : this.told(at)));
  }

  lastKnown() {
    const known = (values) => values.findLastIndex((value) => value !== null);
    return Math.max(
      -1,
      ...this.lines.map((line, place) => (["mean", "line"].includes(line.kind) ? known(this.data[place + 1]) : -1)),
    );
  }

  /** A marker every so many pixels of each mean, each method a little further on. */
  paintMarkers(plot) {
    const scale = devicePixelRatio;
    const ground = inkOf("--card");
    const means = this.lines
      .map((line, place) => [line, place + 1])
      .filter(([line]) => line.kind === "mean" || line.kind === "line");
    plot.ctx.save();
    plot.ctx.setLineDash([]);
    means.forEach(([line, series], turn) => {
      const look = lookOf(line.place);
      const values = plot.data[series];
      let next = plot.bbox.left + ((turn + 0.5) / means.length) * 70 * scale;
      for (let place = 0; place < values.length; place++) {
        if (values[place] === null || values[place] === undefined) continue;
        const x = plot.valToPos(plot.data[0][place], "x", true);
        if (x < next - 1 && !(values.length < 8)) continue;
        if (x < plot.bbox.left - 1 || x > plot.bbox.left + plot.bbox.width + 1) continue;
        paintMarker(
          plot.ctx,
          look.marker,
          x,
          plot.valToPos(values[place], "y", true),
          3.6 * scale,
          look.colour,
          ground,
        );
        next = x + 70 * scale;
      }
    });
    plot.ctx.restore();
  }
}
