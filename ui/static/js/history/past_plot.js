// What a trial gave as a picture: rows over time, or a bar for each row while it raised an alarm.
import { count, fromTo, text } from "../api.js";
import { shape } from "../svg.js";

/** @import { HistoryTrial, PastChange } from "../payloads.d.ts" */
/** @typedef {{ begin: number, end: number, state: "raised" | "unknown" }} Span */

const WIDTH = 720;
const LEFT = 54;
const RIGHT = 8;
const HEIGHT = 160;
const BAR = 20;
const MAX_BARS = 30;
const MAX_POINTS = 600;
const STANDING = ["raised", "acknowledged"];

/** @param {HistoryTrial} trial
 *  @param {PastChange[]} changes all that are known, in their order */
export const picture = (trial, changes) => (trial.alarm ? alarms(trial, changes) : rowsOverTime(trial, changes));

/** Until when the trial has come, in milliseconds.
 *  @param {HistoryTrial} trial */
const reached = (trial) => Date.parse((trial.done && !trial.problem ? trial.until : trial.at) ?? trial.since);

/** @param {HistoryTrial} trial */
function scale(trial) {
  const [begin, end] = [Date.parse(trial.since), Date.parse(trial.until)];
  return (/** @type {number} */ at) => LEFT + ((at - begin) / (end - begin || 1)) * (WIDTH - LEFT - RIGHT);
}

/** @param {HistoryTrial} trial
 *  @param {number} height */
const ends = (trial, height) => [
  shape("text", { x: LEFT, y: height - 5 }, fromTo(trial.since, trial.until)[0]),
  shape("text", { x: WIDTH - RIGHT, y: height - 5, "text-anchor": "end" }, fromTo(trial.since, trial.until)[1]),
];

/** How many rows there were after each change: [time, rows], one for each time.
 *  @param {PastChange[]} changes
 *  @returns {[number, number][]} */
export function counts(changes) {
  /** @type {[number, number][]} */
  const found = [];
  let held = 0;
  for (const { ts, diff } of changes) {
    held += diff;
    const at = Date.parse(ts);
    const last = found.at(-1);
    if (last && last[0] === at) last[1] = held;
    else found.push([at, held]);
  }
  return found;
}

/** Fewer points with the same outline: of each part the least, the greatest and the last.
 *  @param {[number, number][]} points
 *  @returns {[number, number][]} */
export function thinned(points) {
  if (points.length <= MAX_POINTS) return points;
  const size = Math.ceil((3 * points.length) / MAX_POINTS);
  const found = [];
  for (let n = 0; n < points.length; n += size) {
    const part = points.slice(n, n + size);
    const sorted = [...part].sort((a, b) => a[1] - b[1]);
    const kept = new Set([sorted[0], sorted.at(-1), part.at(-1)]);
    found.push(...part.filter((point) => kept.has(point)));
  }
  return found;
}

/** @param {HistoryTrial} trial
 *  @param {PastChange[]} changes */
function rowsOverTime(trial, changes) {
  const points = thinned(counts(changes));
  const most = Math.max(1, ...points.map(([, rows]) => rows));
  const x = scale(trial);
  const y = (/** @type {number} */ rows) => 12 + (1 - rows / most) * (HEIGHT - 34);
  const label = `Rows over time, at most ${most}; of a stream, rows emitted so far`;
  const steps = points.flatMap(([at, rows], n) => [`${x(at)},${y(points[n - 1]?.[1] ?? 0)}`, `${x(at)},${y(rows)}`]);
  const last = points.at(-1);
  if (last) steps.push(`${x(Math.max(last[0], reached(trial)))},${y(last[1])}`);
  return shape(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    [0, most].map((value) => [
      shape("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)),
    ]),
    shape("polyline", { class: "count", points: steps.join(" ") }),
    ends(trial, HEIGHT),
  );
}

/** For each row, by its values as text, when it raised the alarm.
 *  @param {PastChange[]} changes
 *  @param {number} end when what has not cleared ends
 *  @returns {Map<string, Span[]>} */
export function spans(changes, end) {
  /** @type {Map<string, Span[]>} */
  const found = new Map();
  for (const { ts, row, alarm } of changes) {
    if (alarm === null) continue;
    const name = Object.values(row).map(text).join(", ");
    const own = found.get(name) ?? [];
    const at = Date.parse(ts);
    const open = own.at(-1);
    if (open && open.end === Infinity) open.end = at;
    if (STANDING.includes(alarm)) own.push({ begin: at, end: Infinity, state: "raised" });
    if (alarm === "unknown") own.push({ begin: at, end: Infinity, state: "unknown" });
    if (own.length) found.set(name, own);
  }
  for (const own of found.values()) for (const each of own) each.end = Math.min(each.end, Math.max(end, each.begin));
  return found;
}

/** @param {HistoryTrial} trial
 *  @param {PastChange[]} changes */
function alarms(trial, changes) {
  const all = [...spans(changes, reached(trial))];
  const shown = all.slice(0, MAX_BARS);
  const more = all.length - shown.length;
  const height = 26 + (shown.length + (more ? 1 : 0)) * 2 * BAR;
  const x = scale(trial);
  const bars = shown.flatMap(([name, own], n) => [
    shape("text", { x: LEFT, y: n * 2 * BAR + 15 }, name.slice(0, 100)),
    ...own.map(({ begin, end, state }) =>
      shape(
        "rect",
        { class: state, x: x(begin), y: n * 2 * BAR + BAR, width: Math.max(x(end) - x(begin), 2), height: BAR - 6 },
        shape(
          "title",
          {},
          `${state} ${fromTo(new Date(begin).toISOString(), new Date(end).toISOString()).join(" to ")}`,
        ),
      ),
    ),
  ]);
  if (more) bars.push(shape("text", { x: LEFT, y: shown.length * 2 * BAR + 15 }, `and ${count(more, "more row")}`));
  const label = `Alarm ${trial.alarm}: ${count(all.length, "row")} raised it`;
  return shape(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    bars,
    ends(trial, height),
  );
}
