// The query console: editor, running queries, live rows.
import { mount } from "/static/vendor/editor.js";
import { age, get, make, post, request } from "./api.js";

const byId = (id) => document.getElementById(id);
const examples = JSON.parse(byId("example-texts").textContent);
const MAX_CHANGES = 500;
const MAX_ROWS = 2000;

let selected = null; // id of the query shown
let source = null; // its EventSource
let columns = [];
const shown = new Map(); // row key -> {weight, element}

const editor = mount(byId("editor"), {
  doc: localStorage.getItem("pando.query") || examples[0],
  onRun: run,
  validate: async (text) => {
    localStorage.setItem("pando.query", text);
    const answer = await post("/api/validate", { text });
    return answer.diagnoses;
  },
});

function problem(error, warning = false) {
  const box = byId("problem");
  box.hidden = !error;
  if (!error) return;
  box.className = warning ? "problem warning" : "problem";
  const place = error.line ? make("div", { class: "place" }, `line ${error.line}, column ${error.column}`, error.text ? `: ${error.text}` : "") : null;
  box.replaceChildren(make("strong", {}, error.message), ...(place ? [place] : []), ...(error.hint ? [make("div", { class: "hint" }, error.hint)] : []));
}

async function run(text) {
  byId("run").disabled = true;
  try {
    const results = await post("/api/statements", { text });
    const last = results[results.length - 1];
    const warnings = results.flatMap((r) => r.warnings.concat(r.query ? r.query.warnings : []));
    problem(warnings.length ? { message: [...new Set(warnings)].join("\n") } : null, true);
    if (!last) return;
    if (last.query) await select(last.query.id, "rows");
    else showResult(last);
    await list();
  } catch (error) {
    problem(error);
  } finally {
    byId("run").disabled = false;
  }
}

/** Show what SHOW, DESCRIBE, EXPLAIN or CREATE gave. */
function showResult(result) {
  leave();
  byId("title").textContent = result.kind === "text" ? "Plan" : "Answer";
  byId("facts").textContent = result.message;
  if (result.kind === "text") {
    byId("plan").textContent = result.text;
    tab("plan");
    return;
  }
  head(result.columns.map((name) => ({ name, type: "" })));
  byId("rows").tBodies[0].replaceChildren(...result.rows.map((row) => make("tr", {}, row.map(cell))));
  byId("none").hidden = result.rows.length > 0;
  byId("none").textContent = result.message || "No rows.";
  tab("rows");
}

async function explain() {
  const text = editor.text().trim().replace(/;\s*$/, "");
  try {
    const results = await post("/api/statements", { text: /^explain\b/i.test(text) ? text : `EXPLAIN (TYPE FEDERATED) ${text}` });
    problem(null);
    showResult(results[results.length - 1]);
  } catch (error) {
    problem(error);
  }
}

async function list() {
  let queries;
  try {
    queries = (await get("/api/queries")).filter((q) => q.origin === "user" || q.id === selected);
  } catch {
    return;
  }
  const items = queries.reverse().map((q) =>
    make("li", {}, make("button", { type: "button", "aria-current": q.id === selected ? "true" : null, onclick: () => select(q.id), title: q.text },
      make("span", { class: `badge ${q.status}` }, q.status),
      make("span", { class: "text" }, `${q.name || q.id}  ${q.text.replace(/\s+/g, " ")}`),
      make("span", { class: "facts" }, `${q.rows} rows`))));
  byId("queries").replaceChildren(...(items.length ? items : [make("li", { class: "empty" }, "No query runs. Choose an example and press Run.")]));
  const current = queries.find((q) => q.id === selected);
  if (current) facts(current);
}

function facts(query) {
  byId("facts").textContent = `${query.rows} rows · ${query.changes} changes · ${query.settled ? "settled" : "moving"} · started ${age(query.created)} ago`;
  const waiting = query.error || (query.waiting_for.length ? `Waiting for ${query.waiting_for.join(", ")}${query.waiting_for.includes("static") ? ": Spark is warming up" : ""}.` : "");
  byId("waiting").hidden = !waiting;
  byId("waiting").textContent = waiting;
}

