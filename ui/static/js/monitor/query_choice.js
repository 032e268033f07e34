// The choice of the query whose plan is shown: the newest of each kind, others are found by words.
import { fill, get, make } from "../api.js";
import { byId } from "../elements.js";
import { queryOf } from "../query_found.js";

/** @import { Query } from "../payloads.d.ts" */

const MOST = 200; // queries of a kind in the list
const KINDS = [
  { origin: "user", label: "Queries" },
  { origin: "map", label: "Queries of the map" },
  { origin: "alarm", label: "Queries of alarms" },
  { origin: "sink", label: "Queries of sinks" },
];

/** @param {Query} query */
export const nameOf = ({ id, name }) => name || id;

/** @param {Query} query */
const option = (query) =>
  make("option", { value: query.id }, `${nameOf(query)}: ${query.text.replace(/\s+/g, " ").slice(0, 90)}`);

/** The newest queries of a kind: of users the newest first.
 *  @param {{ origin: string, label: string, all: Query[] }} kind */
function group({ origin, label, all }) {
  const shown = all.slice(-MOST);
  if (origin === "user") shown.reverse();
  const note = all.length > MOST ? `, the newest ${MOST}` : "";
  return shown.length > 0 && make("optgroup", { label: label + note }, shown.map(option));
}

export class QueryChoice {
  /** @param {(query: Query) => void} show
   *  @param {() => void} find asks for news: other words are looked for */
  constructor(show, find) {
    this.choice = byId("query", HTMLSelectElement);
    this.field = byId("find", HTMLInputElement);
    /** @type {Query[]} */
    this.listed = []; // oldest first, kind after kind
    this.words = ""; // that they were found by
    this.choice.addEventListener("change", () => {
      const found = this.listed.find(({ id }) => id === this.choice.value);
      if (found) show(found);
    });
    this.field.addEventListener("input", find);
  }

  /** Ask what runs; return the query that is shown as it is now, null if it has ended.
   *  @param {string | undefined} shown its id */
  async look(shown) {
    const words = this.field.value;
    // One more than is listed tells whether there are more.
    const asked = new URLSearchParams({ words, most: String(MOST + 1) });
    for (const { origin } of KINDS) asked.append("origin", origin);
    const found = await get(`/api/queries?${asked}`);
    if (words === this.field.value) [this.listed, this.words] = [found, words];
    const listed = found.find(({ id }) => id === shown);
    const current = listed || !shown ? listed : await queryOf(shown);
    return current && current.id === shown ? current : null; // another one may be called like its id
  }

  /** The newest query of the user's, or the first of another kind. */
  first() {
    return this.listed.findLast(({ origin }) => origin === "user") ?? this.listed[0];
  }

  /** @param {Query | null} shown
   *  @param {boolean} gone whether it has ended */
  fill(shown, gone) {
    const { choice, field, listed, words } = this;
    const signature = JSON.stringify([shown?.id, gone, words, listed.map(({ id }) => id)]);
    if (choice.dataset.signature === signature) return;
    choice.dataset.signature = signature;
    const kinds = KINDS.map((kind) => ({ ...kind, all: listed.filter(({ origin }) => origin === kind.origin) }));
    if (kinds.some(({ all }) => all.length > MOST)) field.hidden = false;
    fill(choice, [
      shown ? this.unlisted(shown, gone) : make("option", { value: "" }, this.none()),
      ...kinds.map(group),
    ]);
    if (shown) choice.value = shown.id;
  }

  /** The option of a query that is shown and not in the list.
   *  @param {Query} shown
   *  @param {boolean} gone */
  unlisted(shown, gone) {
    if (gone) return make("option", { value: shown.id }, `${nameOf(shown)} (stopped)`);
    return !this.listed.some(({ id }) => id === shown.id) && option(shown);
  }

  none() {
    return this.words && !this.listed.length ? "no running query has these words" : "choose a query…";
  }
}
