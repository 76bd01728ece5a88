// Elements of the page. Text is always set as text: a run's folder or a setting may be called anything.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (functions are listeners, null leaves one out) and children (nodes or text). */
function make(name, attributes = {}, ...children) {
  const svg = name.startsWith("svg:");
  const element = svg ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const FORMATS = new Map();
const ORDERS = new Map(); // how a table was sorted, for when it is made anew
let lastId = 0;
const newId = (stem) => `${stem}-${++lastId}`;

/** A number for people: grouped digits, a real minus sign, as many decimals as its size asks for. */
function shown(number, digits) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const size = Math.abs(number);
  const decimals =
    digits ?? (size >= 100 || Number.isInteger(number) ? 0 : size >= 1 ? 2 : size >= 0.001 || size === 0 ? 3 : null);
  if (decimals === null) return number.toExponential(2).replaceAll("-", "−");
  const key = `${decimals} ${digits === undefined ? 0 : decimals}`;
  if (!FORMATS.has(key))
    FORMATS.set(
      key,
      new Intl.NumberFormat("en-US", {
        maximumFractionDigits: decimals,
        minimumFractionDigits: digits === undefined ? 0 : decimals,
      }),
    );
  return FORMATS.get(key).format(number).replace("-", "−");
}

/** Steps as on an axis: 20k, 1.5M. */
function shortNumber(number) {
  const size = Math.abs(number);
  const [unit, letter] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
  const scaled = number / unit;
  return shown(Math.round(scaled * 1000) / 1000, undefined) + letter;
}

/** Seconds as 2 h 05 min. */
function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${shown(hours / 24, 1)} days`;
}

/**
 * A table whose columns sort by a button in their head.
 * columns: {name, number: whether it sorts by size}; rows: lists of cells, each text, a number, a node, {text, value, note},
 * or {value, spread, low, high, runs} of several runs.
 */
function sortedTable(caption, columns, rows, options = {}) {
  const body = make("tbody");
  const heads = columns.map((column, place) => {
    const button = make("button", { type: "button", class: "sort", click: () => sortBy(place) }, column.name);
    return make("th", { scope: "col", class: column.number ? "number" : null }, options.fixed ? column.name : button);
  });
  const keyOf = (cell) => (cell !== null && typeof cell === "object" ? (cell.value ?? cell.text ?? null) : cell);
  const lines = rows.map((cells) => ({
    keys: cells.map((cell) => (cell instanceof Node ? cell.textContent : keyOf(cell))),
    row: make(
      "tr",
      {},
      cells.map((cell, place) => tableCell(cell, columns[place], place === 0)),
    ),
  }));
  const key = [caption.split(":")[0], ...columns.map((column) => column.name)].join();
  const order = ORDERS.get(key) ?? { place: -1, falling: false };
  function sortBy(place) {
    order.falling = order.place === place ? !order.falling : Boolean(columns[place].number);
    order.place = place;
    ORDERS.set(key, order);
    sort();
  }
  function sort() {
    const { place } = order;
    const turn = order.falling ? -1 : 1;
    lines.sort((a, b) => turn * compared(a.keys[place], b.keys[place], turn));
    heads.forEach((head, at) => {
      if (at === place) head.setAttribute("aria-sort", order.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.append(...lines.map((line) => line.row));
  }
  if (order.place >= 0) sort();
  else body.append(...lines.map((line) => line.row));
  const table = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, heads)), body);
  // A table wider than the screen scrolls by itself, and the keyboard must reach that.
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}

/** Order of two keys; what is missing comes last whichever way is sorted. */
function compared(a, b, turn) {
  const gone = (key) => key === null || key === undefined || key === "–" || Number.isNaN(key);
  if (gone(a) || gone(b)) return turn * (gone(a) - gone(b));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function tableCell(cell, column, first) {
  const attributes = { class: column.number ? "number" : null, scope: first ? "row" : null };
  const name = first ? "th" : "td";
  if (cell instanceof Node) return make(name, attributes, cell);
  if (cell === null || cell === undefined) return make(name, attributes, "–");
  if (typeof cell === "number") return make(name, attributes, shown(cell));
  if (typeof cell !== "object") return make(name, attributes, cell);
  const { text, note } = "text" in cell ? cell : estimateText(cell);
  return make(name, attributes, text, note ? make("small", {}, note) : null);
}

/** The mean ± deviation of several runs, and its interval. */
function estimateText({ value, spread, low, high, runs }) {
  const known = (number) => number !== null && number !== undefined;
  const text = shown(value) + (known(value) && known(spread) ? ` ± ${shown(spread)}` : "");
  return { text, note: known(low) ? `[${shown(low)}, ${shown(high)}]` : runs === 1 ? "one run" : "" };
}

/** A chart's data as a table, made when it is first opened. */
function tableBehind(title, build) {
  const details = make("details", { class: "behind" }, make("summary", {}, `Table: ${title}`));
  const fill = () => {
    if (!details.open) return;
    details.querySelector(".scroll")?.remove();
    details.append(build());
  };
  details.addEventListener("toggle", fill);
  return { details, refresh: fill };
}

/** At most `most` places of `count`, spread evenly, with both ends. */
function spreadOut(count, most) {
  if (count <= most) return Array.from({ length: count }, (_, place) => place);
  return Array.from({ length: most }, (_, place) => Math.round((place * (count - 1)) / (most - 1)));
}

/** A button that copies a text; where the browser forbids it, the text is selected instead. */
function copyButton(text, source) {
  const button = make("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}
