// The table of sites.
import { age, count, fill, get, make, moment, request } from "./api.js";
import { againWhileSeen } from "./while_seen.js";
import { byId, focusOn, focusedIn } from "./elements.js";
import { settingsButton } from "./site_settings.js";

/** @import { Buffer, Problem, Site, SourceServing, Connector } from "./payloads.d.ts" */

const DAY_MS = 86_400_000; // for so long it is told what was wrong

const CONSEQUENCES = {
  remove:
    "Plans no longer use it, no query waits for it, and its rows leave every result. " +
    "If it starts again, it is a new gateway.",
  restart:
    "Its process ends and starts again, and continues where it was. " +
    "Meanwhile, for a few seconds, it reads no devices.",
};

const dialog = byId("remove", HTMLDialogElement);
const [body] = byId("sites", HTMLTableElement).tBodies;
/** @type {{ site: string, deed: "remove" | "restart" } | null} */
let asked = null; // what the dialog asks about

/** @param {number} size */
function bytes(size) {
  if (size < 10_000) return `${size} B`;
  return size < 10_000_000 ? `${Math.round(size / 1000)} kB` : `${Math.round(size / 1e6)} MB`;
}

/** @param {Site} site */
function clock(site) {
  if (site.clock_offset_ms === null) return "";
  const corrected = site.clock_corrected_ms ? ", corrected" : "";
  const known = site.last_known ? `, last known ${moment(site.last_known)}` : "";
  return `the coordinator's clock is ${site.clock_offset_ms} ms ahead, ± ${site.clock_error_ms} ms${corrected}${known}`;
}

/** @param {Buffer} buffer */
function bufferText({ stored, bytes: size, hours_left: hours, dropped }) {
  const parts = [count(stored, "pack"), bytes(size)];
  if (hours !== null) parts.push(`${Math.round(hours)} h left`);
  if (dropped) parts.push(`${dropped} dropped`);
  return parts.join(", ");
}

/** @param {Connector} connector */
function connectorText(connector) {
  const errors = connector.errors ? `, ${count(connector.errors, "error")} (${connector.last_error})` : "";
  const note = connector.note ? `; ${connector.note}` : "";
  return `${connector.kind}: ${count(connector.readings, "reading")}${errors}${note}`;
}

/** Why a site had no connection to its broker, now that it is back.
 *  @param {Site} site */
function cutOff({ connection_problem: cut }) {
  if (!cut?.until || Date.now() - Date.parse(cut.until) > DAY_MS) return "";
  return `had no connection from ${moment(cut.since)} to ${moment(cut.until)}: ${cut.reason}`;
}

/** What is wrong at a site: its own words, then the declared sources that it does not serve.
 *  @param {Site} site */
function problems(site) {
  const missing = site.declared.filter((each) => each.problem).map((each) => `source ${each.source}: ${each.problem}`);
  return [site.detail, ...missing, cutOff(site)].filter(Boolean).join("; ");
}

/** @param {Site} site */
function row(site) {
  const buffer = site.role === "gateway" && site.buffer ? bufferText(site.buffer) : "";
  const since = site.last_known ? ` (last known ${moment(site.last_known)})` : "";
  const connectors = site.connectors.map(connectorText).join("; ");
  const state = site.online ? (site.ready ? "online" : "starting") : "offline";
  return make(
    "tr",
    {},
    make("td", { class: "tight" }, make("strong", {}, site.site)),
    make("td", { class: "tight" }, site.role),
    make("td", {}, make("span", { class: `badge ${site.freshness}`, title: site.freshness }, state)),
    make("td", { class: "tight" }, age(site.since)),
    make("td", { class: "number" }, String(site.epoch)),
    make("td", {}, buffer && buffer + since),
    make("td", { class: "number" }, String(site.sensors)),
    make("td", {}, connectors && connectors + since),
    make("td", {}, site.rooms.length > 8 ? `${site.rooms.length} rooms` : site.rooms.join(", ")),
    make("td", { title: clock(site) }, problems(site)),
    make("td", { class: "tight acts" }, settings(site), action(site)),
  );
}

/** The button for settings of a site that runs the engine.
 *  @param {Site} site */
const settings = (site) => (["gateway", "base"].includes(site.role) ? settingsButton(site) : null);

/** The button of a site, if it has one.
 *  @param {Site} site */
function action(site) {
  return site.online ? restarting(site) : removal(site);
}

/** A button for a site that runs the engine: its process starts again and continues where it was.
 *  @param {Site} site */
function restarting(site) {
  if (!["gateway", "base"].includes(site.role)) return null;
  return make(
    "button",
    {
      type: "button",
      "data-site": site.site,
      "aria-label": `Restart ${site.site}`,
      title: "Its process starts again and continues where it was",
      onclick: () => ask(site.site, "restart"),
    },
    "Restart…",
  );
}

/** A button for a gateway that is away: one that is online would announce itself again.
 *  @param {Site} site */
function removal(site) {
  if (site.role !== "gateway" || site.online) return null;
  return make(
    "button",
    {
      type: "button",
      class: "danger",
      "data-site": site.site,
      "aria-label": `Remove ${site.site}`,
      title: "It is gone permanently",
      onclick: () => ask(site.site, "remove"),
    },
    "Remove…",
  );
}

/** @param {string} site
 *  @param {"remove" | "restart"} deed */
function ask(site, deed) {
  asked = { site, deed };
  const isRemoval = deed === "remove";
  byId("remove-title").textContent = isRemoval ? `Remove gateway ${site}?` : `Restart ${site}?`;
  byId("remove-words").textContent = CONSEQUENCES[deed];
  byId("really").textContent = isRemoval ? "Remove" : "Restart";
  problem(null);
  dialog.showModal();
  byId("keep").focus();
}

/** @param {Problem | null} error */
function problem(error) {
  byId("problem").hidden = !error;
  byId("problem").textContent = error ? [error.message, error.hint].filter(Boolean).join("\n") : "";
}

async function confirmed() {
  dialog.close();
  if (asked) {
    const address = `/api/sites/${encodeURIComponent(asked.site)}`;
    const done = asked.deed === "remove" ? request("DELETE", address) : request("POST", `${address}/restart`);
    await done.catch(problem);
  }
  await look();
}

/** @param {SourceServing} source */
function missingRow({ source, connector, endpoint, gateways, missing }) {
  const cells = [make("strong", {}, source), connector, endpoint, gateways, missing];
  return make("tr", {}, ...cells.map((text) => make("td", {}, text)));
}

async function look() {
  const [sites, sources] = await Promise.all([
    get("/api/sites").catch(() => null),
    get("/api/sources").catch(() => null),
  ]);
  if (sources) {
    const incomplete = sources.filter((source) => source.missing);
    byId("missing-section").hidden = !incomplete.length;
    fill(byId("missing"), incomplete.map(missingRow));
  }
  byId("sites").classList.toggle("outdated", !sites);
  if (!sites) return; // the line at the top says that the console does not answer
  const focused = focusedIn(body)?.dataset.site;
  body.replaceChildren(
    ...(sites.length
      ? sites.map(row)
      : [make("tr", {}, make("td", { colspan: 11, class: "empty" }, "No gateway has announced itself yet."))]),
  );
  if (focused) focusOn(body, `[data-site="${CSS.escape(focused)}"]`);
}

byId("keep").addEventListener("click", () => dialog.close());
byId("really").addEventListener("click", confirmed);

againWhileSeen(look, 2000);
