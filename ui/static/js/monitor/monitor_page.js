// The monitor: a query's running plan and graphs, all of it answers of queries over sys_stream.
import { extent, fill, get, make, problemOf } from "../api.js";
import { againWhileSeen } from "../while_seen.js";
import { QueryRows } from "./query_rows.js";
import { GraphDialog } from "./graph_dialog.js";
import { Graphs, textOf } from "./graphs.js";
import { numbersText, propertyGraph, structureText } from "./graph_texts.js";
import { NetworkSection } from "./network_section.js";
import { PlanDecisions } from "./plan_decisions.js";
import { PlanDrawing } from "./plan_drawing.js";
import { explainedRows, planOf } from "./plan_model.js";
import { PropertyTable } from "./property_table.js";
import { Reported } from "./reported.js";
import { SessionQueries } from "./session_queries.js";
import { SettingsForm } from "./settings_form.js";
import { byId } from "../elements.js";
import { queryOf } from "../query_found.js";
import { QueryChoice, nameOf } from "./query_choice.js";

/** @import { Fed, Fragment, OperatorRow, Problem, Query, Site } from "../payloads.d.ts" */
/** @import { Followed } from "./session_queries.js" */
/** @import { RunningPlan } from "./plan_model.js" */
/** @import { Entity } from "./reported.js" */

const SILENT_MS = 10_000;
const PATIENCE_MS = 4000; // for a site's first report
const NEWS_MS = 2000;
const MOST_RELATED = 16;
const NUMBERS_SECONDS = 10; // of sys_stream that the plan's numbers are of; more where sites report seldom
const LONGEST_SECONDS = 60; // rows of sys_stream are not kept longer

const queries = new SessionQueries();
const reported = new Reported();
/** @type {Query | null} */
let shownQuery = null; // the query whose plan is shown
let gone = false; // it has ended
/** @type {string | null} */
let unknown = null; // the query of the address, if there is none of that name
/** @type {Map<string, Site>} */
let sites = new Map(); // by name
/** @type {RunningPlan} */
let plan = { sites: [], crossings: [] };
/** @type {QueryRows<OperatorRow>} */
let operators = new QueryRows(); // the rows of sys_operators
/** @type {Fragment[]} */
let fragments = []; // of EXPLAIN
/** @type {Record<string, Fed>} */
let feeds = {}; // likewise: fragments that run for other runs
/** @type {Followed | null} */
let structure = null; // the session query of the plan
/** @type {Followed | null} */
let numbers = null; // the session query of its numbers
let asked = 0; // seconds of the past that it is of
const numbersShown = make("div", { class: "numbers-text" });
/** @type {Problem | null} */
let trouble = null; // why there is none
let since = 0;
let pending = false;

const choice = new QueryChoice(show, () => void news());
const drawing = new PlanDrawing(byId("plan", SVGSVGElement), choose);
drawing.shown = update;
const graphs = new Graphs(byId("graphs"), queries, counted);
const dialog = new GraphDialog(byId("add-graph", HTMLDialogElement), (offer) => graphs.add(offer));
const table = new PropertyTable(
  byId("properties"),
  (entity, property) => addGraph(propertyGraph(entity, property)),
  choose,
);
const decisions = new PlanDecisions(byId("decisions", HTMLDetailsElement), queries);
const network = new NetworkSection(async (id) => {
  const found = await queryOf(id).catch(() => null); // the console is lost: the page says so by itself
  if (!found) return;
  show(found);
  choice.fill(shownQuery, gone);
  choice.choice.scrollIntoView({ block: "nearest", behavior: "smooth" });
});
const settings = new SettingsForm(byId("settings"), isAway, (site) => sites.get(site)?.role !== "static");

/** @param {string} site */
function isAway(site) {
  const found = sites.get(site);
  return found !== undefined && !found.online;
}

