// A plot of one column of the lake: its average against time, with the least and the greatest value around it.
import { text } from "../api.js";
import { shape } from "../svg.js";

/** @import { LakeSample } from "../payloads.d.ts" */
/** @typedef {{ at: number, low: number, high: number, mean: number }} Bucket */

const WIDTH = 420;
const HEIGHT = 120;
const LEFT = 58;
const TOP = 10;
const BOTTOM = 20;
const LABELS = 3;

/** The columns that have a plot.
 *  @param {LakeSample} sample */
export const plotted = (sample) =>
  sample.series.filter((name) => name.endsWith("_avg")).map((name) => name.slice(0, -"_avg".length));

/** The intervals in which a column has values.
 *  @param {LakeSample} sample
 *  @param {string} column
 *  @returns {Bucket[]} */
export function bucketsOf(sample, column) {
  const place = (/** @type {string} */ what) => sample.series.indexOf(`${column}_${what}`);
  const [low, high, mean] = [place("min"), place("max"), place("avg")];
  const found = [];
  for (const row of sample.buckets) {
    if (row[mean ?? -1] === null) continue;
    const at = Date.parse(String(row[0]));
    found.push({ at, low: Number(row[low ?? -1]), high: Number(row[high ?? -1]), mean: Number(row[mean ?? -1]) });
  }
  return found;
}

/** Runs of buckets without a gap between them: no line is drawn where nothing was read.
 *  @param {Bucket[]} buckets
 *  @param {number} width of a bucket, in milliseconds */
export function runsOf(buckets, width) {
  /** @type {Bucket[][]} */
  const runs = [];
  for (const bucket of buckets) {
    const run = runs.at(-1);
    const before = run?.at(-1);
    if (run && before && bucket.at - before.at <= 1.5 * width) run.push(bucket);
    else runs.push([bucket]);
  }
  return runs;
}

/** @param {LakeSample} sample
 *  @param {string} column
 *  @param {string} words what the column is */
export function plot(sample, column, words) {
  const buckets = bucketsOf(sample, column);
  const begin = Date.parse(sample.since ?? "");
  const end = Date.parse(sample.until ?? "");
  const low = Math.min(...buckets.map((bucket) => bucket.low));
  const high = Math.max(...buckets.map((bucket) => bucket.high));
  const pad = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  const x = (/** @type {number} */ at) => LEFT + ((at - begin) / (end - begin || 1)) * (WIDTH - LEFT - 6);
  const y = (/** @type {number} */ value) =>
    TOP + (1 - (value - low + pad) / (high - low + 2 * pad)) * (HEIGHT - TOP - BOTTOM);
  const width = (end - begin) / 120; // as the static engine divides an interval
  const label = buckets.length ? `${words}: from ${text(low)} to ${text(high)}` : `${words}: no value in this interval`;
  const svg = shape("svg", { class: "kept-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  if (!buckets.length) {
    svg.append(shape("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no value in this interval"));
    return svg;
  }
  for (let n = 0; n < LABELS; n += 1) {
    const value = low + ((high - low) * n) / (LABELS - 1);
    if (n && high === low) break;
    svg.append(
      shape("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: y(value), y2: y(value) }),
      shape("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, short(value)),
    );
  }
  for (const run of runsOf(buckets, width)) svg.append(...drawn(run, x, y));
  const days = end - begin > 36 * 3_600_000;
  svg.append(
    shape("text", { x: LEFT, y: HEIGHT - 4 }, clock(begin, days)),
    shape("text", { x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, clock(end, days)),
  );
  return svg;
}

/** A run of buckets: a band and a line, or a dot where there is only one.
 *  @param {Bucket[]} run
 *  @param {(at: number) => number} x
 *  @param {(value: number) => number} y */
function drawn(run, x, y) {
  if (run.length === 1) {
    return run.map(({ at, mean }) => shape("circle", { class: "dot", cx: x(at), cy: y(mean), r: 2 }));
  }
  const upper = run.map(({ at, high }) => `${x(at)},${y(high)}`);
  const lower = run.map(({ at, low }) => `${x(at)},${y(low)}`).reverse();
  return [
    shape("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
    shape("polyline", { class: "mean", points: run.map(({ at, mean }) => `${x(at)},${y(mean)}`).join(" ") }),
  ];
}

/** @param {number} value */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size && size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toPrecision(4)));
}

/** @param {number} at
 *  @param {boolean} days */
function clock(at, days) {
  const moment = new Date(at);
  return days
    ? moment.toLocaleDateString([], { day: "numeric", month: "short" })
    : moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
