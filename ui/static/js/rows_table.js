// A table that follows a relation: sorted, rows changed in place, inserts green, deletes fading red.
import { make } from "./api.js";

const MAX_SHOWN = 1000;
const AT_ONCE = 3000; // rows up to which every change is shown at once
const PAUSES = 3; // how much longer than it takes to show many rows they stay as they are
const FADE_MS = 1200;
const ONE_LINE = 32; // characters of a text that is not broken
const ORDER = new Intl.Collator("en", { numeric: true });

/** Order values as people do: NULL first, numbers by size, texts with numbers inside by both. */
export function compare(a, b) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return ORDER.compare(String(a), String(b));
}

export function cell(value) {
  if (value === null) return make("td", { class: "null" }, "NULL");
  if (typeof value !== "number")
    return make("td", { class: String(value).length <= ONE_LINE ? "tight" : null }, String(value));
  return make(
    "td",
    { class: "number" },
    Number.isInteger(value) ? String(value) : String(Math.round(value * 1e6) / 1e6),
  );
}

export class RowsTable {
  /** @param picked called with a row when it is clicked, or Enter pressed on it; null: rows do nothing */
  constructor(table, picked = null) {
    this.table = table;
    this.body = table.tBodies[0];
    this.columns = [];
    this.marked = new Map(); // text of a row -> class
    this.picked = picked;
    this.clear();
    this.body.addEventListener("click", (event) => this.pick(event));
    this.body.addEventListener("keydown", (event) => this.press(event));
  }

  /** Whether rows can be clicked now. */
  set pickable(value) {
    this.table.classList.toggle("pickable", value);
  }

  pick(event) {
    if (!this.table.classList.contains("pickable") || String(getSelection())) return;
    const element = event.target.closest("tr");
    const entry = this.order.find((candidate) => candidate.element === element);
    if (!entry) return;
    this.mark([entry.row], "asked");
    this.picked(entry.row);
  }

  press(event) {
    const row = event.target.closest("tr");
    if (event.key === "Enter") this.pick(event);
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** Give some rows a class of their own, and take it from all others. */
  mark(rows, name) {
    for (const [key, known] of this.marked) if (known === name) this.marked.delete(key);
    for (const row of rows) this.marked.set(JSON.stringify(row), name);
    for (const [key, entry] of this.entries) entry.element?.classList.toggle(name, this.marked.get(key) === name);
  }

  /** Begin anew with columns [{name, type}]; of a stream the newest rows are kept, by its last column. */
  start(columns, { stream = false } = {}) {
    this.columns = columns;
    this.stream = stream;
    this.sort = stream ? { by: columns.length - 1, up: false } : { by: 0, up: true };
    this.clear();
    this.head();
  }

  clear() {
    this.marked.clear();
    this.entries = new Map(); // text of a row -> {row, weight, element}
    this.order = []; // the first entries, as shown
    this.touched = new Map(); // text of a row -> entry, `before` being its weight when last shown
    this.quiet = false; // whether a snapshot is among what is not shown yet
    clearTimeout(this.waiting);
    this.waiting = null;
    this.body.replaceChildren();
  }

  get size() {
    return this.entries.size;
  }

  head() {
    const headers = this.columns.map(({ name, type }, index) => {
      const sorted = this.sort.by === index ? (this.sort.up ? "ascending" : "descending") : null;
      const number = ["INTEGER", "DOUBLE"].includes(type);
      return make(
        "th",
        { title: type, class: number ? "number" : null, "aria-sort": sorted },
        make(
          "button",
          { type: "button", onclick: () => this.sortBy(index) },
          name,
          make("span", { "aria-hidden": "true" }, sorted ? (this.sort.up ? " ▴" : " ▾") : ""),
        ),
      );
    });
    this.table.tHead.replaceChildren(make("tr", {}, headers));
  }

  sortBy(index) {
    this.sort = { by: index, up: this.sort.by === index ? !this.sort.up : true };
    this.head();
    this.body.replaceChildren();
    for (const entry of this.order) entry.element = null;
    this.order = this.firstOf(this.entries.values());
    this.fill();
  }

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

  /** Take in changes [{diff, row}]; a snapshot is not news, so nothing flashes. */
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
    else this.waiting ??= setTimeout(() => this.show(), this.pause ?? 0);
  }

  /** Show what has been taken in. */
  show() {
    const started = performance.now();
    clearTimeout(this.waiting);
    this.waiting = null;
    const born = [];
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

  /** The first of some entries, in order; those far beyond are not sorted. */
  firstOf(entries) {
    const compared = (a, b) => this.compareEntries(a, b);
    let first = [];
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
    const old = [];
    for (const [key, entry] of this.entries) {
      if (this.entries.size <= MAX_SHOWN) break;
      this.entries.delete(key);
      entry.forgotten = true;
      old.push(entry);
    }
    return old;
  }

  /** Drop rows; one whose first column comes back with other values passes its place on. */
  bury(gone, born, snapshot) {
    if (!gone.length) return;
    const dead = new Set(gone);
    this.order = this.order.filter((entry) => !dead.has(entry));
    const first = this.columns[0]?.name;
    const heirs = new Map(born.map((entry) => [entry.row[first], entry]));
    for (const entry of gone) {
      const heir = heirs.get(entry.row[first]);
      if (heir && !heir.element && entry.element && this.columns.length > 1) {
        heir.element = entry.element;
        heir.changed = true;
      } else if (entry.element && !snapshot && !entry.forgotten) {
        entry.element.className = "out";
        setTimeout(() => entry.element.remove(), FADE_MS);
      } else entry.element?.remove();
    }
  }

  /** Make the document show the first rows of the order. */
  fill() {
    let next = this.alive(this.body.firstElementChild);
    for (const entry of this.order) {
      if (!entry.element)
        entry.element = make(
          "tr",
          {
            class: [entry.fresh && "in", this.marked.get(JSON.stringify(entry.row))].filter(Boolean).join(" ") || null,
            tabindex: this.picked ? "0" : null,
          },
          this.columns.map(({ name }) => cell(entry.row[name])),
        );
      else if (entry.changed) this.rewrite(entry);
      entry.fresh = entry.changed = false;
      if (entry.element === next) next = this.alive(next.nextElementSibling);
      else this.body.insertBefore(entry.element, next);
    }
  }

  /** The first row from here on that is not fading away. */
  alive(element) {
    let found = element;
    while (found?.classList.contains("out")) found = found.nextElementSibling;
    return found;
  }

  rewrite(entry) {
    this.columns.forEach(({ name }, index) => {
      const made = cell(entry.row[name]);
      const old = entry.element.cells[index];
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
