// The query console: editor, running queries, live rows.
import { mount } from "/static/vendor/editor.js";
import { age, count, extent, get, post, problemOf, request } from "./api.js";
import { logChanges } from "./change_log.js";
import { showPlan } from "./plan_panel.js";
import { showProblem } from "./problem_box.js";
import { listed, showList, waitingText } from "./query_list.js";
import { RowsTable } from "./rows_table.js";
import { statements } from "./statement_count.js";
import { againWhileSeen, whileSeen } from "./while_seen.js";
import { WhyPanel } from "./why.js";
import { byId } from "./elements.js";

/** @import { Change, Changes, Problem, Query, Result, Status } from "./payloads.d.ts" */

/** @type {string[]} */
const examples = JSON.parse(byId("example-texts", HTMLScriptElement).text);
const RETRY_MS = 2000;
const LOST = "Connection lost: this page shows old data. Reconnecting…";
const LOOKING = "Retrying…";

/** @type {string | null} */
let selected = null; // id of the query shown
/** @type {EventSource | null} */
let source = null; // its EventSource, while the page is seen
/** @type {Query | null} */
let known = null; // what was last heard of it
let doubt = ""; // why that may not be so any more
let ticket = 0; // of the newest selection: older answers are dropped
/** @type {Query | null} */
let shown = null; // the query shown, as it was when chosen
let seen = false; // whether the page is
let lists = 0; // number of the newest list: an older answer does not take its place
let wish = 0; // number of the user's newest wish: the answer to an older one does not take its place
const table = new RowsTable(byId("rows", HTMLTableElement), (row) => shown && why.ask(shown, row));
const why = new WhyPanel(byId("why"), {
  closed: () => table.mark([], "asked"),
  breaking: (rows) => table.mark(rows, "doomed"),
});

const editor = mount(byId("editor"), {
  // What this tab had, then what was written last in any.
  doc: sessionStorage.getItem("pando.query") || localStorage.getItem("pando.query") || examples[0],
  onRun: run,
  complete: (text, offset) => post("/api/complete", { text, offset }),
  validate: async (text) => {
    for (const storage of [sessionStorage, localStorage]) storage.setItem("pando.query", text);
    const answer = await post("/api/validate", { text });
    return answer.diagnoses;
  },
});

/** @param {Problem | null} error
 *  @param {boolean} [warning] */
const problem = (error, warning = false) => showProblem(byId("problem"), error, warning);

const NOTHING = { message: "There is no statement.", hint: "Write one, or choose an example above." };

/** @param {string} text */
async function run(text) {
  if (!statements(text)) return problem(NOTHING);
  const mine = (wish += 1);
  byId("run", HTMLButtonElement).disabled = true;
  try {
    const results = await post("/api/statements", { text });
    if (mine !== wish) return void (await list());
    const last = results[results.length - 1];
    const apart = last?.query?.warnings ?? []; // these stand at the query, as long as they hold
    const warnings = results
      .flatMap((r) => r.warnings.concat(r.query ? r.query.warnings : []))
      .filter((warning) => !apart.includes(warning));
    problem(warnings.length ? { message: [...new Set(warnings)].join("\n") } : null, true);
    if (!last) return;
    if (last.query) await select(last.query.id, "rows");
    else showResult(last);
    await list();
  } catch (error) {
    if (mine === wish) problem(problemOf(error));
    await list(); // statements in front of a wrong one may have started queries
  } finally {
    byId("run", HTMLButtonElement).disabled = false;
  }
}

/** Show what SHOW, DESCRIBE, EXPLAIN or CREATE gave.
 *  @param {Result} result */
function showResult(result) {
  leave();
  const isPlan =
    result.kind === "text" && !["supports", "queries", "total"].some((part) => result.data && part in result.data);
  byId("title").textContent = isPlan ? "Plan" : "Answer";
  byId("facts").textContent = result.message;
  if (result.kind === "text") {
    showPlan(result.text, result.data);
    tab("plan");
    return;
  }
  table.start(result.columns.map((name) => ({ name, type: "" })));
  table.apply(
    result.rows.map((row) => ({
      diff: 1,
      row: Object.fromEntries(result.columns.map((name, index) => [name, row[index]])),
    })),
    true,
  );
  byId("none").hidden = result.rows.length > 0;
  byId("none").textContent = result.message || "No rows.";
  tab("rows");
}

