// A line chart over time: two axes at most, ticks that people count in, a line to read values at.
import { fill, make } from "../api.js";
import { shape } from "../svg.js";
import { number, withUnit } from "./reported.js";

/** @typedef {{ label: string, unit: string, points: Dot[] }} Drawn */
/** @typedef {{ left: number, right: number, top: number, bottom: number }} Plot in pixels */
/** @typedef {{ marks: number[], y: (v: number) => number }} Scale */
/** @import { Dot } from "./series.js" */

const MARGIN = { left: 46, right: 12, right2: 46, top: 20, bottom: 22 };
const HEIGHT = 190;
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600]; // seconds between marks of time
/** @type {Record<string, string>} */
const AXIS_NAMES = { ratio: "selectivity", flag: "", scheduler: "", store: "" };
const COLOURS = 8; // then they come again, dashed

/** Marks from 0, or below, to a round number at or above the largest value.
 *  @param {number} low
 *  @param {number} high
 *  @param {number} wanted */
export function ticks(low, high, wanted = 4) {
  const span = high - Math.min(low, 0) || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => span / size <= wanted) || 10 * power;
  const first = Math.floor(Math.min(low, 0) / step);
  const last = Math.max(Math.ceil((high || step) / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** Units for the left and the right axis: the first two that occur; further ones go by the left.
 *  @param {Drawn[]} series */
export function axesOf(series) {
  const units = [...new Set(series.map(({ unit }) => unit))];
  const left = units.find((unit) => unit !== "ratio") ?? units[0] ?? "";
  return { left, right: units.find((unit) => unit !== left) ?? null };
}

export class Chart {
  /** @param {Element} place where it is drawn, and the list of its lines below */
  constructor(place) {
    this.svg = shape("svg", { class: "chart", role: "img" });
    this.legend = make("ul", { class: "chart-legend" });
    place.append(this.svg, this.legend);
    /** @type {number | null} */
    this.pointer = null; // where it is, in pixels from the left
    /** @type {[Drawn[], number, number, boolean] | null} */
    this.drawn = null;
    this.svg.addEventListener("pointermove", (event) => {
      this.pointer = event.clientX - this.svg.getBoundingClientRect().x;
      if (this.drawn) this.draw(...this.drawn);
    });
    this.svg.addEventListener("pointerleave", () => {
      this.pointer = null;
      if (this.drawn) this.draw(...this.drawn);
    });
  }

  /** Draw lines [{label, unit, points: [{t, v}]}] from `begin` to `end` (milliseconds).
   *  @param {Drawn[]} series
   *  @param {number} begin
   *  @param {number} end
   *  @param {boolean} stepped values hold until the next: steps up to the end instead of slopes */
  draw(series, begin, end, stepped) {
    this.drawn = [series, begin, end, stepped];
    const width = Math.max(this.svg.clientWidth, 240);
    const axes = axesOf(series);
    const plot = {
      left: MARGIN.left,
      right: width - (axes.right === null ? MARGIN.right : MARGIN.right2),
      top: MARGIN.top,
      bottom: HEIGHT - MARGIN.bottom,
    };
    /** @param {number} t */
    const x = (t) => plot.left + ((t - begin) / (end - begin)) * (plot.right - plot.left);
    const visible = series.map((one) => ({ ...one, points: seen(one.points, begin) }));
    const scales = Object.fromEntries(
      [axes.left, axes.right]
        .filter((unit) => unit !== null)
        .map((unit) => [
          unit,
          this.scale(
            visible.filter((one) => (one.unit === axes.right ? axes.right : axes.left) === unit),
            plot,
          ),
        ]),
    );
    /** @param {Drawn} one */
    const scaleOf = (one) => scales[one.unit === axes.right ? axes.right : axes.left];
    const lines = visible.map((one, index) =>
      shape("path", {
        class: `series series-${index % COLOURS}${index >= COLOURS ? " dashed" : ""}`,
        d: path(one.points, x, scaleOf(one).y, stepped ? end : null),
      }),
    );
    const clip = shape(
      "svg",
      {
        x: plot.left,
        y: 0,
        width: Math.max(plot.right - plot.left, 1),
        height: HEIGHT,
        viewBox: `${plot.left} 0 ${Math.max(plot.right - plot.left, 1)} ${HEIGHT}`,
      },
      lines,
    );
    const at = this.pointer === null ? null : Math.min(Math.max(this.pointer, plot.left), plot.right);
    const moment = at === null ? null : begin + ((at - plot.left) / (plot.right - plot.left)) * (end - begin);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(
      ...this.grid(scales[axes.left], plot),
      ...this.times(begin, end, x, plot),
      ...this.axis(scales[axes.left], axes.left, plot.left - 6, "end", plot),
      ...(axes.right === null ? [] : this.axis(scales[axes.right], axes.right, plot.right + 6, "start", plot)),
      clip,
      ...(at === null
        ? []
        : [
            shape("path", { class: "cursor", d: `M${at} ${plot.top}V${plot.bottom}` }),
            shape("text", { class: "tick", x: at, y: plot.top - 8, "text-anchor": "middle" }, clock(moment ?? end)),
          ]),
    );
    this.list(visible, moment, stepped);
  }

  /** @param {Drawn[]} series
   *  @param {Plot} plot
   *  @returns {Scale} */
  scale(series, plot) {
    const values = series.flatMap(({ points }) => points.map(({ v }) => v)).filter((v) => v !== null);
    const marks = ticks(Math.min(...values, 0), values.length ? Math.max(...values, 0) : 1);
    const [low, high] = [marks[0], marks[marks.length - 1]];
    return { marks, y: (v) => plot.bottom - ((v - low) / (high - low)) * (plot.bottom - plot.top) };
  }

  /** @param {Scale} scale
   *  @param {Plot} plot */
  grid({ marks, y }, plot) {
    return marks.map((mark) => shape("path", { class: "grid", d: `M${plot.left} ${y(mark)}H${plot.right}` }));
  }

  /** @param {Scale} scale
   *  @param {string} unit
   *  @param {number} x
   *  @param {"start" | "end"} anchor
   *  @param {Plot} plot */
  axis({ marks, y }, unit, x, anchor, plot) {
    const name = AXIS_NAMES[unit] ?? unit;
    return [
      ...marks.map((mark) => shape("text", { class: "tick", x, y: y(mark) + 4, "text-anchor": anchor }, number(mark))),
      name &&
        shape(
          "text",
          {
            class: "unit",
            x: anchor === "end" ? 4 : x + MARGIN.right2 - 10,
            y: plot.top - 8,
            "text-anchor": anchor === "end" ? "start" : "end",
          },
          name,
        ),
    ].filter(Boolean);
  }

  /** @param {number} begin
   *  @param {number} end
   *  @param {(t: number) => number} x
   *  @param {Plot} plot */
  times(begin, end, x, plot) {
    const most = Math.max(Math.floor((plot.right - plot.left) / 80), 2);
    const step = (STEPS.find((seconds) => (end - begin) / 1000 / seconds <= most) ?? 7200) * 1000;
    /** @type {number[]} */
    const marks = [];
    for (let t = Math.ceil(begin / step) * step; t <= end; t += step) if (x(t) < plot.right - 18) marks.push(t);
    return marks.flatMap((t) => [
      shape("path", { class: "grid", d: `M${x(t)} ${plot.top}V${plot.bottom}` }),
      shape("text", { class: "tick", x: x(t), y: plot.bottom + 15, "text-anchor": "middle" }, clock(t)),
    ]);
  }

  /** The lines by name with their values: the newest, or those at the pointer.
   *  @param {Drawn[]} series
   *  @param {number | null} moment
   *  @param {boolean} stepped */
  list(series, moment, stepped) {
    fill(
      this.legend,
      series.map(({ label, unit, points }, index) => {
        const value = moment === null ? points[points.length - 1]?.v : valueAt(points, moment, stepped);
        return make(
          "li",
          {},
          make("span", { class: `swatch series-${index % COLOURS}${index >= COLOURS ? " dashed" : ""}` }),
          make("span", { class: "label" }, label),
          make("b", {}, value === null || value === undefined ? "–" : withUnit(value, unit)),
        );
      }),
    );
    const said = series.map(({ label, points }) => `${label} ${number(points[points.length - 1]?.v)}`).join(", ");
    this.svg.setAttribute("aria-label", said || "no points yet");
  }
}

/** Points from `begin` on, and the one before.
 *  @param {Dot[]} points
 *  @param {number} begin */
function seen(points, begin) {
  let first = points.findIndex(({ t }) => t >= begin);
  if (first < 0) first = points.length;
  return points.slice(Math.max(first - 1, 0));
}

/** @param {Dot[]} points
 *  @param {number} moment
 *  @param {boolean} stepped */
function valueAt(points, moment, stepped) {
  const after = points.findIndex(({ t }) => t > moment);
  const before = after < 0 ? points.length - 1 : after - 1;
  if (stepped || after < 0) return points[before]?.v;
  const nearer = before >= 0 && moment - points[before].t < points[after].t - moment ? before : after;
  return points[nearer]?.v;
}

/** An SVG path; a missing value is a gap.
 *  @param {Dot[]} points
 *  @param {(t: number) => number} x
 *  @param {(v: number) => number} y
 *  @param {number | null} holdUntil */
function path(points, x, y, holdUntil) {
  let d = "";
  /** @type {number | null} */
  let last = null;
  for (const { t, v } of points) {
    if (v === null) {
      if (last !== null && holdUntil !== null) d += `H${round(x(t))}`;
      last = null;
      continue;
    }
    const place = `${round(x(t))} ${round(y(v))}`;
    if (last === null) d += `M${place}`;
    else if (holdUntil !== null) d += `H${round(x(t))}V${round(y(v))}`;
    else d += `L${place}`;
    last = v;
  }
  if (last !== null && holdUntil !== null) d += `H${round(x(holdUntil))}`;
  else if (points.length === 1 && last !== null) d += "h0.01"; // one point is a dot
  return d;
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
/** @param {number} t */
const clock = (t) => new Date(t).toTimeString().slice(0, 8);
