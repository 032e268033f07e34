// The page of trials on history: what is tried, what it would have given, and earlier trials.
import { mount } from "/static/vendor/editor.js";
import { count, fill, fromTo, get, make, moment, post, problemOf, request, text } from "../api.js";
import { byId, focusedIn, focusOn } from "../elements.js";
import { showProblem } from "../problem_box.js";
import { statements } from "../statement_count.js";
import { againWhileSeen } from "../while_seen.js";
import { picture } from "./past_plot.js";
import { statement } from "./past_statement.js";

/** @import { HistoryTrial, PastChange } from "../payloads.d.ts" */

const LOOK_MILLISECONDS = 1000;
const PAGE = 100; // changes of the table
const READ_AT_ONCE = 20; // answers of up to 1,000 changes, one after the other, until the page is drawn

/** @type {string | null} */
let selected = null; // id of the trial shown
/** @type {PastChange[]} */
let changes = []; // of it, as far as they are read; of an alarm only its own
let next = 0; // where to read on
let first = 0; // of the changes in the table
let looking = false;
/** @type {{ message: string, hint: string, code: string } | null} */
let shownProblem = null; // of the trial shown
let drawn = ""; // what the picture and the table show: they are not drawn again without need
let ticket = 0; // of the newest selection: older answers are dropped

const asked = new URLSearchParams(location.search);
const editor = mount(byId("editor"), {
  doc: asked.get("text") ?? sessionStorage.getItem("pando.trial") ?? "",
  hint: "SELECT …, CREATE ALARM …, or a name",
  onRun: start,
  complete: (written, offset) => post("/api/complete", { text: written, offset }),
  validate: async (written) => {
    sessionStorage.setItem("pando.trial", written);
    return []; // a name is no statement, but may be tried; the console says what is wrong when it starts
  },
});

const choice = byId("interval", HTMLSelectElement);

/** @param {string} tried */
async function start(tried) {
  const problem = byId("problem");
  const many = statements(tried);
  if (many !== 1) {
    const message = many ? `One statement is tried at a time; here are ${many}.` : "There is nothing to try.";
    return showProblem(problem, { message, hint: "Write a query, a CREATE ALARM statement or a name." });
  }
  const button = byId("start", HTMLButtonElement);
  button.disabled = true;
  try {
    const when = {
      interval: choice.value,
      from: byId("from", HTMLInputElement).value,
      to: byId("to", HTMLInputElement).value,
      speed: byId("speed", HTMLSelectElement).value,
    };
    const [result] = await post("/api/statements", { text: statement(tried, when, new Date()) });
    const warnings = result?.warnings ?? [];
    showProblem(problem, warnings.length ? { message: warnings.join("\n") } : null, true);
    const begun = result?.data;
    if (begun && "trial" in begun) select(String(begun.trial));
  } catch (thrown) {
    const error = problemOf(thrown);
    // RUN stands on a line of its own above what was written.
    showProblem(problem, error.line ? { ...error, line: error.line - 1 } : error);
  } finally {
    button.disabled = false;
  }
}

/** @param {string} id */
function select(id) {
  ticket += 1;
  [selected, changes, next, first, looking] = [id, [], 0, 0, false];
  [shownProblem, drawn] = [null, ""];
  history.replaceState(null, "", `?trial=${encodeURIComponent(id)}`);
  byId("none").hidden = true;
  byId("picture").replaceChildren();
  fillTable(null);
  look();
}

/** Ask how far the trials are, and for what the one shown has given since. */
async function look() {
  if (looking) return;
  looking = true;
  const mine = ticket;
  try {
    const trials = await get("/api/history/trials");
    if (mine === ticket) list(trials);
    for (let n = 0; selected && mine === ticket && n < READ_AT_ONCE; n += 1) {
      const trial = await get(`/api/history/trials/${encodeURIComponent(selected)}?since=${next}`);
      if (mine !== ticket) return;
      changes.push(...trial.changes.filter((each) => !trial.alarm || each.alarm !== null));
      next = trial.next;
      if (trial.next >= trial.events - trial.dropped || n === READ_AT_ONCE - 1) {
        show(trial);
        break;
      }
    }
    showProblem(byId("trial-problem"), shownProblem);
  } catch (error) {
    if (mine === ticket) showProblem(byId("trial-problem"), problemOf(error));
  } finally {
    if (mine === ticket) looking = false;
  }
}