/** @param {{ title: string, text: string }} offer */
function addGraph(offer) {
  if (graphs.full) return say(`The max is ${graphs.most} graphs: remove one first.`);
  graphs.add(offer).element.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** Show the plan of a query.
 *  @param {Query | null} query */
function show(query) {
  structure?.close();
  numbers?.close();
  structure = numbers = null;
  reported.apply([], true);
  plan = { sites: [], crossings: [] };
  operators = new QueryRows();
  fragments = [];
  feeds = {};
  drawing.clear();
  choose(null);
  shownQuery = query;
  gone = false;
  decisions.of(query?.id ?? null);
  network.of(query?.run ?? null);
  unknown = null;
  trouble = null;
  since = Date.now();
  const address = query ? `?query=${encodeURIComponent(query.id)}` : location.pathname;
  history.replaceState(null, "", address + location.hash);
  fill(byId("plan-text"), []);
  if (query) {
    const first = structureText(query.run);
    structure = queries.follow(first, {
      changed: (changes, snapshot) => {
        operators.apply(changes, snapshot);
        later();
      },
      said: heard,
    });
    ask(query, NUMBERS_SECONDS);
    explain(query);
    fill(byId("plan-text"), [textOf("This plan is the query", first), numbersShown]);
  }
  update();
}

/** Ask for the numbers of the last seconds.
 *  @param {Query} query
 *  @param {number} seconds */
function ask(query, seconds) {
  numbers?.close();
  asked = seconds;
  const text = numbersText(query.run, seconds);
  numbersShown.replaceChildren(textOf("and its numbers are the query", text));
  numbers = queries.follow(text, {
    changed: (changes, snapshot) => {
      reported.apply(changes, snapshot);
      later();
    },
    said: heard,
  });
}

/** Look further back where sites report less often than the numbers last. */
function lookBack() {
  const periods = plan.sites.map(({ site }) => reported.value(site, "site", site, "report_seconds") ?? 0);
  const wanted = Math.min(Math.ceil(2.5 * Math.max(0, ...periods)), LONGEST_SECONDS);
  if (shownQuery && wanted > asked) ask(shownQuery, wanted);
}

/** What the plan says of sites that report no operators.
 *  @param {Query} query */
async function explain({ id, version }) {
  const explained = await get(`/api/queries/${id}/explain`).catch(() => null); // without it the reported part is drawn
  if (shownQuery?.id !== id || shownQuery.version !== version) return;
  fragments = explained?.data?.fragments ?? [];
  feeds = explained?.data?.fed ?? {};
  update();
}

/** The plan as it is reported, and as it is planned where nothing is. */
function newestPlan() {
  const rows = operators.rows;
  if (!rows.length) return plan;
  const patient = Date.now() - since < PATIENCE_MS;
  /** @param {string} site */
  const silent = (site) => sites.get(site)?.role === "static" || !patient;
  return planOf([...rows, ...explainedRows(rows, fragments, silent, feeds)]);
}

/** @param {Query | null} query
 *  @param {Problem | null} error */
function heard(query, error) {
  trouble = error || (query?.error ? { message: query.error } : null);
  later();
}

/** Draw soon: many changes at once are drawn once. */
function later() {
  if (pending) return;
  pending = true;
  setTimeout(() => {
    pending = false;
    update();
  }, 100);
}

/** @param {Entity | null} entity */
function choose(entity) {
  drawing.select(entity);
  settings.show(entity?.site ?? null);
  byId("entity").classList.toggle("of-site", entity?.kind === "site"); // then its settings come first
  update();
}

/** @param {Entity} entity */
function operatorOf(entity) {
  return plan.sites.find(({ site }) => site === entity.site)?.operators.get(entity.entity.split(/[-.]/)[0]);
}

/** What belongs to the chosen entity and can be looked at next.
 *  @param {Entity | null} entity
 *  @returns {Entity[]} */
function relatedTo(entity) {
  if (!entity) return [];
  const { site } = entity;
  /** @param {string} kind
   *  @param {(name: string) => boolean} [fits] */
  const of = (kind, fits = () => true) =>
    reported
      .of(site, kind)
      .filter((other) => fits(other.entity))
      .map((other) => ({ site, kind, entity: other.entity }));
  if (entity.kind === "site") {
    return ["gateway", "clock", "connector", "source"].flatMap((kind) => of(kind)).slice(0, MOST_RELATED);
  }
  const home = { site, kind: "site", entity: site };
  const store = entity.kind === "synopsis" && reported.value(site, "synopsis", entity.entity, "store");
  if (typeof store === "number") return [{ site, kind: "store", entity: `s${store}` }, home];
  if (entity.kind !== "operator") return [home];
  return [
    ...of("synopsis", (name) => name === entity.entity || name.startsWith(`${entity.entity}.`)),
    ...of("queue", (name) => name.startsWith(`${entity.entity}-`)).slice(0, MOST_RELATED),
    home,
  ];
}

function update() {
  plan = newestPlan();
  const chosen = drawing.selected;
  const away = new Set(plan.sites.map(({ site }) => site).filter(isAway));
  drawing.away = away;
  if (plan.sites.length) drawing.update(plan, reported, shownQuery ? `result: ${extent(shownQuery)}` : null);
  const operator = chosen && ["operator", "synopsis", "queue"].includes(chosen.kind) ? operatorOf(chosen) : null;
  const ofQuery = chosen ? reported.find(chosen.site, chosen.kind, chosen.entity)?.query : undefined;
  table.update(chosen, reported, {
    line: operator?.line ?? null,
    query: ofQuery,
    related: relatedTo(chosen),
    away: chosen !== null && isAway(chosen.site),
  });
  settings.heard(reported);
  lookBack();
  message(away);
}

/** Say in words why there is nothing to see, or what is missing.
 *  @param {Set<string>} away */
function message(away) {
  const box = byId("plan-message");
  const words = said(away);
  const drawn = plan.sites.length > 0;
  box.hidden = !words;
  box.className = drawn ? "over" : "instead";
  if (words) fill(box, words);
  byId("plan").classList.toggle("empty-plan", !drawn);
}

/** @param {Set<string>} away */
function said(away) {
  if (!shownQuery) return whyNone();
  const name = nameOf(shownQuery);
  if (gone) return `${name} was stopped. Choose another query above.`;
  if (trouble) return [make("strong", {}, trouble.message), trouble.hint && ` ${trouble.hint}`];
  if (shownQuery.status === "failed") return `${name} was stopped by an error: ${shownQuery.error}`;
  if (away.size) {
    const [are, they] = away.size > 1 ? ["are", "they are"] : ["is", "it is"];
    return `${[...away].join(", ")} ${are} offline: what happens there is not known until ${they} online again.`;
  }
  return plan.sites.length ? "" : whyEmpty(name);
}

/** Why no query is shown. */
function whyNone() {
  if (!choice.listed.length && !choice.words) {
    const queriesPage = make("a", { href: "/queries" }, "Queries");
    return ["No query runs. Start one on ", queriesPage, ", then return to watch it."];
  }
  if (unknown) return `There is no query ${unknown}: it was stopped or never ran. Choose a query above.`;
  return "Choose a query above.";
}

/** Why the query that is shown has no plan.
 *  @param {string} name */
function whyEmpty(name) {
  if (Date.now() - since < SILENT_MS) return "Requesting reports from the sites…";
  const waiting = structure?.query?.waiting_for ?? [];
  if (waiting.length) return `Waiting for ${waiting.join(", ")} to answer.`;
  const missing = [...sites.values()]
    .filter(({ online, role }) => !online && ["gateway", "base"].includes(role))
    .map(({ site }) => site);
  const reason = missing.length ? `Away: ${missing.join(", ")}.` : "A query that only Spark computes has no operators.";
  return `No site has reported an operator of ${name} yet. ${reason}`;
}

/** @param {string} text */
function say(text) {
  byId("graphs-note").textContent = text;
}

function counted() {
  byId("new-graph", HTMLButtonElement).disabled = graphs.full;
  byId("no-graphs").hidden = graphs.graphs.size > 0;
  say(graphs.full ? `${graphs.most} graphs are the max.` : "");
}

/** What runs, and who is there. */
async function news() {
  const before = shownQuery;
  try {
    const [now, places] = await Promise.all([choice.look(before?.id), get("/api/sites")]);
    sites = new Map(places.map((site) => [site.site, site]));
    if (before === shownQuery && before) {
      gone = !now;
      shownQuery = now ?? before;
      if (shownQuery.run !== before.run) show(shownQuery);
      else if (shownQuery.version !== before.version) explain(shownQuery);
    }
    if (!shownQuery) await begin();
  } catch (error) {
    trouble = problemOf(error);
  }
  choice.fill(shownQuery, gone);
  update();
}

/** The query of the address, or the newest of the user's, or the first of the map's. */
async function begin() {
  const wanted = new URLSearchParams(location.search).get("query");
  const named = wanted ? await queryOf(wanted) : null;
  if (shownQuery) return; // chosen meanwhile
  unknown = wanted && !named ? wanted.slice(0, 80) : null;
  const found = named || (!wanted && choice.first());
  if (found) show(found);
}

byId("closer").addEventListener("click", () => drawing.camera.zoom(0.75));
byId("farther").addEventListener("click", () => drawing.camera.zoom(1 / 0.75));
byId("whole").addEventListener("click", () => drawing.camera.fit({ all: true }));
const span = byId("span", HTMLSelectElement);
span.addEventListener("change", () => {
  graphs.seconds = Number(span.value);
  graphs.draw();
});
byId("new-graph").addEventListener("click", () => dialog.open(shownQuery?.run ?? "", plan, drawing.selected));
document.addEventListener(
  "keydown",
  (event) =>
    event.key === "Escape" &&
    !event.defaultPrevented &&
    drawing.selected &&
    !document.querySelector("dialog[open]") &&
    choose(null),
);

counted();
againWhileSeen(news, NEWS_MS);
