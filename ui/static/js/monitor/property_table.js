// What is known of the chosen entity: properties with their newest values, each a graph at a click.
import { fill, make } from "../api.js";
import { titleOf } from "./plan_drawing.js";
import { shown, sorted, wordsOf } from "./reported.js";

const EXPLAINED = {
  queue: "Rows waiting between two operators.",
  synopsis: "The state of an operator: the rows that it keeps.",
  store: "One set of rows that several synopses share; each of them is a stub of it.",
  job: "The static engine computes this part of the plan as a whole, and recomputes it when a table changes.",
  channel: "The messages from one site to another.",
};

export class PropertyTable {
  /** @param place where it is shown
   *  @param watch called with (entity, property) to add a graph
   *  @param choose called with another entity */
  constructor(place, watch, choose) {
    this.place = place;
    this.watch = watch;
    this.choose = choose;
    this.signature = "";
  }

  /** Show an entity {site, kind, entity}, with the line of an operator.
   *  @param related entities to go on to: [{site, kind, entity}] */
  update(entity, line, query, reported, related, away) {
    const found = entity && reported.find(entity.site, entity.kind, entity.entity);
    const properties = found ? sorted(found.values.keys()) : [];
    const signature = JSON.stringify([entity, line, query, properties, related, away]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.build(entity, line, query, properties, related, away);
    }
    for (const property of properties) {
      const cell = this.cells.get(property);
      const text = shown(property, found.values.get(property).value);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }

  build(entity, line, query, properties, related, away) {
    this.cells = new Map();
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