/** @param {HistoryTrial[]} trials */
function list(trials) {
  const focused = focusedIn(byId("trials"))?.dataset.trial;
  const items = trials.map((trial) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          "data-trial": trial.id,
          "aria-current": trial.id === selected ? "true" : null,
          onclick: () => select(trial.id),
          title: trial.text,
        },
        make("span", { class: `badge ${state(trial)}` }, state(trial)),
        make("span", { class: "text" }, trial.text.replace(/\s+/g, " ")),
        make("span", { class: "facts" }, count(trial.events, "change")),
      ),
    ),
  );
  fill(byId("trials"), items.length ? items : [make("li", { class: "empty" }, "Nothing has been tried yet.")]);
  if (focused) focusOn(byId("trials"), `[data-trial="${CSS.escape(focused)}"]`);
}

/** @param {HistoryTrial} trial */
function state(trial) {
  if (trial.code === "stopped") return "stopped";
  if (trial.problem) return "failed";
  return trial.done ? "done" : "running";
}

/** @param {HistoryTrial} trial */
function show(trial) {
  byId("title").textContent = trial.alarm ? `Alarm ${trial.alarm}` : "Result";
  const interval = fromTo(trial.since, trial.until).join(" to ");
  const facts = `${interval} · ${trial.readings.toLocaleString()} readings in ${trial.seconds.toFixed(1)} s`;
  byId("facts").textContent = byId("facts").title = facts;
  byId("stop").hidden = trial.done;
  const bar = byId("progress", HTMLProgressElement);
  bar.hidden = trial.done;
  bar.value = trial.share;
  shownProblem = trial.problem ? { message: trial.problem, hint: trial.hint, code: trial.code } : null;
  const dropped = trial.dropped ? [`${count(trial.dropped, "later change")} are not kept: they are too many.`] : [];
  fill(
    byId("notes"),
    [...trial.notes, ...dropped].map((note) => make("li", {}, note)),
  );
  byId("none").hidden = changes.length > 0 || !trial.done || Boolean(trial.problem);
  byId("none").textContent = trial.alarm
    ? "The alarm would not have been raised in this interval."
    : "The query would have given no row in this interval.";
  const now = `${changes.length} ${trial.done}`;
  if (now === drawn) return;
  drawn = now;
  fill(byId("picture"), changes.length ? [picture(trial, changes)] : []);
  fillTable(trial);
}

/** @type {HistoryTrial | null} */
let inTable = null;

/** @param {HistoryTrial | null} trial */
function fillTable(trial) {
  inTable = trial;
  const table = byId("changes", HTMLTableElement);
  const names = trial && changes.length ? trial.columns.map(({ name }) => name) : [];
  const heads = names.length ? ["Time", trial?.alarm ? "Alarm" : "Change", ...names] : [];
  fill(
    table.tHead ?? table.createTHead(),
    make(
      "tr",
      {},
      heads.map((name) => make("th", {}, name)),
    ),
  );
  const shown = changes.slice(first, first + PAGE);
  fill(
    table.tBodies[0] ?? table.createTBody(),
    shown.map(({ ts, diff, row, alarm }) =>
      make(
        "tr",
        { class: alarm === null ? (diff > 0 ? "came" : "went") : null },
        make("td", { class: "tight" }, make("time", { datetime: ts, title: ts }, moment(ts))),
        make("td", { class: "sign" }, alarm ?? (diff > 0 ? `+${diff}` : String(diff))),
        names.map((name) => make("td", { class: row[name] === null ? "null" : "tight" }, text(row[name] ?? null))),
      ),
    ),
  );
  byId("pager").hidden = changes.length <= PAGE;
  const last = first + shown.length;
  byId("place").textContent = `${first + 1} to ${last} of ${changes.length}`;
  byId("earlier", HTMLButtonElement).disabled = first === 0;
  byId("later", HTMLButtonElement).disabled = first + PAGE >= changes.length;
}

/** @param {number} step */
function turn(step) {
  first = Math.max(0, first + step);
  fillTable(inTable);
}

byId("when").addEventListener("submit", (event) => {
  event.preventDefault();
  start(editor.text());
});
choice.addEventListener("change", () => {
  for (const label of document.querySelectorAll(".past-when .own")) {
    if (label instanceof HTMLElement) label.hidden = choice.value !== "own";
  }
});
byId("earlier").addEventListener("click", () => turn(-PAGE));
byId("later").addEventListener("click", () => turn(PAGE));
byId("stop").addEventListener("click", async () => {
  await request("DELETE", `/api/history/trials/${encodeURIComponent(selected ?? "")}`).catch((error) =>
    showProblem(byId("problem"), problemOf(error)),
  );
  look();
});
get("/api/definitions")
  .then((all) => editor.setSchema(Object.fromEntries(all.map((d) => [d.name, d.columns.map((c) => c.name)]))))
  .catch((error) => showProblem(byId("problem"), problemOf(error)));
get("/api/lake").catch((error) => showProblem(byId("problem"), problemOf(error), true)); // nothing is kept
const wanted = asked.get("trial");
if (wanted) select(wanted);
againWhileSeen(look, LOOK_MILLISECONDS);
