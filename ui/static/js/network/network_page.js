// The network page: the links of a source, live; click one to see what breaks without it.
import { count, fill, get, make, post, problemOf, text } from "../api.js";
import { quality } from "../map/radio.js";
import { QueryRows } from "../map/subscription.js";
import { againWhileSeen } from "../while_seen.js";
import { changes, isAnswered, notes, problem } from "../why.js";
import { Graph, pairKey } from "./graph.js";
import { loadPlaces } from "./layout.js";
import { linksNamed } from "./finding.js";
import { viewsOf } from "./readers.js";
import { byId } from "../elements.js";

/** @typedef {Definition & { key: string[] }} LinkSource */
/** @import { Definition, Loss, Problem, Query, Row, Unanswered, Value, WhatIf } from "../payloads.d.ts" */
/** @import { Pair } from "./graph.js" */

const MOST_FOUND = 40; // links listed at once
const MOST_READERS = 200; // queries listed that read the source

/** @type {Graph} */
let graph; // made, as the source is chosen, before anything can be clicked
/** @type {LinkSource} */
let source; // definition of the link source shown
/** @type {QueryRows<Row> | null} */
let rows = null; // its rows, followed
let listed = ""; // what was looked for when links were listed
/** @type {Pair | null} */
let chosen = null; // the pair asked about
let ticket = 0;
/** @type {(() => void) | null} */
let stopLooking = null;

/** @param {Definition} definition
 *  @returns {definition is LinkSource} */
function isLinkSource(definition) {
  return definition.stream === "link" && definition.key !== undefined && definition.key.length >= 2;
}

async function start() {
  const [definitions, places] = await Promise.all([get("/api/definitions"), loadPlaces()]);
  const sources = definitions.filter(isLinkSource);
  if (!sources.length) {
    byId("empty").hidden = false;
    byId("empty").textContent =
      "This federation has no link source. CREATE LINK SOURCE on the page Queries creates one.";
    return;
  }
  graph = new Graph(byId("graph", SVGSVGElement), places, choose);
  const choice = byId("source", HTMLSelectElement);
  fill(
    choice,
    sources.map(({ name }) => make("option", {}, name)),
  );
  byId("source-label").hidden = sources.length < 2;
  choice.addEventListener("change", () => show(sources[choice.selectedIndex], definitions));
  byId("target").addEventListener("change", ask);
  byId("both").addEventListener("change", ask);
  byId("find").addEventListener("change", find);
  byId("clear").addEventListener("click", clear);
  byId("fit").addEventListener("click", () => graph.fit());
  await show(sources[0], definitions);
}

/** Follow a link source.
 *  @param {LinkSource} definition
 *  @param {Definition[]} definitions */
async function show(definition, definitions) {
  rows?.close();
  clear();
  source = definition;
  rows = new QueryRows(
    () => followed(definition.name),
    ({ rows: held, error, query }) => draw(held, error, query),
  );
  stopLooking?.();
  stopLooking = againWhileSeen(() => targets(definitions), 5000);
}

/** Start a session query of a source's rows.
 *  @param {string} name */
async function followed(name) {
  const [result] = await post("/api/statements", { text: `SELECT * FROM "${name}"`, origin: "session" });
  return result.query;
}

/** @param {Row[]} held
 *  @param {Problem | null} error
 *  @param {Query | null} query */
function draw(held, error, query) {
  const [src, dst] = source.key;
  graph.update(held, [src, dst], classes);
  byId("counts").textContent = error
    ? error.message
    : `${count(graph.nodes.size, "node")}, ${count(held.length, "link")}`;
  byId("empty").hidden = held.length > 0;
  byId("empty").textContent =
    error?.message ||
    query?.error ||
    (query?.status === "starting" ? "Asking the gateways for links…" : `No link in ${source.name} now.`);
  fill(
    byId("links"),
    [...graph.nodes.keys()]
      .sort()
      .map((value) => make("option", { value }))
      .concat([...graph.pairs.values()].map(({ a, b }) => make("option", { value: `${a} ↔ ${b}` }))),
  );
}

/** How good a pair's links are, by the dearer direction, if the source has costs.
 *  @param {Row[]} held */
function classes(held) {
  const costs = held.map(({ cost }) => cost).filter((cost) => typeof cost === "number");
  return costs.length ? [quality(Math.max(...costs))] : [];
}

/** List what reads the source: running queries first, then views of the library.
 *  @param {Definition[]} definitions */
