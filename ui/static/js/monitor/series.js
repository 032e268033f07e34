// The rows of any query as lines over time: what is time, what is a number, what names a line.
import { unitOf, wordsOf } from "./reported.js";

/** @typedef {{ t: number, v: number | null }} Dot v at t, in milliseconds; null: a gap */
/** @typedef {{ names: Row, column: string, unit: string, points: Dot[] }} Line */
/** @import { Change, Column, Row } from "../payloads.d.ts" */

export const MAX_SERIES = 24;
export const MAX_POINTS = 900;

const NUMBERS = new Set(["INTEGER", "DOUBLE"]);

/** Which columns play which part; a query without a number cannot be drawn.
 *  @param {Column[]} columns */
export function partsOf(columns) {
  const time = columns.find(({ type }) => type === "TIMESTAMP")?.name ?? null;
  const values = columns.filter(({ type }) => NUMBERS.has(type)).map(({ name }) => name);
  const names = columns.filter(({ name, type }) => name !== time && !NUMBERS.has(type)).map(({ name }) => name);
  return { time, values, names };
}

/** Lines of one graph, at most MAX_SERIES of MAX_POINTS points each. */
export class SeriesSet {
  /** @param {Column[]} columns */
  constructor(columns) {
    this.parts = partsOf(columns);
    /** @type {Map<string, Line>} */
    this.series = new Map(); // key -> {names, column, unit, points: [{t, v}]}
    /** @type {Set<string>} */
    this.left = new Set(); // lines for which there was no room
  }

  /** Take in changes. With a time column a row is a point; without one it is what holds from now on.
   *  @param {Change[]} changes */
  apply(changes) {
    const { time, values, names } = this.parts;
    /** @type {Map<string, string>} */
    const gone = new Map(); // key -> time of the change that took it back
    for (const { diff, row, ts } of changes) {
      for (const column of values) {
        const key = JSON.stringify([column, ...names.map((name) => row[name])]);
        if (diff > 0) {
          gone.delete(key);
          this.add(key, row, column, Date.parse(time ? String(row[time]) : ts));
        } else if (!time) gone.set(key, ts);
      }
    }
    // Rows come after those they replace, or before: what came again in the same changes is not gone.
    /** @param {string} key */
    const cameAgain = (key) => changes.some(({ diff, row }) => diff > 0 && this.keyFits(key, row));
    for (const [key, ts] of gone) {
      const found = this.series.get(key);
      if (found && !cameAgain(key)) this.push(found, Date.parse(ts), null);
    }
  }

  /** @param {string} key
   *  @param {Row} row */
  keyFits(key, row) {
    const [, ...values] = JSON.parse(key);
    return this.parts.names.every((name, index) => row[name] === values[index]);
  }

  /** @param {string} key
   *  @param {Row} row
   *  @param {string} column
   *  @param {number} t */
  add(key, row, column, t) {
    if (!Number.isFinite(t)) return;
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
        unit: unitOf(String(property || "")),
        points: [],
      };
      this.series.set(key, found);
    }
    const value = row[column];
    this.push(found, t, typeof value === "number" ? value : null);
  }

  /** Points stay in the order of time; one of a time that is there replaces it.
   *  @param {Line} line
   *  @param {number} t
   *  @param {number | null} v */
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
    /** @param {string} name
     *  @param {string} other */
    const same = (name, other) => all.every(({ names }) => names[name] === names[other]);
    const different = this.parts.names.filter((name) => new Set(all.map(({ names }) => names[name])).size > 1);
    const varying = different.filter((name, index) => !different.slice(0, index).some((other) => same(name, other)));
    /** @param {Line} line */
    const label = ({ names, column }) => {
      const said = varying.map((name) => (name === "property" ? wordsOf(String(names[name])) : String(names[name])));
      if (this.parts.values.length > 1) said.push(wordsOf(column));
      if (!said.length) said.push("property" in names ? wordsOf(String(names.property)) : wordsOf(column));
      return said.join(" · ");
    };
    const sorted = all.map((one) => ({ ...one, label: label(one) }));
    return sorted.sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
  }

  /** The newest time of all points, or null. */
  get newest() {
    const times = [...this.series.values()].flatMap(({ points }) => points.slice(-1).map(({ t }) => t));
    return times.length ? Math.max(...times) : null;
  }
}