async function explain() {
  const text = editor.text();
  const many = statements(text);
  if (!many) return problem(NOTHING);
  if (many > 1) {
    return problem({ message: `Explain takes one statement; here are ${many}.`, hint: "Run executes all of them." });
  }
  const asks = /^\s*explain\b/i.test(text);
  const mine = (wish += 1);
  try {
    // On a line of its own, so that the columns of errors are those of the editor.
    const results = await post("/api/statements", {
      text: asks ? text : `EXPLAIN (TYPE FEDERATED, FORMAT JSON)\n${text}`,
    });
    if (mine !== wish) return;
    problem(null);
    showResult(results[results.length - 1]);
  } catch (thrown) {
    const error = problemOf(thrown);
    if (mine === wish) problem(error.line && !asks ? { ...error, line: error.line - 1 } : error);
  }
}

async function list() {
  const before = selected;
  const words = byId("find", HTMLInputElement).value;
  const mine = (lists += 1);
  let answer;
  try {
    answer = await listed(words, before);
  } catch (error) {
    if (problemOf(error).lost) lose(LOST);
    return;
  }
  found();
  if (mine !== lists) return; // a newer one is asked for
  showList(answer.queries, words, selected, choose);
  if (!before || before !== selected) return;
  if (answer.current) facts(answer.current);
  else ended();
}

/** The console answers: what was said of its silence goes. */
function found() {
  byId("queries").classList.remove("outdated");
  if (byId("problem").dataset.lost === "true") problem(null);
  if (doubt === LOST && source?.readyState === EventSource.OPEN) {
    rest(); // a connection that stood while nobody answered may be dead without anybody's word
    follow();
  }
}

/** Say that what is shown is no longer known to be so.
 *  @param {string} reason */
function lose(reason) {
  doubt = reason;
  byId("queries").classList.toggle("outdated", reason === LOST);
  if (selected && known) facts(known);
}

/** @param {Query} query */
function facts(query) {
  known = query;
  byId("rows").classList.toggle("outdated", Boolean(doubt));
  if (doubt) {
    byId("facts").textContent = byId("facts").title = doubt;
    byId("waiting").hidden = true;
    return;
  }
  const parts = [
    `${extent(query)}${table.cut}`,
    ...(query.emit === "relation" ? [count(query.changes, "change")] : []),
    ...(query.status === "failed"
      ? ["stopped by an error"]
      : [query.settled ? "settled" : "moving", `runs for ${age(query.created)}`]),
  ];
  byId("facts").textContent = parts.join(" · ");
  byId("facts").title = byId("facts").textContent;
  const waiting = query.error || waitingText(query.waiting_for);
  byId("waiting").hidden = !waiting;
  byId("waiting").textContent = waiting;
  const warnings = [...new Set(query.warnings)].join("\n");
  byId("warnings").hidden = !warnings;
  if (byId("warnings").textContent !== warnings) byId("warnings").textContent = warnings;
}

function leave() {
  rest();
  selected = null;
  known = null;
  doubt = "";
  byId("rows").classList.remove("outdated");
  shown = null;
  ticket += 1;
  why.close();
  table.pickable = false;
  byId("hint").hidden = true;
  byId("stop").hidden = true;
  byId("watch").hidden = true;
  byId("asked-text").hidden = true;
  byId("waiting").hidden = true;
  byId("warnings").hidden = true;
  byId("changes").replaceChildren();
  showPlan("", null);
  address(null);
  table.start([]);
  byId("none").hidden = true;
}

/** Keep the query that is shown in the address, for reloading and for coming back.
 *  @param {string | null} id */
function address(id) {
  history.replaceState(null, "", id ? `?query=${encodeURIComponent(id)}` : location.pathname);
}

/** The user wants to see this query, whatever was asked for before.
 *  @param {string} id */
function choose(id) {
  wish += 1;
  return select(id);
}

/** @param {string} wanted
 *  @param {string} [panel] */
async function select(wanted, panel) {
  leave();
  const mine = ticket;
  let query;
  try {
    query = await get(`/api/queries/${encodeURIComponent(wanted)}`);
  } catch (error) {
    if (mine !== ticket) return;
    problem(problemOf(error));
    byId("none").hidden = false;
    byId("none").textContent = "Run a query, or choose a running query, to see its rows appear and disappear live.";
    return list();
  }
  if (mine !== ticket) return;
  const { id } = query;
  selected = id;
  address(id);
  byId("title").textContent = query.name || query.id;
  byId("stop").hidden = false;
  byId("watch").hidden = false;
  // What one sees on the left is not repeated.
  byId("asked-text").hidden = query.text.trim() === editor.text().trim().replace(/;\s*$/, "");
  byId("shown-text").textContent = byId("shown-text").title = query.text.replace(/\s+/g, " ");
  byId("watch", HTMLAnchorElement).href = `/monitor?query=${encodeURIComponent(id)}`;
  shown = query;
  table.start(query.columns, { stream: query.emit !== "relation" });
  table.pickable = query.emit === "relation";
  facts(query);
  tab(panel ?? openTab());
  if (seen) follow();
  await list();
}