async function targets(definitions) {
  // One more than is listed tells whether there are more.
  const asked = new URLSearchParams({ origin: "user", reads: source.name, most: String(MOST_READERS + 1) });
  const queries = await get(`/api/queries?${asked}`).catch(() => []);
  const views = viewsOf(source.name, definitions);
  const more = queries.length > MOST_READERS;
  const running = queries.slice(-MOST_READERS).filter(({ status }) => status !== "failed");
  const many = more ? "all running queries that read it" : `all ${running.length} running queries that read it`;
  const all = running.length === 1 && !more ? "the running query that reads it" : many;
  const ofQueries = running.map(({ id, name }) => make("option", { value: `query:${id}` }, name || id));
  const ofViews = views.map((name) => make("option", { value: `view:${name}` }, name));
  const allOption = make("option", { value: "all" }, all);
  const choice = byId("target", HTMLSelectElement);
  const values = [...(running.length ? [allOption] : []), ...ofQueries, ...ofViews].map(({ value }) => value);
  const signature = values.join() + running.map(({ name }) => name).join();
  if (choice.dataset.signature === signature) return;
  choice.dataset.signature = signature;
  const label = more ? `Running queries, the newest ${MOST_READERS}` : "Running queries";
  const preferred = [choice.value, running.length ? "all" : "view:reachable"].find((value) => values.includes(value));
  fill(choice, [
    running.length > 0 && [allOption, make("optgroup", { label }, ofQueries)],
    make("optgroup", { label: "Library views" }, ofViews),
  ]);
  if (preferred) choice.value = preferred;
}

/** @param {Pair} pair */
function choose(pair) {
  chosen = pair;
  graph.mark("chosen", new Set([pairKey(pair.a, pair.b)]));
  graph.markNodes("end", new Set([pair.a, pair.b]));
  byId("guide").hidden = true;
  byId("asked").hidden = false;
  fill(byId("pair"), [pair.a, make("span", { class: "quiet" }, pair.rows.length > 1 ? " ↔ " : " → "), pair.b]);
  const [src, dst] = source.key;
  const others = source.columns.map(({ name }) => name).filter((name) => name !== src && name !== dst);
  fill(
    byId("facts"),
    make(
      "table",
      { class: "rows small" },
      make("thead", {}, make("tr", {}, [make("th", {}, "link"), ...others.map((name) => make("th", {}, name))])),
      make(
        "tbody",
        {},
        pair.rows.map((row) =>
          make("tr", {}, [
            make("td", {}, `${row[src]} → ${row[dst]}`),
            ...others.map((name) => make("td", {}, time(row[name]))),
          ]),
        ),
      ),
    ),
  );
  byId("both-label").hidden = pair.rows.length < 2;
  ask();
}

/** @param {Value} value */
const time = (value) =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) ? value.slice(11, 19) : text(value);

/** Ask what breaks without the chosen pair. */
async function ask() {
  if (!chosen) return;
  const mine = (ticket += 1);
  graph.mark("gone", new Set([pairKey(chosen.a, chosen.b)]));
  unmark();
  fill(byId("verdict"), make("p", { class: "quiet busy" }, "Computing the results without it…"));
  const [src, dst] = source.key;
  const links = byId("both", HTMLInputElement).checked ? chosen.rows : chosen.rows.slice(0, 1);
  const deleted = links.map((row) => [row[src], row[dst]]);
  try {
    const data = await breaks(deleted);
    if (mine === ticket) {
      verdict(data, links.length > 1 ? `Without both directions,` : `Without ${deleted[0].join(" → ")},`);
    }
  } catch (error) {
    if (mine === ticket) fill(byId("verdict"), problem(problemOf(error)));
  }
}

/** Return the answer to WHAT IF for the chosen target.
 *  @param {Value[][]} deleted
 *  @returns {Promise<WhatIf>} */
async function breaks(deleted) {
  const target = byId("target", HTMLSelectElement).value;
  if (target.startsWith("view:")) {
    /** @param {Value} value */
    const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value));
    const patterns = deleted.map((values) => `"${source.name}"(${values.map(literal).join(", ")})`);
    const [result] = await post("/api/statements", {
      text: `EXPLAIN WHAT IF DELETE ${patterns.join(", ")} FOR "${target.slice(5)}"`,
    });
    const data = /** @type {WhatIf} */ (result.data);
    data.queries[0].query = target.slice(5);
    return data;
  }
  const query = target.startsWith("query:") ? target.slice(6) : null;
  const { data } = await post("/api/what-if", {
    delete: deleted.map((values) => ({ source: source.name, values })),
    query,
  });
  return data;
}

/** @param {WhatIf} data
 *  @param {string} without */
