// The answers of a display as tables; rows that are new since the last time flash.
import { make } from "./api.js";
import { cell } from "./rows_table.js";

export class Answers {
  /** @param most how many rows of an answer at most; @param columns how many columns */
  constructor(element, { most = Infinity, columns = Infinity } = {}) {
    this.element = element;
    this.most = most;
    this.columns = columns;
    this.known = new Map(); // query id -> texts of its rows
  }

  show(display) {
    const several = display.queries.length > 1;
    const parts = display.queries.map((query) => this.answer(query, several));
    this.element.replaceChildren(...(parts.length ? parts : [make("p", { class: "empty" }, "Nothing is routed here.")]));
  }

  answer(query, several) {
    const columns = query.columns.slice(0, this.columns);
    const names = columns.map(({ name }) => name);
    const runs = query.status === "running";
    const rows = query.first.slice(0, this.most);
    const before = this.known.get(query.id);
    this.known.set(query.id, new Set(query.first.map((row) => JSON.stringify(row))));
    const fresh = (row) => before && !before.has(JSON.stringify(row));
    const more = query.total - rows.length;
    return make("figure", { class: `shown is-${query.status}`, "data-query": query.id },
      several || !runs ? make("figcaption", {}, query.name, runs ? null : make("span", { class: `badge ${query.status}` }, query.status)) : null,
      make("table", { class: "rows" },
        make("thead", {}, make("tr", {}, columns.map(({ name, type }) => make("th", { class: ["INTEGER", "DOUBLE"].includes(type) ? "number" : null }, name)))),
        make("tbody", {}, rows.map((row) => make("tr", { class: fresh(row) ? "in" : null }, names.map((name) => cell(row[name])))))),
      rows.length ? null : make("p", { class: "empty" }, query.error || "No rows at present."),
      more > 0 ? make("p", { class: "quiet more" }, `and ${more} more`) : null);
  }
}