/** Follow the query that is shown: all its rows, then what changes. */
function follow() {
  const [id, mine] = [selected, ticket];
  // The table follows signed rows, however the query tells its other readers.
  const own = new EventSource(`/api/queries/${id}/changes?snapshot=true&progress=false&key=`);
  source = own;
  own.addEventListener("snapshot", (event) => {
    doubt = "";
    apply(JSON.parse(event.data).changes, true);
  });
  own.addEventListener("change", (event) => apply(JSON.parse(event.data).changes, false));
  own.addEventListener("status", (event) => {
    const state = JSON.parse(event.data);
    if (state.status === "stopped") ended();
    else if (state.columns) {
      table.measure(state.columns);
      facts(state);
    }
  });
  // A console that is starting may refuse; the browser itself tries again only if nobody answers.
  own.addEventListener("error", () => {
    if (own !== source) return;
    lose(LOST);
    if (own.readyState === EventSource.CLOSED) {
      setTimeout(() => own === source && mine === ticket && id && select(id), RETRY_MS);
    }
  });
}

function rest() {
  source?.close();
  source = null;
}

/** @param {Change[]} changes
 *  @param {boolean} snapshot */
function apply(changes, snapshot) {
  table.apply(changes, snapshot);
  byId("none").hidden = table.size > 0;
  byId("none").textContent = "No rows now.";
  hint();
  if (!snapshot) logChanges(byId("changes"), changes);
}

/** @type {NodeListOf<HTMLButtonElement>} */
const tabs = document.querySelectorAll(".tabs button");
/** @type {NodeListOf<HTMLElement>} */
const panels = document.querySelectorAll(".panel");

/** The name of the tab that is open. */
const openTab = () => [...tabs].find((button) => button.getAttribute("aria-selected") === "true")?.dataset.tab ?? "";

/** Say what clicking a row does, where there are rows. */
function hint() {
  byId("hint").hidden = openTab() !== "rows" || table.size === 0 || shown?.emit !== "relation";
}

/** @param {string} name */
async function tab(name) {
  for (const button of tabs) {
    button.setAttribute("aria-selected", String(button.dataset.tab === name));
  }
  for (const panel of panels) panel.hidden = panel.dataset.panel !== name;
  if (name !== "rows") why.close();
  hint();
  if (name !== "plan" || !selected) return;
  const mine = ticket;
  const { text, data } = await get(`/api/queries/${selected}/explain`).catch((error) => ({
    text: error.message,
    data: null,
  }));
  if (mine === ticket) showPlan(text, data);
}

/** The query was stopped, here or elsewhere: what was shown is no longer so. */
function ended() {
  leave();
  byId("title").textContent = "Answer";
  byId("facts").textContent = "";
  byId("none").hidden = false;
  byId("none").textContent = "The query was stopped.";
  tab("rows");
  list();
}

byId("run").addEventListener("click", () => run(editor.text()));
byId("copy").addEventListener("click", () => {
  if (shown) editor.setText(shown.text);
  byId("asked-text").hidden = true;
});
byId("explain").addEventListener("click", explain);
byId("try").addEventListener("click", () => sessionStorage.setItem("pando.trial", editor.text()));
byId("stop").addEventListener("click", async () => {
  await request("DELETE", `/api/queries/${selected}`).catch(problem);
  ended();
});
const choice = byId("examples", HTMLSelectElement);
choice.addEventListener("change", () => {
  if (choice.value !== "") editor.setText(examples[Number(choice.value)]);
  choice.value = "";
});
for (const button of tabs) {
  button.addEventListener("click", () => tab(button.dataset.tab ?? ""));
}

get("/api/definitions")
  .then((all) => editor.setSchema(Object.fromEntries(all.map((d) => [d.name, d.columns.map((c) => c.name)]))))
  .catch(problem);
const wanted = new URLSearchParams(location.search).get("query");
if (wanted) choose(wanted);
againWhileSeen(list, 2000);
byId("find").addEventListener("input", () => void list());
whileSeen(
  () => {
    seen = true;
    if (!selected) return;
    lose(LOOKING);
    follow();
  },
  () => {
    seen = false;
    rest();
  },
);