function verdict(data, without) {
  const broken = data.queries.filter((found) => found.gone_count || found.come_count || found.error);
  const whole = data.queries.filter(isAnswered).filter((found) => !broken.includes(found));
  const parts = broken.map((found) =>
    make(
      "section",
      {},
      make("h3", {}, found.query),
      changes(found, without),
      notes(isAnswered(found) ? found.notes : []),
    ),
  );
  const lead = broken.length ? "Nothing changes in" : `${without} nothing changes in`;
  const listedWhole = whole.map(({ query, rows: n }) => `${query} (${count(n, "row")})`).join(", ");
  const unharmed = whole.length > 0 && make("p", { class: "unharmed" }, `${lead} ${listedWhole}.`);
  const none =
    !data.queries.length && make("p", { class: "quiet" }, "No running query reads it. Choose a library view above.");
  fill(byId("verdict"), [parts, unharmed, none, notes(data.notes)]);
  highlight(broken);
}

/** Light up the nodes that rows which go or come name; pointing at a row shows only its own.
 *  @param {(Loss | Unanswered)[]} broken */
function highlight(broken) {
  /** @param {Row} row */
  const named = (row) =>
    Object.values(row).flatMap((value) =>
      graph.nodes.has(String(value))
        ? [String(value)]
        : typeof value === "string"
          ? value.split(/[.>]/).filter((part) => graph.nodes.has(part))
          : [],
    );
  const answered = broken.filter(isAnswered);
  graph.markNodes("hurt", new Set(answered.flatMap(({ gone }) => gone).flatMap(named)));
  const lists = [...byId("verdict").querySelectorAll("ol.changes")];
  for (const [index, { gone, come }] of answered.entries()) {
    const minus = [...lists[index].querySelectorAll(".minus")].map((item, i) => ({ item, row: gone[i] }));
    const plus = [...lists[index].querySelectorAll(".plus")].map((item, i) => ({ item, row: come[i] }));
    for (const { item, row } of [...minus, ...plus]) {
      item.addEventListener("pointerenter", () => graph.markNodes("pointed", new Set(named(row))));
      item.addEventListener("pointerleave", () => graph.markNodes("pointed", new Set()));
    }
  }
}

function unmark() {
  graph.markNodes("hurt", new Set());
  graph.markNodes("pointed", new Set());
}

function clear() {
  ticket += 1;
  chosen = null;
  graph.mark("chosen", new Set());
  graph.mark("gone", new Set());
  graph.markNodes("end", new Set());
  unmark();
  byId("asked").hidden = true;
  byId("found").hidden = true;
  byId("guide").hidden = false;
  byId("find", HTMLInputElement).value = "";
}

/** Choose the link that was named; of several, or none, tell so. */
function find() {
  const field = byId("find", HTMLInputElement);
  const wanted = field.value.trim();
  if (wanted === listed && !byId("found").hidden) return; // leaving the field is no new question
  clear();
  if (!wanted) return;
  field.value = wanted;
  const pairs = linksNamed(wanted, [...graph.pairs.values()]).sort(
    (p, q) => p.a.localeCompare(q.a) || p.b.localeCompare(q.b),
  );
  if (pairs.length === 1) return choose(pairs[0]);
  graph.mark("chosen", new Set(pairs.map(({ a, b }) => pairKey(a, b))));
  graph.markNodes("end", new Set(pairs.flatMap(({ a, b }) => [a, b])));
  const shown = pairs
    .slice(0, MOST_FOUND)
    .map(({ a, b }) =>
      make("li", {}, make("button", { type: "button", onclick: () => pick(pairKey(a, b)) }, `${a} ↔ ${b}`)),
    );
  const more = pairs.length - shown.length;
  fill(byId("found"), [
    make("h3", {}, pairs.length ? `${count(pairs.length, "link")} of ${wanted}` : `No link of ${wanted} now`),
    pairs.length
      ? make("ul", {}, shown)
      : make("p", { class: "quiet" }, "Write the name of a node, or both ends of a link: a ↔ b."),
    more > 0 && make("p", { class: "quiet" }, `${more} more: write the name of the other end, too.`),
  ]);
  byId("found").hidden = false;
  byId("guide").hidden = true;
  listed = wanted;
}

/** Choose a link of the list, if it is still there.
 *  @param {string} key */
function pick(key) {
  const pair = graph.pairs.get(key);
  if (pair) choose(pair);
  else fill(byId("found"), make("p", {}, "That link no longer exists."));
}

start().catch((error) => {
  byId("empty").hidden = false;
  byId("empty").textContent = error.message;
});
