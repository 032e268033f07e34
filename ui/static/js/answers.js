// The answers of a display as tables; rows that are new since the last time flash.
import { headedTable, make, moment } from "./api.js";
import { cell } from "./rows_table.js";

/** @import { Answer, Display, Row, Value } from "./payloads.d.ts" */

/** A value for people who pass by: times as on a clock.
 *  @param {Value} value
 *  @param {string} type */
const shownValue = (value, type) =>
  type === "TIMESTAMP" && typeof value === "string"
    ? make("td", { class: "tight", title: value }, moment(value))
    : cell(value);

export class Answers {
  /** @param {HTMLElement} element
   *  @param {{ most?: number, each?: number, columns?: number }} limits how many rows of an answer, or of each if
   *    there are several answers, and how many columns, at most */
  constructor(element, { most = Infinity, each = most, columns = Infinity } = {}) {
    this.element = element;
    this.most = most;
    this.each = each;
    this.columns = columns;
    /** @type {Map<string, Set<string>>} */
    this.known = new Map(); // query id -> texts of its rows
  }

  /** @param {Display} display */
  show(display) {
    const several = display.queries.length > 1;
    const parts = display.queries.map((query) => this.answer(query, several));
    this.element.replaceChildren(
      ...(parts.length ? parts : [make("p", { class: "empty" }, "No query sends its result here.")]),
    );
  }

  /** @param {Answer} query
   *  @param {boolean} several */
  answer(query, several) {
    const columns = query.columns.slice(0, this.columns);
    const runs = query.status === "running";
    const named = query.name && query.name !== query.id; // a number says nothing to who passes by
    const rows = query.first.slice(0, several ? this.each : this.most);
    const before = this.known.get(query.id);
    this.known.set(query.id, new Set(query.first.map((row) => JSON.stringify(row))));
    /** @param {Row} row */
    const fresh = (row) => before && !before.has(JSON.stringify(row));
    const more = query.emit === "relation" ? query.total - rows.length : 0; // a stream has no end
    return make(
      "figure",
      { class: `shown is-${query.status}`, "data-query": query.id },
      (several && named) || !runs
        ? make(
            "figcaption",
            {},
            named ? query.name : null,
            runs ? null : make("span", { class: `badge ${query.status}` }, query.status),
          )
        : null,
      headedTable(
        columns.map(({ name, type }) =>
          make("th", { class: ["INTEGER", "DOUBLE"].includes(type) ? "number" : null }, name),
        ),
        make(
          "tbody",
          {},
          rows.map((row) =>
            make(
              "tr",
              { class: fresh(row) ? "in" : null },
              columns.map(({ name, type }) => shownValue(row[name], type)),
            ),
          ),
        ),
      ),
      rows.length ? null : make("p", { class: "empty" }, query.error || "No rows now."),
      more > 0 ? make("p", { class: "quiet more" }, `and ${more} more`) : null,
    );
  }
}
