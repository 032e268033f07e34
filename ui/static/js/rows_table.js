// A table that follows a relation: sorted, rows changed in place, inserts green, deletes fading red.
import { make, text } from "./api.js";

/** A row of the table: how often it is there, and before the changes that are not shown yet.
 *  @typedef {{ row: Row, weight: number, before: number, element: HTMLTableRowElement | null,
 *    fresh?: boolean, changed?: boolean, forgotten?: boolean }} Entry */
/** @import { Change, Column, Row, Value } from "./payloads.d.ts" */

const MAX_SHOWN = 1000;
const AT_ONCE = 3000; // rows up to which every change is shown at once
const PAUSES = 3; // how much longer than it takes to show many rows they stay as they are
const FADE_MS = 1200;
const ONE_LINE = 32; // characters of a text that is not broken
const ORDER = new Intl.Collator("en", { numeric: true });

/** Order values as people do: NULL first, numbers by size, texts with numbers inside by both.
 *  @param {Value | undefined} a
 *  @param {Value | undefined} b */
export function compare(a, b) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return ORDER.compare(String(a), String(b));
}

/** @param {Value} value */
export function cell(value) {
  if (value === null) return make("td", { class: "null" }, text(value));
  if (typeof value !== "number") {
    return make("td", { class: String(value).length <= ONE_LINE ? "tight" : null }, String(value));
  }
  return make("td", { class: "number" }, text(value));
}

/** The row that an event is about.
 *  @param {Event} event */
const rowAt = ({ target }) => (target instanceof Element ? target.closest("tr") : null);

export class RowsTable {
  /** @param {HTMLTableElement} table
   *  @param {((row: Row) => void) | null} picked called with a row when it is clicked, or
   *    Enter pressed on it; null: rows do nothing */
  constructor(table, picked = null) {
    this.table = table;
    this.body = table.tBodies[0];
    /** @type {Column[]} */
    this.columns = [];
    /** @type {Map<string, string>} */
    this.marked = new Map(); // text of a row -> class
    this.picked = picked;
    this.stream = false;
    this.sort = { by: 0, up: true };
    /** @type {Map<string, Entry>} */
    this.entries = new Map(); // by the text of a row
    /** @type {Entry[]} */
    this.order = []; // the first entries, as shown
    /** @type {Map<string, Entry>} */
    this.touched = new Map(); // by the text of a row: those not shown as they are now
    this.quiet = false; // whether a snapshot is among what is not shown yet
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
    this.pause = 0;
    this.body.addEventListener("click", (event) => this.pick(event));
    this.body.addEventListener("keydown", (event) => this.press(event));
  }

  /** Whether rows can be clicked now.
   *  @param {boolean} value */
  set pickable(value) {
    this.table.classList.toggle("pickable", value);
  }

  /** @param {Event} event */
  pick(event) {
    if (!this.table.classList.contains("pickable") || String(getSelection())) return;
    const element = rowAt(event);
    const entry = this.order.find((candidate) => candidate.element === element);
    if (!entry) return;
    this.mark([entry.row], "asked");
    this.picked?.(entry.row);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const row = rowAt(event);
    if (event.key === "Enter") this.pick(event);
    const next =
      event.key === "ArrowDown"
        ? row?.nextElementSibling
        : event.key === "ArrowUp"
          ? row?.previousElementSibling
          : null;
    if (!(next instanceof HTMLElement)) return;
    event.preventDefault();
    next.focus();
  }

  /** Give some rows a class of their own, and take it from all others.
   *  @param {Row[]} rows
   *  @param {string} name */
  mark(rows, name) {
    for (const [key, known] of this.marked) if (known === name) this.marked.delete(key);
    for (const row of rows) this.marked.set(JSON.stringify(row), name);
    for (const [key, entry] of this.entries) entry.element?.classList.toggle(name, this.marked.get(key) === name);
  }