function leave() {
  if (source) source.close();
  source = null;
  selected = null;
  shown.clear();
  byId("stop").hidden = true;
  byId("waiting").hidden = true;
  byId("changes").replaceChildren();
  byId("rows").tBodies[0].replaceChildren();
  byId("none").hidden = true;
}

async function select(id, panel) {
  leave();
  const query = await get(`/api/queries/${id}`);
  selected = id;
  byId("title").textContent = query.name || query.id;
  byId("stop").hidden = false;
  head(query.columns);
  facts(query);
  if (panel) tab(panel);
  source = new EventSource(`/api/queries/${id}/changes`);
  source.addEventListener("snapshot", (event) => {
    shown.clear();
    byId("rows").tBodies[0].replaceChildren();
    apply(JSON.parse(event.data).changes, true);
  });
  source.addEventListener("change", (event) => apply(JSON.parse(event.data).changes, false));
  source.addEventListener("status", (event) => {
    const state = JSON.parse(event.data);
    if (state.status === "stopped") source.close();
    if (state.columns) facts(state);
  });
  await list();
}

function head(fields) {
  columns = fields;
  byId("rows").tHead.replaceChildren(make("tr", {}, fields.map((f) => make("th", { title: f.type }, f.name))));
}

function cell(value) {
  if (value === null) return make("td", { class: "null" }, "NULL");
  const number = typeof value === "number";
  return make("td", { class: number ? "number" : null }, number && !Number.isInteger(value) ? String(Math.round(value * 1e6) / 1e6) : String(value));
}

function apply(changes, snapshot) {
  const body = byId("rows").tBodies[0];
  for (const change of changes) {
    const key = JSON.stringify(change.row);
    const entry = shown.get(key) || { weight: 0, element: null };
    entry.weight += change.diff;
    if (entry.weight > 0) {
      if (!entry.element && shown.size < MAX_ROWS) {
        entry.element = make("tr", { class: snapshot ? null : "in" }, columns.map((f) => cell(change.row[f.name])));
        body.prepend(entry.element);
      }
      shown.set(key, entry);
    } else {
      shown.delete(key);
      if (entry.element) fade(entry.element);
    }
  }
  byId("none").hidden = shown.size > 0;
  byId("none").textContent = "No rows at present.";
  if (!snapshot) logChanges(changes);
}

function fade(element) {
  element.className = "out";
  setTimeout(() => element.remove(), 1200);
}

function logChanges(changes) {
  const log = byId("changes");
  for (const change of changes) {
    const values = columns.map((f) => (change.row[f.name] === null ? "NULL" : change.row[f.name])).join("  ");
    log.prepend(make("li", { class: change.diff > 0 ? "plus" : "minus" }, make("time", {}, change.ts.slice(11, 23)), `${change.diff > 0 ? "+" : "-"} ${values}`));
  }
  while (log.children.length > MAX_CHANGES) log.lastChild.remove();
}

async function tab(name) {
  for (const button of document.querySelectorAll(".tabs button")) button.setAttribute("aria-selected", String(button.dataset.tab === name));
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.dataset.panel !== name;
  if (name === "plan" && selected) byId("plan").textContent = (await get(`/api/queries/${selected}/explain`)).text;
}

byId("run").addEventListener("click", () => run(editor.text()));
byId("explain").addEventListener("click", explain);
byId("stop").addEventListener("click", async () => {
  await request("DELETE", `/api/queries/${selected}`).catch(problem);
  leave();
  byId("title").textContent = "Answer";
  byId("facts").textContent = "";
  list();
});
byId("examples").addEventListener("change", (event) => {
  if (event.target.value !== "") editor.setText(examples[Number(event.target.value)]);
  event.target.value = "";
});
for (const button of document.querySelectorAll(".tabs button")) button.addEventListener("click", () => tab(button.dataset.tab));

get("/api/definitions").then((all) => editor.setSchema(Object.fromEntries(all.map((d) => [d.name, d.columns.map((c) => c.name)])))).catch(problem);
list();
setInterval(list, 2000);
