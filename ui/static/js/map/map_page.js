// The map page: everything that moves on it follows standing queries.
import { count, make, problemOf } from "../api.js";
import { Calibration } from "./calibration.js";
import { Desks } from "./desks.js";
import { Details } from "./details.js";
import { Directions } from "./directions.js";
import { LiveLayers } from "./layers.js";
import { Notices } from "./notices.js";
import { missingPlan, Plan } from "./plan.js";
import { Positions } from "./positions.js";
import { Radio } from "./radio.js";
import { Rooms } from "./rooms.js";
import { loadSite, simulatedWords } from "./site.js";
import { Trace } from "./trace.js";
import { byId } from "../elements.js";

/** @import { Problem } from "../payloads.d.ts" */
/** @import { Choice } from "./plan.js" */
/** @import { Site } from "./site.js" */

const isTrace = document.querySelector('.mapping[data-kind="trace"]') !== null;

/** @type {[string, string, boolean][]} */
const TOGGLES = isTrace
  ? [
      ["links", "Links", true],
      ["displays", "Displays", true],
      ["alarms", "Alarms", true],
    ]
  : [
      ["names", "Names and temperatures", true],
      ["desks", "Desks and machines", true],
      ["visitors", "Visitors", true],
      ["positions", "Positions", true],
      ["regions", "Hot regions", true],
      ["links", "Radio links", false],
      ["displays", "Displays", true],
      ["alarms", "Alarms", true],
    ];

/** The signs at places: their classes, what they mean, and what stands in them. */
const SIGNS = [
  ["alarm-place", "alarm: info", "!"],
  ["alarm-place warning", "warning", "!"],
  ["alarm-place critical", "critical", "!"],
  ["alarm-place acknowledged", "acknowledged", "!"],
  ["alarm-place unknown", "unknown: its gateway is offline, or its query has not settled", "?"],
];

const LEGEND = isTrace
  ? [
      ["line good", "reliable link"],
      ["line fair", "with some retransmissions"],
      ["line poor", "with many"],
      ["node-key linked", "node with links"],
      ["node-key isolated", "isolated node"],
    ]
  : [
      ["room is-open", "room, lights on"],
      ["room is-dark", "lights off"],
      ["room is-reserved", "reserved now"],
      ["room is-stale", "stale: gateway offline"],
      ["desk is-free", "machine free"],
      ["desk is-idle", "machine free, room closed"],
      ["desk is-taken", "machine in use"],
      ["visitor", "visitor's badge"],
      ["position", "badge, at its computed position"],
      ["region-key", "hot region"],
      ["line good", "radio link, good"],
      ["line poor", "poor"],
    ];

async function start() {
  /** @type {Site} */
  let site;
  try {
    site = await loadSite();
  } catch (error) {
    return sayWhyNoMap(problemOf(error));
  }
  sayWhatIsSimulated(site);
  if (!window.pandoPlan) return missingPlan();

  /** @type {Set<string>} */
  let dirty = new Set();
  let frame = 0;
  /** @type {Choice} */
  let chosen = {};
  const parts = {};

  /** @param {string} what */
  const changed = (what) => {
    dirty.add(what);
    if (!frame) frame = requestAnimationFrame(draw);
  };
  /** @param {Choice} wanted */
  const choose = (wanted) => {
    chosen = wanted;
    const place = site.machines.get(wanted.machine ?? "") || site.spaces.get(wanted.room ?? "");
    if (place) parts.plan.show(place.level);
    if (parts.calibration?.choose(wanted)) return;
    // While somebody asks for directions, a click on a room says where they stand.
    if (wanted.room && parts.directions?.asks) parts.directions.from(wanted.room);
    parts.details.show(wanted);
    changed("choice");
  };
  const draw = () => {
    frame = 0;
    const what = dirty;
    dirty = new Set();
    parts.radio.update(what);
    if (what.has("visitors")) parts.directions?.updateBadges();
    parts.rooms.update(chosen.room);
    parts.desks.update(chosen.machine, parts.directions?.target);
    parts.positions?.update(what);
    parts.trace?.update();
    parts.details.update();
    notice(parts.live);
    counts(site, parts);
  };

  parts.plan = new Plan(site, () => changed("level"));
  parts.live = new LiveLayers(changed, isTrace ? "" : Positions.wanted);
  parts.rooms = new Rooms(parts.plan, parts.live, choose);
  parts.desks = new Desks(parts.plan, parts.live, choose);
  parts.radio = new Radio(parts.plan, parts.live);
  if (isTrace) parts.trace = new Trace(parts.plan, parts.live);
  else {
    parts.radio.addMotes();
    parts.positions = new Positions(parts.plan, parts.live, choose);
    parts.calibration = new Calibration(parts.plan);
    parts.directions = directions(parts, choose, () => changed("route"));
  }
  parts.details = new Details(parts, choose);
  parts.notices = new Notices(parts.plan, choose);
  toggles(parts.plan, site);
  legend(site);
  parts.plan.addSwitch();
  document.addEventListener("keydown", (event) => event.key === "Escape" && choose({}));
  window.pandoMap = parts; // for those who look behind the page, and for its tests
}

