// The table of sites.
import { age, count, get, make, moment, request } from "./api.js";
import { againWhileSeen } from "./while_seen.js";

const byId = (id) => document.getElementById(id);
const body = document.querySelector("#sites tbody");
let leaving = null; // the gateway that the dialog asks about

function bytes(count) {
  return count < 10_000
    ? `${count} B`
    : count < 10_000_000
      ? `${Math.round(count / 1000)} kB`
      : `${Math.round(count / 1e6)} MB`;
}

function clock(site) {
  if (site.clock_offset_ms === null) return "";
  const corrected = site.clock_corrected_ms ? ", corrected" : "";
  const known = site.last_known ? `, last known ${moment(site.last_known)}` : "";
  return `the coordinator's clock is ${site.clock_offset_ms} ms ahead, ± ${site.clock_error_ms} ms${corrected}${known}`;
}

function row(site) {
  const buffer =
    site.role !== "gateway" || !site.buffer
      ? ""
      : `${count(site.buffer.stored, "pack")}, ${bytes(site.buffer.bytes)}${site.buffer.hours_left === null ? "" : `, ${Math.round(site.buffer.hours_left)} h left`}${site.buffer.dropped ? `, ${site.buffer.dropped} dropped` : ""}`;
  const since = site.last_known ? ` (last known ${moment(site.last_known)})` : "";
  const wrappers = site.wrappers
    .map(
      (w) =>
        `${w.kind}: ${count(w.readings, "reading")}${w.errors ? `, ${count(w.errors, "error")} (${w.last_error})` : ""}${w.note ? `; ${w.note}` : ""}`,
    )
    .join("; ");
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
    make("td", {}, wrappers && wrappers + since),
    make("td", {}, site.rooms.length > 8 ? `${site.rooms.length} rooms` : site.rooms.join(", ")),
    make("td", { title: clock(site) }, site.detail),
    make("td", { class: "tight" }, removal(site)),
  );
}

/** A button for a gateway that is away: one that is online would announce itself again. */
function removal(site) {
  if (site.role !== "gateway" || site.online) return null;
  return make(
    "button",
    {
      type: "button",
      class: "danger",
      "data-remove": site.site,
      "aria-label": `Remove ${site.site}`,
      title: "It is gone permanently",
      onclick: () => ask(site.site),
    },
    "Remove…",
  );
}

function ask(site) {
  leaving = site;
  byId("remove-title").textContent = `Remove gateway ${site}?`;
  problem(null);
  byId("remove").showModal();
  byId("keep").focus();
}

function problem(error) {
  byId("problem").hidden = !error;
  byId("problem").textContent = error ? [error.message, error.hint].filter(Boolean).join("\n") : "";
}

async function remove() {
  byId("remove").close();
  await request("DELETE", `/api/sites/${encodeURIComponent(leaving)}`).catch(problem);
  await look();
}

async function look() {
  const sites = await get("/api/sites").catch(() => null);
  document.getElementById("sites").classList.toggle("outdated", !sites);
  if (!sites) return; // the line at the top says that the console does not answer
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.remove : null;
  body.replaceChildren(
    ...(sites.length
      ? sites.map(row)
      : [make("tr", {}, make("td", { colspan: 11, class: "empty" }, "No gateway has announced itself yet."))]),
  );
  if (focused) body.querySelector(`[data-remove="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

byId("keep").addEventListener("click", () => byId("remove").close());
byId("really").addEventListener("click", remove);

againWhileSeen(look, 2000);
