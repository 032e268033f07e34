// The page of alarms: what is raised, what was, which there are.
import { fill, make, moment, post, problemOf, text } from "./api.js";
import { eventsWhileSeen } from "./events_while_seen.js";
import { byId } from "./elements.js";
import { whyUnknown } from "./why_unknown.js";

/** @typedef {AlarmRow & { severity: Severity, reason: string }} ListedRow */
/** @import { Alarm, AlarmRow, Problem, Row, Severity } from "./payloads.d.ts" */

const ORDER = { critical: 0, warning: 1, info: 2 };
const MAX_CLEARED = 100;

/** @param {string | null} iso */
const time = (iso) => (iso ? make("time", { datetime: iso, title: iso }, moment(iso)) : "");
/** @param {Severity} name */
const severity = (name) => make("span", { class: `severity ${name}` }, name);
/** @param {Row} row */
const values = (row) =>
  Object.entries(row).map(([name, value]) => make("span", { class: "value" }, make("b", {}, name), " ", text(value)));

/** @param {Problem | null} error */
function problem(error) {
  byId("alarm-problem").hidden = !error;
  if (error) byId("alarm-problem").textContent = error.message;
}

/** @param {string} path */
async function acknowledge(path) {
  try {
    await post(`/api/alarms/${path}/acknowledge`, {});
    problem(null);
  } catch (error) {
    problem(problemOf(error));
  }
}

/** @param {AlarmRow} row */
function action(row) {
  if (row.acknowledged) return make("span", { class: "quiet" }, "acknowledged");
  return make("button", { type: "button", onclick: () => acknowledge(`rows/${row.id}`) }, "Acknowledge");
}

/** @param {Alarm} alarm */
function actionForAll(alarm) {
  if (alarm.unacknowledged < 2) return "";
  const label = `Acknowledge ${alarm.unacknowledged}`;
  return make("button", { type: "button", onclick: () => acknowledge(encodeURIComponent(alarm.alarm)) }, label);
}

// "Raised", or why nobody can tell whether it still is.
/** @param {ListedRow} row */
function standing(row) {
  if (row.state !== "unknown") return row.state === "cleared" ? "cleared" : "raised";
  return make("span", { class: "unknown", title: `Since ${moment(row.unknown ?? "")}` }, row.reason);
}

/** @param {AlarmRow} row */
const isOpen = (row) => ["raised", "acknowledged", "unknown"].includes(row.state);

/** @param {Alarm[]} alarms */
function show(alarms) {
  const all = alarms.flatMap((alarm) =>
    alarm.rows.map((row) => ({ ...row, severity: alarm.severity, reason: whyUnknown(alarm) })),
  );
  showRaised(all, alarms);
  showCleared(all);
  byId("none-defined").hidden = alarms.length > 0;
  fill(byId("definitions"), alarms.map(definition));
}

/** @param {ListedRow[]} all
 *  @param {Alarm[]} alarms */
function showRaised(all, alarms) {
  const listed = all.filter((row) => isOpen(row) || (row.state === "cleared" && !row.acknowledged));
  listed.sort((a, b) => Number(isOpen(b)) - Number(isOpen(a)) || ORDER[a.severity] - ORDER[b.severity] || b.id - a.id);
  fill(
    byId("raised"),
    listed.map((row) =>
      make(
        "tr",
        { class: row.acknowledged ? `${row.state} acknowledged` : row.state, "data-row": row.id },
        make("td", {}, severity(row.severity)),
        make("td", {}, row.alarm),
        make("td", {}, values(row.row)),
        make("td", {}, standing(row)),
        make("td", {}, time(row.raised)),
        make("td", {}, action(row)),
      ),
    ),
  );
  /** @param {"unlisted" | "dropped"} name */
  const sum = (name) => alarms.reduce((total, alarm) => total + alarm[name], 0);
  const left = [];
  if (sum("unlisted")) left.push(`${sum("unlisted")} more rows are not listed.`);
  if (sum("dropped")) left.push(`${sum("dropped")} cleared rows were dropped before they were acknowledged.`);
  byId("quiet").hidden = listed.length > 0 && left.length === 0;
  byId("quiet").textContent = left.join(" ") || "No alarm is raised, and none waits for acknowledgement.";
}

/** @param {ListedRow[]} all */
function showCleared(all) {
  const cleared = all
    .filter((row) => row.state === "cleared")
    .sort((a, b) => String(b.cleared).localeCompare(String(a.cleared)));
  byId("none-cleared").hidden = cleared.length > 0;
  fill(
    byId("cleared"),
    cleared
      .slice(0, MAX_CLEARED)
      .map((row) =>
        make(
          "tr",
          {},
          make("td", {}, severity(row.severity)),
          make("td", {}, row.alarm),
          make("td", {}, values(row.row)),
          make("td", {}, time(row.raised)),
          make("td", {}, time(row.cleared)),
        ),
      ),
  );
}

/** @param {Alarm} alarm */
const tryLink = ({ alarm }) =>
  make("a", { class: "button", href: `/history?text=${encodeURIComponent(alarm)}` }, "Try on history");

/** @param {Alarm} alarm */
function definition(alarm) {
  return make(
    "tr",
    {},
    make("td", {}, alarm.alarm),
    make("td", {}, severity(alarm.severity)),
    make("td", {}, alarm.state),
    make("td", { class: "number" }, String(alarm.raised + alarm.unknown)),
    make("td", {}, actionForAll(alarm)),
    make("td", {}, alarm.for_seconds ? `${alarm.for_seconds} s` : ""),
    make("td", { class: "text", title: alarm.status }, alarm.text.replace(/\s+/g, " ")),
    make("td", {}, byId("definitions").dataset.tried && alarm.query && tryLink(alarm)),
  );
}

eventsWhileSeen("/api/alarms/events", { alarms: show }, (isLost) => (byId("lost").hidden = !isLost));