/** A building without software has no directions.
 *  @param {{ plan: Plan, live: LiveLayers }} parts
 *  @param {(wanted: Choice) => void} choose
 *  @param {() => void} changed */
function directions({ plan, live }, choose, changed) {
  return document.getElementById("route-form") ? new Directions(plan, live, choose, changed) : undefined;
}

/** @param {Problem} problem */
function sayWhyNoMap({ message }) {
  byId("map_plan").replaceChildren(make("p", { class: "empty" }, message, " Queries work all the same."));
}

/** @param {Site} site */
function sayWhatIsSimulated(site) {
  const simulated = simulatedWords(site);
  byId("simulated").hidden = !simulated;
  byId("simulated").title = simulated;
}

/** @param {Site} site */
function legend(site) {
  const useful = LEGEND.filter(([key]) => site.machines.size || !key.startsWith("desk"));
  byId("legend").replaceChildren(
    ...[...useful, ...SIGNS].map(([key, text, sign]) =>
      make(
        "li",
        onlyWithPositions(key),
        make("span", { class: `key ${key}`, "aria-hidden": "true" }, sign ?? ""),
        text,
      ),
    ),
  );
}

/** Attributes of what is hidden while nothing says where badges are.
 *  @param {string} name of a layer or key */
const onlyWithPositions = (name) => (name.startsWith("position") ? { "data-with-positions": "", hidden: true } : {});

/** @param {Plan} plan
 *  @param {Site} site */
function toggles(plan, site) {
  const useful = TOGGLES.filter(([name]) => name !== "desks" || site.machines.size);
  byId("toggles").replaceChildren(
    ...useful.map(([name, label, on]) => {
      plan.toggle(name, on);
      const box = make("input", { type: "checkbox", checked: on, "data-layer": name });
      box.addEventListener("change", () => plan.toggle(name, box.checked));
      return make("label", { class: "check", ...onlyWithPositions(name) }, box, label);
    }),
  );
}

/** The line under the map: what is not as it should be.
 *  @param {LiveLayers} live */
function notice(live) {
  /** @type {string[]} */
  const lines = [];
  const away = [...live.sites.values()]
    .filter((site) => site.role === "gateway" && site.freshness !== "live")
    .map((site) => site.site);
  const states = Object.entries(live.states);
  if (!live.connected) lines.push("Connection lost: this page shows old data. Reconnecting…");
  if (away.length) {
    const are = away.length > 1 ? "are" : "is";
    lines.push(`${away.join(", ")} ${are} offline: its rooms are stale, and its rows leave every result.`);
  }
  const waiting = states
    .filter(([, state]) => state.status === "starting" && state.waiting_for.includes("static"))
    .map(([name]) => name);
  if (waiting.length) {
    lines.push(`Spark is warming up: ${waiting.join(", ")} and directions will follow when the tables are ready.`);
  }
  for (const [name, state] of states) if (state.error) lines.push(`Layer ${name}: ${state.error}`);
  const text = lines.join("\n");
  if (byId("notice").textContent !== text) byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

/** @param {Site} site
 *  @param {{ plan: Plan, desks: Desks, live: LiveLayers }} parts */
function counts(site, { plan, desks, live }) {
  let text = "";
  if (isTrace) text = count(live.rows("links").size, "link");
  else if (site.machines.size) {
    const states = [...site.machines.values()]
      .filter((machine) => machine.level === plan.level)
      .map((machine) => desks.state(machine));
    const of = (/** @type {string[]} */ ...wanted) => states.filter((state) => wanted.includes(state)).length;
    text = `Machines on this level: ${of("free")} free, ${of("taken", "busy")} in use`;
  }
  if (byId("counts").textContent !== text) byId("counts").textContent = text;
}

start();
