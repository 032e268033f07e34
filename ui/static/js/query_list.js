// The list of the queries that run, and why one waits.
import { age, count, extent, get, make } from "./api.js";
import { byId, focusOn, focusedIn } from "./elements.js";
import { queryOf } from "./query_found.js";

/** @import { Query } from "./payloads.d.ts" */

const MOST = 200; // queries in the list; others are found by words
const NONE_RUNS = "No query runs. Choose an example and press Run.";
const NONE_FOUND = "No running query has these words.";

/** A query in the list.
 *  @param {Query} query
 *  @param {string | null} selected id of the one shown
 *  @param {(id: string) => void} choose */
function item(query, selected, choose) {
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

/** Return the newest queries with some words, and the one that is shown, whether it is among them or not.
 *  @param {string} words
 *  @param {string | null} id */
export async function listed(words, id) {
  // One more than is shown tells whether there are more.
  const asked = new URLSearchParams({ origin: "user", words, most: String(MOST + 1) });
  const queries = await get(`/api/queries?${asked}`);
  const current = queries.find((q) => q.id === id) ?? (id && (await queryOf(id)));
  return { queries, current };
}

/** @param {Query[]} queries newest last
 *  @param {string} words that they were found by
 *  @param {string | null} selected id of the one shown
 *  @param {(id: string) => void} choose */
export function showList(queries, words, selected, choose) {
  const isCut = queries.length > MOST;
  if (isCut) byId("find").hidden = false;
  byId("listed").textContent = isCut ? `the newest ${MOST}` : "";
  const focused = focusedIn(byId("queries"))?.dataset.query;
  const items = queries
    .slice(-MOST)
    .reverse()
    .map((query) => item(query, selected, choose));
  const none = make("li", { class: "empty" }, words ? NONE_FOUND : NONE_RUNS);
  byId("queries").replaceChildren(...(items.length ? items : [none]));
  if (focused) focusOn(byId("queries"), `[data-query="${CSS.escape(focused)}"]`);
}

/** @param {string[]} sites */
export function waitingText(sites) {
  if (!sites.length) return "";
  return `Waiting for ${sites.join(", ")}${sites.includes("static") ? ": Spark is warming up" : ""}.`;
}
