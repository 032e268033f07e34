// Sources, tables and views with their columns and texts.
import { get, make } from "./api.js";
import { byId } from "./elements.js";
import { readers } from "./people/grants.js";

/** @import { Column, Definition, Grants } from "./payloads.d.ts" */

const place = byId("definitions");

/** A column as in CREATE SOURCE.
 *  @param {Column} column */
function written({ name, type, unit }) {
  return `${name} ${type}`.trim() + (unit ? ` UNIT '${unit}'` : "");
}

/** Whether a definition is read by whom it is granted to; library views are read by everybody.
 *  @param {Definition} definition */
const isGranted = ({ kind, library }) => ["source", "table", "view"].includes(kind) && !library;

/** @param {Definition} definition */
function show(definition) {
  const columns = definition.columns.map(written).join(", ");
  return make(
    "details",
    { class: "definition" },
    make(
      "summary",
      {},
      make("span", { class: "badge" }, definition.library ? "library view" : definition.stream || definition.kind),
      " ",
      make("strong", {}, definition.name),
      columns ? ` (${columns})` : "",
    ),
    isGranted(definition) && make("p", { class: "quiet" }, readers(known, definition.name)),
    make("pre", {}, definition.text),
  );
}

/** @type {Grants} */
const known = await get("/api/grants").catch(() => ({ grants: [], makers: {} }));
/** @type {Definition[]} */
const all = await get("/api/definitions").catch(() => []);
const order = ["source", "table", "view", "function", "aggregate", "display", "alarm", "sink"];
all.sort(
  (a, b) =>
    order.indexOf(a.kind) - order.indexOf(b.kind) ||
    Number(Boolean(a.library)) - Number(Boolean(b.library)) ||
    a.name.localeCompare(b.name),
);
place.replaceChildren(
  ...(all.length
    ? all.map(show)
    : [make("p", { class: "empty" }, "Nothing is defined. Start with CREATE SOURCE on the page Queries.")]),
);
