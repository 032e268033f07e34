// What is known of the chosen entity: properties with their newest values, each a graph at a click.
import { fill, make } from "../api.js";
import { titleOf } from "./plan_marks.js";
import { shown, sorted, wordsOf } from "./reported.js";

/** @typedef {{ line: string | null, query?: string, related: Entity[], away: boolean }} About */
/** @typedef {Entity & { query?: string, title: string }} Watched */
/** @import { Entity, Reported } from "./reported.js" */

/** @type {Record<string, string>} */
const EXPLAINED = {
  queue: "Rows waiting between two operators.",
  synopsis: "The state of an operator: the rows that it keeps.",
  store: "One set of rows that several synopses share; each of them is a stub of it.",
  job: "The static engine computes this part of the plan as a whole, and recomputes it when a table changes.",
  channel: "The messages from one site to another.",
};

export class PropertyTable {
  /** @param {Element} place where it is shown
   *  @param {(entity: Watched, property: string) => void} watch called to add a graph
   *  @param {(entity: Entity) => void} choose called with another entity */
  constructor(place, watch, choose) {
    this.place = place;
    this.watch = watch;
    this.choose = choose;
    this.signature = "";
    /** @type {Map<string, HTMLElement>} */
    this.cells = new Map(); // by property
  }

  /** Show an entity {site, kind, entity}; null: nothing.
   *  @param {Entity | null} entity
   *  @param {Reported} reported
   *  @param {About} about its operator's `line`, its `query`, entities `related` to it, whether its site is `away` */
  update(entity, reported, about) {
    const found = entity && reported.find(entity.site, entity.kind, entity.entity);
    const properties = found ? sorted(found.values.keys()) : [];
    const signature = JSON.stringify([entity, properties, about]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.build(entity, properties, about);
    }
    for (const property of properties) {
      const cell = this.cells.get(property);
      const text = shown(property, found?.values.get(property)?.value ?? null);
      if (cell && cell.textContent !== text) cell.textContent = text;
    }
  }

  /** @param {Entity | null} entity
   *  @param {string[]} properties
   *  @param {About} about */
  build(entity, properties, { line, query, related, away }) {
    this.cells.clear();
    if (!entity) {
      fill(
        this.place,
        make("p", { class: "quiet" }, "Choose an element of the plan: an operator, a queue, a synopsis or a site."),
      );
      return;
    }
    const rows = properties.map((property) => {
      const cell = make("td", { class: "number" });
      this.cells.set(property, cell);
      return make(
        "tr",
        {},
        make("th", { scope: "row", title: property }, wordsOf(property)),
        cell,
        make(
          "td",
          { class: "watch" },
          make(
            "button",
            {
              type: "button",
              title: "Draw this over time",
              "aria-label": `Draw ${wordsOf(property)} against time`,
              onclick: () => this.watch({ ...entity, query, title: line || titleOf(entity) }, property),
            },
            "∿",
          ),
        ),
      );
    });
    const nothing = away
      ? `${entity.site} is offline and reports nothing until it returns.`
      : "No report about it in the last seconds.";
    fill(this.place, [
      make("h2", {}, titleOf(entity), entity.kind !== "site" && make("span", { class: "quiet" }, ` at ${entity.site}`)),
      line && make("p", { class: "operator-line" }, line),
      EXPLAINED[entity.kind] && make("p", { class: "quiet small" }, EXPLAINED[entity.kind]),
      rows.length
        ? make("table", { class: "properties" }, make("tbody", {}, rows))
        : make("p", { class: "quiet" }, nothing),
      related.length > 0 &&
        make(
          "p",
          { class: "related" },
          related.map((other) => make("button", { type: "button", onclick: () => this.choose(other) }, titleOf(other))),
        ),
    ]);
  }
}
