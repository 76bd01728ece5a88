// Pictures that hold still: intervals, performance profiles and the members that acted,
// as SVG that takes its colours from the style sheet.

/** A picture drawn anew whenever its place changes its width. */
function picture(label, height, paint) {
  const holder = make("div", { class: "picture" });
  let width = 0;
  const draw = () => {
    width = holder.clientWidth;
    if (width < 50) return;
    const tall = typeof height === "function" ? height(width) : height;
    const svg = make("svg:svg", {
      role: "img",
      "aria-label": label,
      width,
      height: tall,
      viewBox: `0 0 ${width} ${tall}`,
    });
    paint(svg, width, tall);
    holder.replaceChildren(svg);
  };
  new ResizeObserver(() => holder.clientWidth !== width && draw()).observe(holder);
  return { holder, draw };
}

/** Round marks between two numbers. */
function marksBetween(low, high, about) {
  const rough = (high - low) / Math.max(about, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 10 * power;
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high + step * 1e-9; mark += step)
    marks.push(Number(mark.toPrecision(12)));
  return marks;
}

const svgText = (x, y, text, attributes = {}) => make("svg:text", { x, y, ...attributes }, text);

/** Point and interval of each method: {title, note, zero, rows: [{label, arm, point, low, high}]}. */
function intervalPicture(content, arms) {
  const values = content.rows
    .flatMap((row) => [row.point, row.low, row.high])
    .filter((value) => value !== null && value !== undefined);
  const marked = content.zero === undefined || content.zero === null ? values : [...values, content.zero];
  const [least, most] = [Math.min(...marked), Math.max(...marked)];
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  const line = 38;
  const told = (row) =>
    `${shown(row.point)}${row.low === null || row.low === undefined ? "" : ` [${shown(row.low)}, ${shown(row.high)}]`}`;
  const label = `${content.title}. ${content.rows.map((row) => `${row.label}: ${told(row)}`).join("; ")}.`;
  const { holder } = picture(label, content.rows.length * line + 34, (svg, width, height) => {
    const x = (value) => 10 + ((value - least + room) / (most - least + 2 * room)) * (width - 20);
    for (const mark of marksBetween(least - room, most + room, Math.max(width / 110, 2))) {
      svg.append(make("svg:line", { x1: x(mark), x2: x(mark), y1: 2, y2: height - 24, class: "grid" }));
      svg.append(
        svgText(Math.min(Math.max(x(mark), 16), width - 16), height - 8, shortNumber(mark), {
          "text-anchor": "middle",
          class: "soft",
        }),
      );
    }
    if (content.zero !== undefined && content.zero !== null)
      svg.append(make("svg:line", { x1: x(content.zero), x2: x(content.zero), y1: 0, y2: height - 24, class: "zero" }));
    content.rows.forEach((row, at) => {
      const place = Math.max(arms.indexOf(row.arm), 0);
      const y = at * line + 26;
      svg.append(
        svgText(10, y - 11, row.label, { class: "label" }),
        svgText(width - 10, y - 11, told(row), { "text-anchor": "end", class: "soft" }),
      );
      if (row.low !== null && row.low !== undefined)
        svg.append(
          make("svg:line", {
            x1: x(row.low),
            x2: x(row.high),
            y1: y,
            y2: y,
            class: `line ink-${place % COLOURS}`,
            "stroke-width": 7,
            "stroke-opacity": 0.4,
          }),
        );
      svg.append(markerShape(place, x(row.point), y, 5.5));
    });
  });
  const table = tableBehind(content.title, () =>
    sortedTable(
      content.title,
      [
        { name: "what" },
        { name: "estimate", number: true },
        { name: "low", number: true },
        { name: "high", number: true },
      ],
      content.rows.map((row) => [row.label, row.point, row.low ?? null, row.high ?? null]),
    ),
  );
  return make(
    "figure",
    { class: "card" },
    make("figcaption", {}, make("h3", {}, content.title)),
    holder,
    content.note ? make("p", { class: "note" }, content.note) : null,
    table.details,
  );
}

