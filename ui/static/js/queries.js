// The query console: editor, running queries, live rows.
import { mount } from "/static/vendor/editor.js";
import { age, count, extent, get, make, post, request } from "./api.js";
import { RowsTable } from "./rows_table.js";
import { againWhileSeen, whileSeen } from "./while_seen.js";
import { WhyPanel } from "./why.js";

const byId = (id) => document.getElementById(id);
const examples = JSON.parse(byId("example-texts").textContent);
const MAX_CHANGES = 500;
const RETRY_MS = 2000;
const LOST = "Connection lost: this page shows old data. Reconnecting…";
const LOOKING = "Retrying…";

let selected = null; // id of the query shown
let source = null; // its EventSource, while the page is seen
let known = null; // what was last heard of it
let doubt = ""; // why that may not be so any more
let ticket = 0; // of the newest selection: older answers are dropped
let shown = null; // the query shown, as it was when chosen
let seen = false; // whether the page is
let wish = 0; // number of the user's newest wish: the answer to an older one does not take its place
const table = new RowsTable(byId("rows"), (row) => why.ask(shown, row));
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

function problem(error, warning = false) {
  const box = byId("problem");
  box.hidden = !error;
  box.dataset.lost = Boolean(error?.lost);
  if (!error) return;
  box.className = warning ? "problem warning" : "problem";
  const place = error.line
    ? make("div", { class: "place" }, `line ${error.line}, column ${error.column}`, error.text ? `: ${error.text}` : "")
    : null;
  const done = (error.carried_out ?? []).map((deed) => make("li", {}, deed));
  box.replaceChildren(
    make("strong", {}, error.message),
    ...(place ? [place] : []),
    ...(error.hint ? [make("div", { class: "hint" }, error.hint)] : []),
    ...(done.length ? [make("div", { class: "done" }, "Already done:", make("ul", {}, done))] : []),
    ...(error.code ? [make("div", { class: "code" }, error.code)] : []),
  );
}

/** How many statements a text has. */
function statements(text) {
  const bare = text.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--.*$|\/\*[^]*?\*\//gm, (found) =>
    /^['"]/.test(found) ? "x" : " ",
  );
  return bare.split(";").filter((part) => part.trim()).length;
}

const NOTHING = { message: "There is no statement.", hint: "Write one, or choose an example above." };

async function run(text) {
  if (!statements(text)) return problem(NOTHING);
  const mine = (wish += 1);
  byId("run").disabled = true;
  try {
    const results = await post("/api/statements", { text });
    if (mine !== wish) return void (await list());
    const last = results[results.length - 1];
    const apart = last?.kind === "query" ? last.query.warnings : []; // these stand at the query, as long as they hold
    const warnings = results
      .flatMap((r) => r.warnings.concat(r.query ? r.query.warnings : []))
      .filter((text) => !apart.includes(text));
    problem(warnings.length ? { message: [...new Set(warnings)].join("\n") } : null, true);
    if (!last) return;
    if (last.query) await select(last.query.id, "rows");
    else showResult(last);
    await list();
  } catch (error) {
    if (mine === wish) problem(error);
    await list(); // statements in front of a wrong one may have started queries
  } finally {
    byId("run").disabled = false;
  }
}

/** Show what SHOW, DESCRIBE, EXPLAIN or CREATE gave. */
function showResult(result) {
  leave();
  const isPlan =
    result.kind === "text" && !["supports", "queries", "total"].some((part) => result.data && part in result.data);
  byId("title").textContent = isPlan ? "Plan" : "Answer";
  byId("facts").textContent = result.message;
  if (result.kind === "text") {
    byId("plan").textContent = result.text;
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
  if (many > 1)
    return problem({ message: `Explain takes one statement; here are ${many}.`, hint: "Run executes all of them." });
  const asks = /^\s*explain\b/i.test(text);
  const mine = (wish += 1);
  try {
    // On a line of its own, so that the columns of errors are those of the editor.
    const results = await post("/api/statements", { text: asks ? text : `EXPLAIN (TYPE FEDERATED)\n${text}` });
    if (mine !== wish) return;
    problem(null);
    showResult(results[results.length - 1]);
  } catch (error) {
    if (mine === wish) problem(error.line && !asks ? { ...error, line: error.line - 1 } : error);
  }
}

async function list() {
  const before = selected;
  let queries;
  try {
    queries = (await get("/api/queries")).filter((q) => q.origin === "user" || q.id === selected);
  } catch (error) {
    if (error.lost) lose(LOST);
    return;
  }
  byId("queries").classList.remove("outdated");
  if (byId("problem").dataset.lost === "true") problem(null); // it answers again
  if (doubt === LOST && source?.readyState === EventSource.OPEN) {
    rest(); // a connection that stood while nobody answered may be dead without anybody's word
    follow();
  }
  const focused = byId("queries").contains(document.activeElement) ? document.activeElement.dataset.query : null;
  const items = queries.reverse().map((q) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          "data-query": q.id,
          "aria-current": q.id === selected ? "true" : null,
          onclick: () => choose(q.id),
          title: q.text,
        },
        make("span", { class: `badge ${q.status}` }, q.status),
        make("span", { class: "text" }, `${q.name || q.id}  ${q.text.replace(/\s+/g, " ")}`),
        make("span", { class: "facts", title: count(q.changes, "change") }, `${extent(q)} · ${age(q.created)}`),
      ),
    ),
  );
  byId("queries").replaceChildren(
    ...(items.length ? items : [make("li", { class: "empty" }, "No query runs. Choose an example and press Run.")]),
  );
  if (focused)
    byId("queries")
      .querySelector(`[data-query="${CSS.escape(focused)}"]`)
      ?.focus({ preventScroll: true });
  const current = queries.find((q) => q.id === selected);
  if (current) facts(current);
  else if (before && before === selected) ended();
}

