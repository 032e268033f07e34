// The payloads of a trial, each with what the statement makes of it.
import { fill, headedTable, make, moment, text } from "../api.js";
import { cell } from "../rows_table.js";

/** @import { Column, Mapped, MappedPayload, TrialSample } from "../payloads.d.ts" */

const MAX_ROWS = 500;

/** @param {TrialSample} sample */
function item(sample) {
  const size = sample.cut ? `${sample.size} bytes, cut` : sample.is_text ? "" : "base64";
  return make(
    "li",
    {},
    make(
      "div",
      { class: "head" },
      make("time", {}, moment(sample.arrival)),
      make("span", { class: "topic" }, sample.topic || (sample.is_record ? "record" : "")),
      size ? make("span", { class: "size" }, size) : null,
    ),
    make("pre", {}, sample.payload),
    make("div", {}),
  );
}

/** What a statement makes of one payload.
 *  @param {MappedPayload} mapped */
function made(mapped) {
  const rows = mapped.rows.slice(0, 3).map((row) =>
    make(
      "div",
      { class: "made" },
      Object.entries(row).map(([name, value]) => make("span", {}, make("b", {}, name), text(value))),
    ),
  );
  const more =
    mapped.rows.length > 3 ? make("div", { class: "made" }, `and ${mapped.rows.length - 3} more rows`) : null;
  return [...rows, more, ...mapped.problems.map((problem) => make("div", { class: "made wrong" }, problem))];
}

export class PayloadList {
  /** @param {HTMLElement} place
   *  @param {HTMLElement} none shown while there are no payloads */
  constructor(place, none) {
    this.place = place;
    this.none = none;
    /** @type {HTMLLIElement[]} */
    this.items = []; // in the order in which payloads came; the newest stands on top
  }

  /** @param {TrialSample[]} samples all of a trial; those that are shown already stay */
  show(samples) {
    if (samples.length < this.items.length) this.clear();
    for (const sample of samples.slice(this.items.length)) {
      const shown = item(sample);
      this.items.push(shown);
      this.place.prepend(shown);
    }
    this.none.hidden = this.items.length > 0;
  }

  /** @param {MappedPayload[]} mapped what a statement makes of the payloads, in their order */
  explain(mapped) {
    this.items.forEach((shown, index) => {
      const one = mapped[index];
      shown.classList.toggle("ignored", Boolean(one?.ignored));
      if (shown.lastElementChild) fill(shown.lastElementChild, one ? made(one) : null);
    });
  }

  clear() {
    this.items = [];
    this.place.replaceChildren();
    this.none.hidden = false;
  }
}

/** Show the rows of all payloads in a table.
 *  @param {HTMLTableElement} table
 *  @param {HTMLElement} none
 *  @param {Mapped} mapped
 *  @returns {number} how many rows there are */
export function showRows(table, none, mapped) {
  const rows = mapped.samples.flatMap((sample) => sample.rows);
  const headings = mapped.columns.map(({ name, type }) => make("th", { title: type, class: heading(type) }, name));
  const body = make(
    "tbody",
    {},
    rows.slice(0, MAX_ROWS).map((row) =>
      make(
        "tr",
        {},
        mapped.columns.map(({ name }) => cell(row[name] ?? null)),
      ),
    ),
  );
  table.replaceChildren(...headedTable(headings, body).children);
  none.hidden = rows.length > 0;
  return rows.length;
}

/** @param {Column["type"]} type */
const heading = (type) => (["INTEGER", "DOUBLE"].includes(type) ? "number" : null);
