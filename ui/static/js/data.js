// Sources, tables and views with their columns and texts.
import { get, make } from "./api.js";
import { byId } from "./elements.js";

/** @import { Column, Definition } from "./payloads.d.ts" */

const place = byId("definitions");

/** A column as in CREATE SOURCE.
 *  @param {Column} column */
function written({ name, type, unit }) {
  return `${name} ${type}`.trim() + (unit ? ` UNIT '${unit}'` : "");
}

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
    make("pre", {}, definition.text),
  );
}

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
