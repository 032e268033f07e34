// The rows of any query as lines over time: what is time, what is a number, what names a line.
import { unitOf, wordsOf } from "./reported.js";

export const MAX_SERIES = 24;
export const MAX_POINTS = 900;

const NUMBERS = new Set(["INTEGER", "DOUBLE"]);

/** Which columns play which part; a query without a number cannot be drawn. */
export function partsOf(columns) {
  const time = columns.find(({ type }) => type === "TIMESTAMP")?.name ?? null;
  const values = columns.filter(({ type }) => NUMBERS.has(type)).map(({ name }) => name);
  const names = columns.filter(({ name, type }) => name !== time && !NUMBERS.has(type)).map(({ name }) => name);
  return { time, values, names };
}

/** Lines of one graph, at most MAX_SERIES of MAX_POINTS points each. */
export class SeriesSet {
  constructor(columns) {
    this.parts = partsOf(columns);
    this.series = new Map(); // key -> {names, column, unit, points: [{t, v}]}
    this.left = new Set(); // lines for which there was no room
  }

  /** Take in changes. With a time column a row is a point; without one it is what holds from now on. */
  apply(changes) {
    const { time, values, names } = this.parts;
    const gone = new Map();
    for (const { diff, row, ts } of changes) {
      for (const column of values) {
        const key = JSON.stringify([column, ...names.map((name) => row[name])]);
        if (diff < 0) {
          if (!time) gone.set(key, ts);
          continue;
        }
        gone.delete(key);
        const at = Date.parse(time ? row[time] : ts);
        if (Number.isFinite(at)) this.add(key, row, column, at, row[column]);
      }
    }
    // Rows come after those they replace, or before: what came again in the same changes is not gone.
    for (const [key, ts] of gone)
      if (this.series.has(key) && !changes.some(({ diff, row }) => diff > 0 && this.keyFits(key, row)))
        this.push(this.series.get(key), Date.parse(ts), null);
  }

  keyFits(key, row) {
    const [, ...values] = JSON.parse(key);
    return this.parts.names.every((name, index) => row[name] === values[index]);
  }

  add(key, row, column, t, v) {
    let found = this.series.get(key);
    if (!found) {
      if (this.series.size >= MAX_SERIES) {
        if (this.left.size < 10_000) this.left.add(key);
        return;
      }
      const property = "property" in row ? row.property : column === "value" ? "" : column;
      found = {
        names: Object.fromEntries(this.parts.names.map((name) => [name, row[name]])),
        column,
        unit: unitOf(property || ""),
        points: [],
      };
      this.series.set(key, found);
    }
    this.push(found, t, v);
  }

  /** Points stay in the order of time; one of a time that is there replaces it. */
  push({ points }, t, v) {
    if (Number.isNaN(t)) return;
    let place = points.length;
    while (place > 0 && points[place - 1].t > t) place -= 1;
    if (place > 0 && points[place - 1].t === t) points[place - 1].v = v;
    else points.splice(place, 0, { t, v });
    if (points.length > MAX_POINTS) points.splice(0, points.length - MAX_POINTS);
  }

  /** Lines in order, each with a label that says only what tells it from the others. */
  labelled() {
    const all = [...this.series.values()];
    const same = (name, other) => all.every(({ names }) => names[name] === names[other]);
    const different = this.parts.names.filter((name) => new Set(all.map(({ names }) => names[name])).size > 1);
    const varying = different.filter((name, index) => !different.slice(0, index).some((other) => same(name, other)));
    const label = ({ names, column }) => {
      const said = varying.map((name) => (name === "property" ? wordsOf(names[name]) : String(names[name])));
      if (this.parts.values.length > 1) said.push(wordsOf(column));
      if (!said.length) said.push("property" in names ? wordsOf(names.property) : wordsOf(column));
      return said.join(" · ");
    };
    const sorted = all.map((one) => ({ ...one, label: label(one) }));
    return sorted.sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
  }

  /** The newest time of all points, or null. */
  get newest() {
    return [...this.series.values()].reduce(
      (last, { points }) => (points.length ? Math.max(last ?? -Infinity, points[points.length - 1].t) : last),
      null,
    );
  }
}