/** The share of runs above each score: {title, note, x, thresholds, lines: [{arm, values, low, high}]}. */
function profilePicture(content, arms) {
  const thresholds = content.thresholds;
  const [least, most] = [thresholds[0], thresholds[thresholds.length - 1]];
  const label = `${content.title}: the share of runs with a score above each threshold, for ${content.lines.map((line) => line.arm).join(", ")}.`;
  const { holder } = picture(
    label,
    (width) => Math.min(320, width * 0.7),
    (svg, width, height) => {
      const x = (value) => 48 + ((value - least) / (most - least || 1)) * (width - 64);
      const y = (share) => 10 + (1 - share) * (height - 46);
      for (const share of [0, 0.25, 0.5, 0.75, 1]) {
        svg.append(make("svg:line", { x1: 48, x2: width - 16, y1: y(share), y2: y(share), class: "grid" }));
        svg.append(svgText(42, y(share) + 4, `${share * 100} %`, { "text-anchor": "end", class: "soft" }));
      }
      for (const mark of marksBetween(least, most, width / 110))
        svg.append(
          svgText(Math.min(x(mark), width - 18), height - 18, shortNumber(mark), {
            "text-anchor": "middle",
            class: "soft",
          }),
        );
      svg.append(svgText((width + 24) / 2, height - 3, content.x, { "text-anchor": "middle", class: "soft" }));
      for (const line of content.lines) {
        const place = Math.max(arms.indexOf(line.arm), 0);
        const kind = `ink-${place % COLOURS}`;
        const path = (values) => values.map((value, at) => `${x(thresholds[at]).toFixed(1)},${y(value).toFixed(1)}`);
        if (line.low)
          svg.append(
            make("svg:polygon", {
              points: [...path(line.low), ...path(line.high).reverse()].join(" "),
              class: `fill ${kind}`,
              "fill-opacity": 0.15,
            }),
          );
        svg.append(
          make("svg:polyline", {
            points: path(line.values).join(" "),
            class: `line ${kind}`,
            "stroke-width": 2.25,
            "stroke-dasharray": lookOf(place).dash.join(" ") || null,
          }),
        );
        const every = Math.max(1, Math.floor(thresholds.length / 6));
        for (let at = Math.floor(every / 2) + place; at < thresholds.length; at += every)
          svg.append(markerShape(place, x(thresholds[at]), y(line.values[at]), 3.8));
      }
    },
  );
  const legend = make(
    "p",
    { class: "legend" },
    content.lines.map((line) => make("span", {}, lineSample(Math.max(arms.indexOf(line.arm), 0)), line.arm)),
  );
  const table = tableBehind(content.title, () =>
    sortedTable(
      content.title,
      [{ name: content.x, number: true }, ...content.lines.map((line) => ({ name: line.arm, number: true }))],
      spreadOut(thresholds.length, 40).map((at) => [
        thresholds[at],
        ...content.lines.map((line) => ({ text: `${shown(100 * line.values[at], 0)} %`, value: line.values[at] })),
      ]),
    ),
  );
  return make(
    "figure",
    { class: "card" },
    make("figcaption", {}, make("h3", {}, content.title)),
    legend,
    holder,
    content.note ? make("p", { class: "note" }, content.note) : null,
    table.details,
  );
}

/** Which member acted: a row a member, darker where it acted more. axis: timesteps; shares: a list of numbers a member. */
function memberPicture(title, axis, shares) {
  const bins = Math.min(axis.length, 48);
  const binned = shares.map((values) =>
    Array.from({ length: bins }, (_, bin) => {
      const part = values
        .slice(
          Math.floor((bin * values.length) / bins),
          Math.max(Math.floor(((bin + 1) * values.length) / bins), Math.floor((bin * values.length) / bins) + 1),
        )
        .filter((value) => !Number.isNaN(value));
      return part.length ? part.reduce((sum, value) => sum + value, 0) / part.length : null;
    }),
  );
  const most = Math.max(...binned.flat().filter((value) => value !== null), 1e-9);
  const overall = shares.map((values) => {
    const known = values.filter((value) => !Number.isNaN(value));
    return known.reduce((sum, value) => sum + value, 0) / (known.length || 1);
  });
  const label = `${title}: share of actions of each member over time. ${overall.map((share, member) => `Member ${member}: ${shown(100 * share, 0)} %`).join("; ")}.`;
  const row = 24;
  const { holder } = picture(label, shares.length * row + 26, (svg, width, height) => {
    const [left, right] = [22, 52];
    const wide = (width - left - right) / bins;
    binned.forEach((values, member) => {
      svg.append(svgText(left - 8, member * row + 16, String(member), { "text-anchor": "end", class: "soft" }));
      values.forEach((value, bin) => {
        if (value === null) return;
        svg.append(
          make("svg:rect", {
            x: (left + bin * wide).toFixed(1),
            y: member * row + 2,
            width: (wide + 0.3).toFixed(1),
            height: row - 4,
            class: "heat",
            "fill-opacity": (0.06 + 0.94 * (value / most)).toFixed(3),
          }),
        );
      });
      svg.append(
        svgText(width - right + 8, member * row + 16, `${shown(100 * overall[member], 0)} %`, { class: "soft" }),
      );
    });
    svg.append(
      svgText(left, height - 6, shortNumber(axis[0]), { class: "soft" }),
      svgText(width - right, height - 6, shortNumber(axis[axis.length - 1]), { "text-anchor": "end", class: "soft" }),
    );
    svg.append(
      svgText(width / 2, height - 6, `timesteps; full ink: ${shown(100 * most, 0)} %`, {
        "text-anchor": "middle",
        class: "soft",
      }),
    );
  });
  const table = tableBehind(title, () =>
    sortedTable(
      title,
      [{ name: "timesteps", number: true }, ...shares.map((_, member) => ({ name: `member ${member}`, number: true }))],
      spreadOut(axis.length, 40).map((at) => [
        axis[at],
        ...shares.map((values) => ({ text: `${shown(100 * values[at], 0)} %`, value: values[at] })),
      ]),
    ),
  );
  return make("figure", { class: "card" }, make("figcaption", {}, make("h3", {}, title)), holder, table.details);
}
