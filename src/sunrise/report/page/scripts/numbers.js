// Numbers of runs: how they are packed, put on one axis, smoothed and summarised. Nothing here touches the page.

/**
 * An array as the report packs it: "r start step count" is a progression, "d…" are doubles, "f…" floats,
 * "q low high …" sixteen bits between two bounds of which the last one means that there is no number.
 */
function unpacked(text) {
  if (text === null || text === undefined) return null;
  const kind = text[0];
  if (kind === "r") {
    const [start, step, count] = text.slice(1).split(" ").map(Number);
    return Float64Array.from({ length: count }, (_, place) => start + place * step);
  }
  if (kind === "q") {
    const [low, high, packed] = text.slice(1).split(" ");
    const steps = new Uint16Array(bytesOf(packed));
    const [bottom, size] = [Number(low), (Number(high) - Number(low)) / 65534];
    return Float64Array.from(steps, (step) => (step === 65535 ? NaN : bottom + step * size));
  }
  return kind === "d"
    ? new Float64Array(bytesOf(text.slice(1)))
    : Float64Array.from(new Float32Array(bytesOf(text.slice(1))));
}

const unpackedAll = (columns) =>
  Object.fromEntries(Object.entries(columns).map(([name, packed]) => [name, unpacked(packed)]));

function bytesOf(packed) {
  const binary = atob(packed);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place++) bytes[place] = binary.charCodeAt(place);
  return bytes.buffer;
}

/** Each value the mean of `width` values about it (fewer at the ends); what is no number is left out. */
function smoothed(values, width) {
  if (width <= 1) return values;
  const half = Math.floor(width / 2);
  const result = new Float64Array(values.length);
  for (let place = 0; place < values.length; place++) {
    const reach = Math.min(half, place, values.length - 1 - place); // symmetric, so that an end is not shifted
    let sum = 0;
    let count = 0;
    for (let near = place - reach; near <= place + reach; near++) {
      if (!Number.isNaN(values[near])) {
        sum += values[near];
        count += 1;
      }
    }
    result[place] = count ? sum / count : NaN;
  }
  return result;
}

/** One axis for several: all their points, or where those are too many, evenly spaced ones. */
function commonAxis(axes, most = 1200) {
  const first = axes[0];
  if (!first) return new Float64Array(0);
  const equal = (axis) =>
    axis === first || (axis.length === first.length && axis.every((x, place) => x === first[place]));
  if (axes.every(equal)) return first;
  const union = Float64Array.from(new Set(axes.flatMap((axis) => Array.from(axis)))).sort();
  if (union.length <= most) return union;
  const [low, high] = [union[0], union[union.length - 1]];
  return Float64Array.from({ length: most }, (_, place) => low + ((high - low) * place) / (most - 1));
}

/** Values at the points of another axis, by straight lines; null beyond their own ends. */
function placed(axis, values, points) {
  const result = new Array(points.length).fill(null);
  let place = 0;
  for (let at = 0; at < points.length; at++) {
    const x = points[at];
    if (!(x >= axis[0]) || x > axis[axis.length - 1]) continue;
    while (axis[place + 1] < x) place += 1;
    const value =
      axis[place] === x || place + 1 >= axis.length
        ? values[place]
        : axis[place + 1] === x
          ? values[place + 1]
          : values[place] + ((values[place + 1] - values[place]) * (x - axis[place])) / (axis[place + 1] - axis[place]);
    if (!Number.isNaN(value)) result[at] = value;
  }
  return result;
}

const RESAMPLES = 500;
const ALL_UP_TO = 4; // so few seeds can be drawn in so few ways that all are taken
const drawn = new Map();

/** Which of n seeds each of the resamples takes: all ways, or many, by a generator that is the same on every page. */
function resamples(n) {
  if (!drawn.has(n)) {
    const count = n <= ALL_UP_TO ? n ** n : RESAMPLES;
    const picks = new Uint16Array(count * n);
    let state = 0x9e3779b9 ^ n;
    for (let place = 0; place < picks.length; place++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      const way = Math.floor(place / n);
      picks[place] = n <= ALL_UP_TO ? Math.floor(way / n ** (place % n)) % n : (state >>> 0) % n;
    }
    drawn.set(n, { picks, edge: Math.floor(0.025 * count) });
  }
  return drawn.get(n);
}

/**
 * Mean over seeds and its 95 % bootstrap interval, point by point. Where a seed has no value there is no mean:
 * a mean over fewer seeds than before would jump for no reason of the method's.
 */
function summary(seeds) {
  const n = seeds.length;
  const count = n ? seeds[0].length : 0;
  const mean = new Array(count).fill(null);
  const low = new Array(count).fill(null);
  const high = new Array(count).fill(null);
  const { picks, edge } = n > 1 ? resamples(n) : { picks: null, edge: 0 };
  const least = new Float64Array(edge + 1);
  const most = new Float64Array(edge + 1);
  const values = new Float64Array(n);
  for (let at = 0; at < count; at++) {
    let sum = 0;
    let whole = n > 0;
    for (let seed = 0; seed < n && whole; seed++) {
      const value = seeds[seed][at];
      whole = value !== null;
      values[seed] = value;
      sum += value;
    }
    if (!whole) continue;
    mean[at] = sum / n;
    if (!picks) continue;
    least.fill(Infinity);
    most.fill(-Infinity);
    for (let pick = 0; pick < picks.length; pick += n) {
      let total = 0;
      for (let seed = 0; seed < n; seed++) total += values[picks[pick + seed]];
      if (total < least[edge]) keep(least, total, 1);
      if (total > most[edge]) keep(most, total, -1);
    }
    low[at] = least[edge] / n;
    high[at] = most[edge] / n;
  }
  return { mean, low, high };
}

/** Put a value in its place among the least (or with turn -1 the greatest) seen. */
function keep(kept, value, turn) {
  let place = kept.length - 1;
  while (place > 0 && turn * kept[place - 1] > turn * value) {
    kept[place] = kept[place - 1];
    place -= 1;
  }
  kept[place] = value;
}

/** The place of the point nearest to x. */
function nearest(axis, x) {
  let low = 0;
  let high = axis.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (axis[middle] < x) low = middle;
    else high = middle;
  }
  return x - axis[low] <= axis[high] - x ? low : high;
}