  /** Begin anew with columns [{name, type, unit}]; of a stream the newest rows are kept, by its last column.
   *  @param {Column[]} columns
   *  @param {{ stream?: boolean }} how */
  start(columns, { stream = false } = {}) {
    this.columns = columns;
    this.stream = stream;
    this.sort = stream ? { by: columns.length - 1, up: false } : { by: 0, up: true };
    this.clear();
    this.head();
  }

  /** Show other units of the same columns.
   *  @param {Column[]} columns */
  measure(columns) {
    if (columns.every((column, index) => column.unit === this.columns[index]?.unit)) return;
    this.columns = columns;
    this.head();
  }

  clear() {
    this.marked.clear();
    this.entries.clear();
    this.order = [];
    this.touched.clear();
    this.quiet = false;
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.body.replaceChildren();
  }

  get size() {
    return this.entries.size;
  }

  head() {
    const headers = this.columns.map(({ name, type, unit }, index) => {
      const sorted = this.sort.by === index ? (this.sort.up ? "ascending" : "descending") : null;
      const number = ["INTEGER", "DOUBLE"].includes(type);
      return make(
        "th",
        { title: type, class: number ? "number" : null, "aria-sort": sorted },
        make(
          "button",
          { type: "button", onclick: () => this.sortBy(index) },
          name,
          unit ? make("span", { class: "unit" }, ` ${unit}`) : "",
          make("span", { "aria-hidden": "true" }, sorted ? (this.sort.up ? " ▴" : " ▾") : ""),
        ),
      );
    });
    this.table.tHead?.replaceChildren(make("tr", {}, headers));
  }

  /** @param {number} index */
  sortBy(index) {
    this.sort = { by: index, up: this.sort.by === index ? !this.sort.up : true };
    this.head();
    this.body.replaceChildren();
    for (const entry of this.order) entry.element = null;
    this.order = this.firstOf(this.entries.values());
    this.fill();
  }

  /** @param {Entry} a
   *  @param {Entry} b */
  compareEntries(a, b) {
    const { by, up } = this.sort;
    const name = this.columns[by]?.name;
    const first = compare(a.row[name], b.row[name]);
    if (first) return up ? first : -first;
    for (const column of this.columns) {
      const order = compare(a.row[column.name], b.row[column.name]);
      if (order) return order;
    }
    return 0;
  }

  /** Take in changes [{diff, row}]; a snapshot is not news, so nothing flashes.
   *  @param {Pick<Change, "diff" | "row">[]} changes
   *  @param {boolean} snapshot */
  apply(changes, snapshot) {
    if (snapshot) this.clear();
    this.quiet ||= snapshot;
    for (const { diff, row } of changes) {
      const key = JSON.stringify(row);
      const entry = this.entries.get(key) ?? this.touched.get(key) ?? { row, weight: 0, before: 0, element: null };
      if (!this.touched.has(key)) {
        entry.before = entry.weight;
        this.touched.set(key, entry);
      }
      entry.weight += diff;
      if (entry.weight > 0) this.entries.set(key, entry);
      else this.entries.delete(key);
    }
    if (this.entries.size <= AT_ONCE) this.show();
    else this.waiting ??= setTimeout(() => this.show(), this.pause);
  }

  /** Show what has been taken in. */
  show() {
    const started = performance.now();
    clearTimeout(this.waiting);
    this.waiting = undefined;
    /** @type {Entry[]} */
    const born = [];
    /** @type {Entry[]} */
    const gone = [];
    for (const entry of this.touched.values()) {
      if (entry.before <= 0 && entry.weight > 0) born.push(entry);
      if (entry.before > 0 && entry.weight <= 0) gone.push(entry);
    }
    this.touched.clear();
    if (this.stream) gone.push(...this.forget());
    this.bury(gone, this.stream ? [] : born, this.quiet);
    for (const entry of born) entry.fresh = !this.quiet;
    this.quiet = false;
    const before = this.order;
    this.order = this.firstOf(this.entries.values());
    const kept = new Set(this.order);
    for (const entry of [...before, ...born]) {
      if (kept.has(entry)) continue;
      entry.element?.remove(); // beyond the rows that are shown
      entry.element = null;
    }
    this.fill();
    this.pause = PAUSES * (performance.now() - started);
  }

