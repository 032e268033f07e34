// The lake on the page of data: what is kept, what the pipeline does, and care of it with its progress.
import { age, count, fill, get, make, moment, post, problemOf, request } from "../api.js";
import { byId, focusedIn, focusOn } from "../elements.js";
import { showProblem } from "../problem_box.js";
import { againWhileSeen } from "../while_seen.js";
import { details } from "./lake_details.js";
import { size } from "./sizes.js";

/** @import { LakeJob, LakePipeline, LakeStatus, LakeTable } from "../payloads.d.ts" */

const REFRESH_MILLISECONDS = 3000;
const COLUMNS = 9;
const SHOWN_JOBS = 5;
const OVER = ["done", "failed", "cancelled"];

const body = byId("kept");
const problem = byId("lake-problem");
/** @type {Map<string, HTMLElement>} */
const opened = new Map(); // tables that are open, with what stands below them
const me = await get("/api/me").catch(() => null);
const mayCare = !me?.accounts || me.role === "operator" || me.role === "administrator";

/** Begin a job, and show how far it is.
 *  @param {object} job */
async function begin(job) {
  try {
    await post("/api/lake/jobs", job);
    showProblem(problem, null);
  } catch (error) {
    showProblem(problem, problemOf(error));
  }
  await refresh();
}

/** @param {LakeJob} job */
async function cancel(job) {
  await request("DELETE", `/api/lake/jobs/${encodeURIComponent(job.id)}`).catch((error) =>
    showProblem(problem, problemOf(error)),
  );
  await refresh();
}

/** @param {string} label
 *  @param {string} name what a screen reader says
 *  @param {() => unknown} onclick */
const button = (label, name, onclick) =>
  make("button", { type: "button", "aria-label": name, "data-focus": name, onclick }, label);

/** @param {LakeJob} job */
function jobRow(job) {
  const what = `${job.task} ${job.table}`.trim();
  const isOver = OVER.includes(job.state);
  const bar = make("progress", { max: 1, value: job.share, "aria-label": `Progress of ${what}` });
  return make(
    "tr",
    {},
    make("td", { class: "tight" }, what),
    make("td", { class: "tight" }, make("span", { class: `badge ${job.state}` }, job.state)),
    make("td", {}, isOver ? job.message : bar),
    make("td", { class: "tight" }, job.ended || job.began ? moment(job.ended ?? job.began ?? "") : ""),
    make("td", { class: "tight" }, !isOver && mayCare && button("Cancel", `Cancel ${what}`, () => cancel(job))),
  );
}

/** @param {LakePipeline} pipeline */
function pipelineFacts(pipeline) {
  const facts = [
    pipeline.running ? "running" : "not running",
    `${Math.round(pipeline.rate)} readings/s`,
    pipeline.lag !== null && `lag ${pipeline.lag.toFixed(1)} s`,
    pipeline.batch_seconds !== null && `batch ${pipeline.batch_seconds.toFixed(1)} s`,
    `${count(pipeline.dead, "dead letter")}`,
    `${count(pipeline.waiting, "segment")} waiting (${size(pipeline.waiting_bytes)})`,
    pipeline.repeated > 0 && `${pipeline.repeated} came again`,
  ];
  const said = [pipeline.problem, ...pipeline.drift, ...pipeline.damaged].filter(Boolean);
  return [
    make("p", { class: "quiet" }, "Pipeline: ", facts.filter(Boolean).join(" · ")),
    said.length > 0 &&
      make(
        "ul",
        { class: "problem warning" },
        said.map((text) => make("li", {}, text)),
      ),
  ];
}

/** @param {LakeTable} table
 *  @param {LakeStatus} status */
function toggle(table, status) {
  if (!opened.delete(table.table)) opened.set(table.table, details(table, status));
  refresh();
}

/** @param {LakeTable} table */
function buttons(table) {
  const one = (/** @type {string} */ label, /** @type {object} */ job) =>
    button(label, `${label} ${table.table}`, () => begin({ ...job, table: table.table }));
  return make(
    "div",
    { class: "buttons" },
    one("Compact", { task: "compact" }),
    one("Discard old", { task: "expire" }),
    one("Export", { task: "export" }),
    one("Export CSV", { task: "export", format: "csv" }),
  );
}

/** @param {LakeTable} table
 *  @param {LakeStatus} status */
function rows(table, status) {
  const isOpen = opened.has(table.table);
  const open = make(
    "button",
    {
      type: "button",
      "aria-expanded": String(isOpen),
      "aria-label": table.table, // without the triangle before it
      "data-focus": `open ${table.table}`,
      onclick: () => toggle(table, status),
    },
    table.table,
  );
  const small = table.small_files ? ` (${table.small_files} small)` : "";
  const found = [
    make(
      "tr",
      { title: table.problem },
      make("td", { class: "tight" }, open),
      make("td", { class: "number" }, table.rows.toLocaleString()),
      make("td", { class: "number tight" }, size(table.bytes)),
      make("td", { class: "number tight" }, `${table.files}${small}`),
      make("td", { class: "tight" }, table.first ? moment(table.first) : ""),
      make("td", { class: "tight" }, table.last ? moment(table.last) : table.problem),
      make("td", { class: "tight", title: table.committed }, table.committed ? `${age(table.committed)} ago` : ""),
      make("td", { class: "tight" }, table.keep),
      make("td", {}, table.rollups.join(", ")),
    ),
  ];
  const below = opened.get(table.table);
  if (below) {
    const care = mayCare && buttons(table);
    found.push(make("tr", { class: "kept-open" }, make("td", { colspan: COLUMNS }, care, below)));
  }
  return found;
}

/** @param {LakeStatus} status */
function show(status) {
  byId("lake-where").textContent = `${status.where} · cared for by ${status.workers}`;
  fill(byId("lake-pipeline"), status.pipeline ? pipelineFacts(status.pipeline) : null);
  const focused = focusedIn(body)?.dataset.focus;
  fill(
    body,
    status.tables.length
      ? status.tables.flatMap((table) => rows(table, status))
      : make("tr", {}, make("td", { colspan: COLUMNS, class: "empty" }, "Nothing is kept yet.")),
  );
  if (focused) focusOn(body, `[data-focus="${CSS.escape(focused)}"]`);
  byId("lake-more").textContent = status.more ? `${count(status.more, "more table")} are not shown.` : "";
  byId("lake-jobs-section").hidden = !status.jobs.length;
  const jobs = byId("lake-jobs");
  const pressed = focusedIn(jobs)?.dataset.focus;
  fill(jobs, status.jobs.slice(-SHOWN_JOBS).reverse().map(jobRow));
  if (pressed) focusOn(jobs, `[data-focus="${CSS.escape(pressed)}"]`);
}

async function refresh() {
  try {
    show(await get("/api/lake"));
    byId("lake-section").hidden = false;
  } catch (error) {
    const told = problemOf(error);
    if (told.lost) return; // the next look may find it
    byId("lake-section").hidden = told.code === "no_lake";
    showProblem(problem, told);
  }
}

for (const [id, task] of [
  ["lake-compact", "compact"],
  ["lake-expire", "expire"],
  ["lake-replay", "replay"],
]) {
  byId(id ?? "").hidden = !mayCare;
  byId(id ?? "").addEventListener("click", () => begin({ task }));
}

againWhileSeen(refresh, REFRESH_MILLISECONDS);
