// A query in the list of those that run, and why it waits.
import { age, count, extent, make } from "./api.js";

/** @import { Query } from "./payloads.d.ts" */

/** A query in the list.
 *  @param {Query} query
 *  @param {string | null} selected id of the one shown
 *  @param {(id: string) => void} choose */
export function item(query, selected, choose) {
  return make(
    "li",
    {},
    make(
      "button",
      {
        type: "button",
        "data-query": query.id,
        "aria-current": query.id === selected ? "true" : null,
        onclick: () => choose(query.id),
        title: query.text,
      },
      make("span", { class: `badge ${query.status}` }, query.status),
      make("span", { class: "text" }, `${query.name || query.id}  ${query.text.replace(/\s+/g, " ")}`),
      make(
        "span",
        { class: "facts", title: count(query.changes, "change") },
        `${extent(query)} · ${age(query.created)}`,
      ),
    ),
  );
}

/** @param {string[]} sites */
export function waitingText(sites) {
  if (!sites.length) return "";
  return `Waiting for ${sites.join(", ")}${sites.includes("static") ? ": Spark is warming up" : ""}.`;
}