  /** The first of some entries, in order; those far beyond are not sorted.
   *  @param {Iterable<Entry>} entries */
  firstOf(entries) {
    /** @param {Entry} a
     *  @param {Entry} b */
    const compared = (a, b) => this.compareEntries(a, b);
    /** @type {Entry[]} */
    let first = [];
    /** @type {Entry | null} */
    let last = null; // nothing behind it is among the first
    for (const entry of entries) {
      if (last && compared(entry, last) >= 0) continue;
      first.push(entry);
      if (first.length < 4 * MAX_SHOWN) continue;
      first = first.sort(compared).slice(0, MAX_SHOWN);
      last = first[first.length - 1];
    }
    return first.sort(compared).slice(0, MAX_SHOWN);
  }

  /** Rows of a stream never leave by themselves: the oldest make room. */
  forget() {
    /** @type {Entry[]} */
    const old = [];
    for (const [key, entry] of this.entries) {
      if (this.entries.size <= MAX_SHOWN) break;
      this.entries.delete(key);
      entry.forgotten = true;
      old.push(entry);
    }
    return old;
  }

  /** Drop rows; one whose first column comes back with other values passes its place on.
   *  @param {Entry[]} gone
   *  @param {Entry[]} born
   *  @param {boolean} snapshot */
  bury(gone, born, snapshot) {
    if (!gone.length) return;
    const dead = new Set(gone);
    this.order = this.order.filter((entry) => !dead.has(entry));
    const first = this.columns[0]?.name;
    const heirs = new Map(born.map((entry) => [entry.row[first], entry]));
    for (const entry of gone) {
      const { element } = entry;
      const heir = heirs.get(entry.row[first]);
      if (heir && !heir.element && element && this.columns.length > 1) {
        heir.element = element;
        heir.changed = true;
      } else if (element && !snapshot && !entry.forgotten) {
        element.className = "out";
        setTimeout(() => element.remove(), FADE_MS);
      } else element?.remove();
    }
  }

  /** Make the document show the first rows of the order. */
  fill() {
    let next = this.alive(this.body.firstElementChild);
    for (const entry of this.order) {
      if (!entry.element) {
        entry.element = make(
          "tr",
          {
            class: [entry.fresh && "in", this.marked.get(JSON.stringify(entry.row))].filter(Boolean).join(" ") || null,
            tabindex: this.picked ? "0" : null,
          },
          this.columns.map(({ name }) => cell(entry.row[name])),
        );
      } else if (entry.changed) this.rewrite(entry.element, entry.row);
      entry.fresh = entry.changed = false;
      if (entry.element === next) next = this.alive(next.nextElementSibling);
      else this.body.insertBefore(entry.element, next);
    }
  }

  /** The first row from here on that is not fading away.
   *  @param {Element | null} element */
  alive(element) {
    let found = element;
    while (found?.classList.contains("out")) found = found.nextElementSibling;
    return found;
  }

  /** Show the values of another row in the cells of a row.
   *  @param {HTMLTableRowElement} element
   *  @param {Row} row */
  rewrite(element, row) {
    this.columns.forEach(({ name }, index) => {
      const made = cell(row[name]);
      const old = element.cells[index];
      if (old.textContent === made.textContent) return;
      made.classList.add("in");
      old.replaceWith(made);
    });
  }

  get cut() {
    if (this.stream) return this.entries.size >= MAX_SHOWN ? `, the newest ${MAX_SHOWN} shown` : "";
    return this.entries.size > MAX_SHOWN ? `, the first ${MAX_SHOWN} shown` : "";
  }
}
