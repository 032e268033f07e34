// What sites report of themselves: the newest value of every property, and how people read them.

/** Something of a site that can be looked at.
 *  @typedef {{ site: string, kind: string, entity: string }} Entity */
/** An entity with the newest values that it reports.
 *  @typedef {Entity & { query: string, values: Map<string, { value: number, ts: string }> }} Reporter */
/** @import { Change, StreamRow } from "../payloads.d.ts" */

/** @param {string} site
 *  @param {string} kind
 *  @param {string} entity */
export const keyOf = (site, kind, entity) => `${site}|${kind}|${entity}`;

/** The newest values of sys_stream by entity. */
export class Reported {
  constructor() {
    /** @type {Map<string, Reporter>} */
    this.entities = new Map(); // key -> {site, query, kind, entity, values: Map(property -> {value, ts})}
  }

  /** Take in changes of a query that selects ts, site, query, entity, kind, property, value.
   *  @param {Change<StreamRow>[]} changes
   *  @param {boolean} snapshot */
  apply(changes, snapshot) {
    if (snapshot) this.entities.clear();
    for (const { diff, row } of changes) {
      const key = keyOf(row.site, row.kind, row.entity);
      const known = this.entities.get(key);
      const before = known?.values.get(row.property);
      if (diff > 0) {
        const found = known ?? {
          site: row.site,
          query: row.query,
          kind: row.kind,
          entity: row.entity,
          values: new Map(),
        };
        this.entities.set(key, found);
        if (!before || row.ts >= before.ts) found.values.set(row.property, { value: row.value, ts: row.ts });
      } else if (known && before?.ts === row.ts) {
        known.values.delete(row.property); // the newest one has left: nothing newer was reported
        if (!known.values.size) this.entities.delete(key);
      }
    }
  }

  /** @param {string} site
   *  @param {string} kind
   *  @param {string} entity */
  find(site, kind, entity) {
    return this.entities.get(keyOf(site, kind, entity));
  }

  /** A value, or null if it is not reported.
   *  @param {string} site
   *  @param {string} kind
   *  @param {string} entity
   *  @param {string} property */
  value(site, kind, entity, property) {
    return this.find(site, kind, entity)?.values.get(property)?.value ?? null;
  }

  /** All of a kind at a site.
   *  @param {string} site
   *  @param {string} kind */
  of(site, kind) {
    return [...this.entities.values()].filter((found) => found.site === site && found.kind === kind);
  }
}

/** @type {Record<string, [words: string, unit: string]>} */
const WORDS = {
  rows_in: ["rows in", ""],
  rows_out: ["rows out", ""],
  rows_in_per_s: ["rows in per second", "rows/s"],
  rows_out_per_s: ["rows out per second", "rows/s"],
  selectivity: ["selectivity", "ratio"],
  retractions: ["retractions", "rows"],
  busy_ms: ["time worked", "ms"],
  us_per_row: ["time per row", "µs"],
  state_rows: ["rows kept", "rows"],
  rows: ["rows", "rows"],
  batches: ["batches", ""],
  peak_rows: ["max rows", "rows"],
  bytes: ["bytes", "bytes"],
  resyncs: ["resynchronised", "times"],
  stubs: ["shared by", "synopses"],
  retractions_per_s: ["retractions per second", "rows/s"],
  worked_ms: ["time worked", "ms"],
  worked_ms_per_s: ["time worked per second", "ms/s"],
  queued_rows_average: ["rows waiting on average", "rows"],
  rows_held: ["rows kept", "rows"],
  queries: ["queries", ""],
  runs: ["runs", ""],
  failed: ["runs that failed", ""],
  last_ms: ["time of the last run", "ms"],
  steps: ["steps", ""],
  step_ms: ["time per step", "ms"],
  queued_rows: ["rows waiting", "rows"],
  queued_rows_peak: ["max rows waiting", "rows"],
  pending_events: ["events waiting", "events"],
  events_per_s: ["events per second", "events/s"],
  memory_mb: ["memory of the process", "MB"],
  slice_ms: ["slice", "ms"],
  queue_rows: ["max waiting rows", "rows"],
  share_synopses: ["share synopses", "flag"],
  shared: ["shared", "flag"],
  scheduler: ["scheduler", "scheduler"],
  report_seconds: ["report every", "s"],
  events: ["events", ""],
  late: ["late", "events"],
  watermark_lag_s: ["watermark behind by", "s"],
  store: ["store", "store"],
};
/** @type {Record<string, string>} */
const SINGULAR = {
  rows: "row",
  events: "event",
  times: "time",
  synopses: "synopsis",
  bytes: "byte",
  messages: "message",
  readings: "reading",
};
/** @type {[RegExp, string][]} */
const ENDINGS = [
  [/_ms$/, "ms"],
  [/_us$/, "µs"],
  [/_s$|_seconds$/, "s"],
  [/_mb$/, "MB"],
  [/_rows$/, "rows"],
  [/_bytes$/, "bytes"],
  [/^selectivity/, "ratio"],
];
export const SCHEDULERS = ["fifo", "greedy", "chain", "round_robin"]; // in the order of their numbers
/** @type {Record<string, string>} */
export const SCHEDULER_WORDS = { fifo: "FIFO", greedy: "greedy", chain: "Chain", round_robin: "round robin" };

const ORDER = Object.keys(WORDS);

/** Properties in the order people look for them.
 *  @param {Iterable<string>} properties */
export function sorted(properties) {
  /** @param {string} property */
  const place = (property) => (ORDER.includes(property) ? ORDER.indexOf(property) : ORDER.length);
  return [...properties].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

/** How a property is called.
 *  @param {string} property */
export const wordsOf = (property) =>
  WORDS[property]?.[0] ?? property.replace(/_per_s$/, "_per_second").replaceAll("_", " ");

/** The unit of a property, or "".
 *  @param {string} property */
export function unitOf(property) {
  const rate = /^(\w+)_per_s$/.exec(property);
  return (
    WORDS[property]?.[1] ??
    (rate ? `${rate[1].replace(/.*_/, "")}/s` : (ENDINGS.find(([ending]) => ending.test(property))?.[1] ?? ""))
  );
}

/** A number in as many digits as people read.
 *  @param {number | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)} G`;
  if (size >= 1e6) return `${trim(value / 1e6)} M`;
  if (size >= 1e5) return `${trim(value / 1e3)} k`;
  return trim(value);
}

/** @param {number} value */
function trim(value) {
  const size = Math.abs(value);
  return String(Number(value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 1 ? 1 : 3)));
}

/** A property's value with its unit.
 *  @param {string} property
 *  @param {number | null} value */
export function shown(property, value) {
  const unit = unitOf(property);
  if (unit === "flag") return value ? "yes" : "no";
  if (unit === "scheduler") return SCHEDULER_WORDS[SCHEDULERS[value ?? -1]] ?? number(value);
  if (unit === "store") return `s${value}`;
  return withUnit(value, unit);
}

/** The unit of one: of rows/s row/s.
 *  @param {string} unit */
const singular = (unit) => unit.replace(/^\w+/, (word) => SINGULAR[word] ?? word);

/** A number with its unit, if it has one that is written: "1 row", "2 rows", "0.5".
 *  @param {number | null} value
 *  @param {string} unit */
export function withUnit(value, unit) {
  if (["ratio", "flag", "scheduler", "store", ""].includes(unit)) return number(value);
  return `${number(value)} ${number(value) === "1" ? singular(unit) : unit}`;
}
