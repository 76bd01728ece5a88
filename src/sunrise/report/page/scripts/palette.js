// How methods look. Colours that people who see fewer of them still tell apart, and never colour alone:
// each method has a dash pattern and a marker of its own too.

const COLOURS = 8; // --ink-0 to --ink-7 of the style sheet
const DASHES = [[], [9, 4], [2.5, 3], [12, 3, 2.5, 3], [6, 2, 2, 2, 2, 2], [16, 5], [5, 5], [1.5, 5]];
const MARKERS = ["circle", "square", "triangle", "diamond", "cross", "down", "ring", "plus"];

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** A colour of the style sheet as it is now, for what a canvas draws. */
function inkOf(name) {
  const probe = make("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

const inks = new Map();
const forgetInks = () => inks.clear();

/** The look of the method at a place of the list; past eight, colours come again with other dashes. */
function lookOf(place) {
  const round = Math.floor(place / COLOURS);
  const name = `--ink-${place % COLOURS}`;
  if (!inks.has(name)) inks.set(name, inkOf(name));
  return {
    colour: inks.get(name),
    dash: DASHES[(place + round) % DASHES.length],
    marker: MARKERS[(place + 3 * round) % MARKERS.length],
  };
}

const faint = (colour, share) => colour.replace("rgb(", "rgba(").replace(")", `, ${share})`);

/** A marker's outline about a point, as lists of points; rings are drawn as circles. */
function markerPoints(marker, x, y, r) {
  const about = (angles, size = r) =>
    angles.map((a) => [x + size * Math.sin((a * Math.PI) / 180), y - size * Math.cos((a * Math.PI) / 180)]);
  if (marker === "square") return about([45, 135, 225, 315], r * 1.2);
  if (marker === "triangle") return about([0, 120, 240], r * 1.5);
  if (marker === "down") return about([60, 180, 300], r * 1.5);
  if (marker === "diamond") return about([0, 90, 180, 270], r * 1.3);
  return null;
}

function paintMarker(context, marker, x, y, r, colour, ground) {
  context.beginPath();
  const corners = markerPoints(marker, x, y, r);
  if (marker === "cross" || marker === "plus") {
    const turn = marker === "cross" ? Math.SQRT1_2 : 0;
    const [a, b] = turn ? [r * 1.2 * turn, r * 1.2 * turn] : [r * 1.2, 0];
    context.moveTo(x - a, y - b);
    context.lineTo(x + a, y + b);
    context.moveTo(x - b, y + a);
    context.lineTo(x + b, y - a);
    context.strokeStyle = colour;
    context.lineWidth = r * 0.7;
    context.stroke();
    return;
  }
  if (corners) {
    corners.forEach(([a, b], place) => (place ? context.lineTo(a, b) : context.moveTo(a, b)));
    context.closePath();
  } else {
    context.arc(x, y, r, 0, 2 * Math.PI);
  }
  context.fillStyle = marker === "ring" ? ground : colour;
  context.fill();
  context.strokeStyle = marker === "ring" ? colour : ground;
  context.lineWidth = r * 0.35;
  context.stroke();
}

/** The marker of a method as a part of an SVG picture. */
function markerShape(place, x, y, r) {
  const kind = `ink-${place % COLOURS}`;
  const { marker } = lookOf(place);
  const corners = markerPoints(marker, x, y, r);
  if (corners)
    return make("svg:polygon", {
      points: corners.map((c) => c.map((v) => v.toFixed(1)).join(",")).join(" "),
      class: `fill ${kind}`,
    });
  if (marker === "cross" || marker === "plus") {
    const path =
      marker === "cross"
        ? `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`
        : `M${x - r} ${y}H${x + r}M${x} ${y - r}V${y + r}`;
    return make("svg:path", { d: path, class: `line ${kind}`, "stroke-width": 2 });
  }
  return make("svg:circle", { cx: x, cy: y, r, class: marker === "ring" ? `line ground ${kind}` : `fill ${kind}` });
}

/** A short sample of a method's line. */
function lineSample(place) {
  const line = make("svg:line", {
    x1: 1,
    y1: 7,
    x2: 33,
    y2: 7,
    "stroke-width": 2.25,
    "stroke-dasharray": lookOf(place).dash.join(" ") || null,
    class: `line ink-${place % COLOURS}`,
  });
  return make(
    "svg:svg",
    { width: 34, height: 14, viewBox: "0 0 34 14", class: "sample", "aria-hidden": "true" },
    line,
    markerShape(place, 17, 7, 3.6),
  );
}
