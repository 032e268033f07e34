// Stored tables on the page of data: where they are, how fresh, and what is in them.
import { age, count, fill, get, make, post, problemOf } from "../api.js";
import { byId, focusedIn, focusOn } from "../elements.js";
import { showProblem } from "../problem_box.js";
import { againWhileSeen } from "../while_seen.js";
import { size } from "./sizes.js";
import { storedDetails } from "./stored_details.js";

/** @import { StoredTable, StoredTables } from "../payloads.d.ts" */

const REFRESH_MILLISECONDS = 5000;
const COLUMNS = 7;

const body = byId("stored");
const problem = byId("stored-problem");
const said = byId("stored-said");
/** @type {Map<string, HTMLElement>} */
const opened = new Map(); // tables that are open, with what stands below them

const me = await get("/api/me").catch(() => null);
const mayRefresh = !me?.accounts || me.role === "operator" || me.role === "administrator";

/** Read a table again, as REFRESH TABLE does.
 *  @param {StoredTable} table
 *  @param {StoredTables} all */
async function readAgain(table, all) {
  said.textContent = "";
  try {
    await post("/api/statements", { text: `REFRESH TABLE "${table.name.replaceAll('"', '""')}"` });
    showProblem(problem, null);
    said.textContent = `${table.name} is read again${table.read ? "" : " when a query needs it"}.`;
    if (opened.has(table.name)) opened.set(table.name, storedDetails(table, all));
    await refresh();
  } catch (error) {
    showProblem(problem, problemOf(error));
  }
}

/** @param {StoredTable} table
 *  @param {StoredTables} all */
function toggle(table, all) {
  if (!opened.delete(table.name)) opened.set(table.name, storedDetails(table, all));
  show(all);
}

/** Nothing tells when a server has other rows.
 *  @param {StoredTable} table */
function whenAgain(table) {
  if (table.refresh !== null) return `every ${table.refresh} s`;
  return table.told ? "when it changes" : "when asked";
}

/** @param {StoredTable} table
 *  @param {StoredTables} all */
function rows(table, all) {
  const isOpen = opened.has(table.name);
  const open = make(
    "button",
    {
      type: "button",
      "aria-expanded": String(isOpen),
      "aria-label": `table ${table.name}`,
      "data-focus": `open ${table.name}`,
      onclick: () => toggle(table, all),
    },
    table.name,
  );
  const again = make(
    "button",
    {
      type: "button",
      "aria-label": `Read ${table.name} again`,
      "data-focus": `again ${table.name}`,
      onclick: () => readAgain(table, all),
    },
    "Read again",
  );
  const found = [
    make(
      "tr",
      {},
      make("td", { class: "tight" }, open),
      make("td", {}, `${table.source} ${table.place}`),
      make("td", { class: "number" }, table.rows === null ? "" : table.rows.toLocaleString()),
      make("td", { class: "number tight" }, table.bytes === null ? "" : size(table.bytes)),
      make("td", { class: "tight" }, table.read ? `${age(table.read)} ago` : "when a query needs it"),
      make("td", { class: "tight" }, whenAgain(table)),
      make("td", { class: "tight" }, mayRefresh && again),
    ),
  ];
  if (table.problem) {
    found.push(
      make("tr", {}, make("td", { colspan: COLUMNS }, make("p", { class: "problem warning" }, table.problem))),
    );
  }
  const below = opened.get(table.name);
  if (below) found.push(make("tr", { class: "kept-open" }, make("td", { colspan: COLUMNS }, below)));
  return found;
}

/** @param {StoredTables} all */
function show(all) {
  const focused = focusedIn(body)?.dataset.focus;
  byId("stored-section").hidden = !all.tables.length;
  fill(
    body,
    all.tables.flatMap((table) => rows(table, all)),
  );
  if (focused) focusOn(body, `[data-focus="${CSS.escape(focused)}"]`);
  byId("stored-more").textContent = all.more ? `${count(all.more, "more table")} are not shown.` : "";
}

let isUnknown = false; // whether the last look failed: what a button said stays until it is pressed again

async function refresh() {
  try {
    show(await get("/api/tables"));
    if (isUnknown) showProblem(problem, null);
    isUnknown = false;
  } catch (error) {
    const told = problemOf(error);
    if (told.lost || byId("stored-section").hidden) return; // the next look may find it
    isUnknown = true;
    showProblem(problem, told);
  }
}

againWhileSeen(refresh, REFRESH_MILLISECONDS);