/** Say that what is shown is no longer known to be so. */
function lose(why) {
  doubt = why;
  byId("queries").classList.toggle("outdated", why === LOST);
  if (selected && known) facts(known);
}

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
  const waiting =
    query.error ||
    (query.waiting_for.length
      ? `Waiting for ${query.waiting_for.join(", ")}${query.waiting_for.includes("static") ? ": Spark is warming up" : ""}.`
      : "");
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
  byId("plan").textContent = "";
  address(null);
  table.start([]);
  byId("none").hidden = true;
}

/** Keep the query that is shown in the address, for reloading and for coming back. */
function address(id) {
  history.replaceState(null, "", id ? `?query=${encodeURIComponent(id)}` : location.pathname);
}

/** The user wants to see this query, whatever was asked for before. */
function choose(id) {
  wish += 1;
  return select(id);
}

async function select(wanted, panel) {
  leave();
  const mine = ticket;
  let query;
  try {
    query = await get(`/api/queries/${encodeURIComponent(wanted)}`);
  } catch (error) {
    if (mine !== ticket) return;
    problem(error);
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
  byId("asked-text").hidden = query.text.trim() === editor.text().trim().replace(/;\s*$/, ""); // what one sees on the left
  byId("shown-text").textContent = byId("shown-text").title = query.text.replace(/\s+/g, " ");
  byId("watch").href = `/monitor?query=${encodeURIComponent(id)}`;
  shown = query;
  table.start(query.columns, { stream: query.emit !== "relation" });
  table.pickable = query.emit === "relation";
  facts(query);
  tab(panel ?? document.querySelector('.tabs [aria-selected="true"]').dataset.tab);
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
    else if (state.columns) facts(state);
  });
  // A console that is starting may refuse; the browser itself tries again only if nobody answers.
  own.addEventListener("error", () => {
    if (own !== source) return;
    lose(LOST);
    if (own.readyState === EventSource.CLOSED)
      setTimeout(() => own === source && mine === ticket && select(id), RETRY_MS);
  });
}

function rest() {
  source?.close();
  source = null;
}

function apply(changes, snapshot) {
  table.apply(changes, snapshot);
  byId("none").hidden = table.size > 0;
  byId("none").textContent = "No rows now.";
  hint();
  if (!snapshot) logChanges(changes);
}

/** Say what clicking a row does, where there are rows. */
function hint() {
  const panel = document.querySelector('.tabs [aria-selected="true"]').dataset.tab;
  byId("hint").hidden = panel !== "rows" || table.size === 0 || shown?.emit !== "relation";
}

function logChanges(changes) {
  const log = byId("changes");
  for (const change of changes.slice(-MAX_CHANGES)) {
    const values = Object.values(change.row)
      .map((value) => (value === null ? "NULL" : value))
      .join("  ");
    log.prepend(
      make(
        "li",
        { class: change.diff > 0 ? "plus" : "minus" },
        make("time", {}, change.ts.slice(11, 23)),
        `${change.diff > 0 ? "+" : "-"} ${values}`,
      ),
    );
  }
  while (log.children.length > MAX_CHANGES) log.lastChild.remove();
}

async function tab(name) {
  for (const button of document.querySelectorAll(".tabs button"))
    button.setAttribute("aria-selected", String(button.dataset.tab === name));
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.dataset.panel !== name;
  if (name !== "rows") why.close();
  hint();
  if (name !== "plan" || !selected) return;
  const mine = ticket;
  const { text } = await get(`/api/queries/${selected}/explain`).catch((error) => ({ text: error.message }));
  if (mine === ticket) byId("plan").textContent = text;
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
  editor.setText(shown.text);
  byId("asked-text").hidden = true;
});
byId("explain").addEventListener("click", explain);
byId("stop").addEventListener("click", async () => {
  await request("DELETE", `/api/queries/${selected}`).catch(problem);
  ended();
});
byId("examples").addEventListener("change", (event) => {
  if (event.target.value !== "") editor.setText(examples[Number(event.target.value)]);
  event.target.value = "";
});
for (const button of document.querySelectorAll(".tabs button"))
  button.addEventListener("click", () => tab(button.dataset.tab));

get("/api/definitions")
  .then((all) => editor.setSchema(Object.fromEntries(all.map((d) => [d.name, d.columns.map((c) => c.name)]))))
  .catch(problem);
const wanted = new URLSearchParams(location.search).get("query");
if (wanted) choose(wanted);
againWhileSeen(list, 2000);
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
