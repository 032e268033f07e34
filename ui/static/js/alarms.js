// The page of alarms: what is raised, what was, which there are.
import { fill, make, moment, post } from "./api.js";

const byId = (id) => document.getElementById(id);
const ORDER = { critical: 0, warning: 1, info: 2 };
const MAX_CLEARED = 100;

const time = (iso) => (iso ? make("time", { datetime: iso, title: iso }, moment(iso)) : "");
const severity = (name) => make("span", { class: `severity ${name}` }, name);
const values = (row) => Object.entries(row).map(([name, value]) => make("span", { class: "value" }, make("b", {}, name), " ", value === null ? "NULL" : String(value)));

function problem(error) {
  byId("alarm-problem").hidden = !error;
  if (error) byId("alarm-problem").textContent = error.message;
}

async function acknowledge(id) {
  try {
    await post(`/api/alarms/rows/${id}/acknowledge`, {});
    problem(null);
  } catch (error) {
    problem(error);
  }
}

function action(row) {
  if (row.state === "acknowledged") return make("span", { class: "quiet" }, "acknowledged");
  return make("button", { type: "button", onclick: () => acknowledge(row.id) }, "Acknowledge");
}

function show(alarms) {
  const all = alarms.flatMap((alarm) => alarm.rows.map((row) => ({ ...row, severity: alarm.severity })));
  const raised = all.filter((row) => ["raised", "acknowledged"].includes(row.state));
  raised.sort((a, b) => ORDER[a.severity] - ORDER[b.severity] || b.id - a.id);
  fill(byId("raised"), raised.map((row) => make("tr", { class: row.state, "data-row": row.id },
    make("td", {}, severity(row.severity)), make("td", {}, row.alarm), make("td", {}, values(row.row)), make("td", {}, time(row.raised)), make("td", {}, action(row)))));
  const unlisted = alarms.reduce((sum, alarm) => sum + alarm.unlisted, 0);
  byId("quiet").hidden = raised.length > 0;
  byId("quiet").textContent = unlisted ? `${unlisted} more rows are not listed.` : "Nothing is raised.";
  const cleared = all.filter((row) => row.state === "cleared").sort((a, b) => b.cleared.localeCompare(a.cleared));
  byId("none-cleared").hidden = cleared.length > 0;
  byId("none-defined").hidden = alarms.length > 0;
  fill(byId("cleared"), cleared.slice(0, MAX_CLEARED).map((row) => make("tr", {},
    make("td", {}, severity(row.severity)), make("td", {}, row.alarm), make("td", {}, values(row.row)), make("td", {}, time(row.raised)), make("td", {}, time(row.cleared)))));
  fill(byId("definitions"), alarms.map((alarm) => make("tr", {},
    make("td", {}, alarm.alarm), make("td", {}, severity(alarm.severity)), make("td", {}, alarm.state), make("td", { class: "number" }, String(alarm.raised)),
    make("td", {}, alarm.for_seconds ? `${alarm.for_seconds} s` : ""), make("td", { class: "text", title: alarm.status }, alarm.text.replace(/\s+/g, " ")))));
}

new EventSource("/api/alarms/events").addEventListener("alarms", (event) => show(JSON.parse(event.data)));
