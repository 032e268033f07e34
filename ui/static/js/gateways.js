// The table of sites.
import { age, count, get, make } from "./api.js";

const body = document.querySelector("#sites tbody");

function bytes(count) {
  return count < 10_000 ? `${count} B` : count < 10_000_000 ? `${Math.round(count / 1000)} kB` : `${Math.round(count / 1e6)} MB`;
}

function clock(site) {
  if (site.clock_offset_ms === null) return "";
  const corrected = site.clock_corrected_ms ? ", corrected" : "";
  return `the coordinator's clock is ${site.clock_offset_ms} ms ahead, ± ${site.clock_error_ms} ms${corrected}`;
}

function row(site) {
  const buffer = site.role !== "gateway" || !site.buffer ? "" : `${count(site.buffer.stored, "pack")}, ${bytes(site.buffer.bytes)}${site.buffer.hours_left === null ? "" : `, ${Math.round(site.buffer.hours_left)} h left`}${site.buffer.dropped ? `, ${site.buffer.dropped} dropped` : ""}`;
  const wrappers = site.wrappers.map((w) => `${w.kind}: ${count(w.readings, "reading")}${w.errors ? `, ${count(w.errors, "error")} (${w.last_error})` : ""}${w.note ? `; ${w.note}` : ""}`).join("; ");
  const state = site.online ? (site.ready ? "online" : "starting") : "offline";
  return make("tr", {}, make("td", { class: "tight" }, make("strong", {}, site.site)), make("td", { class: "tight" }, site.role),
    make("td", {}, make("span", { class: `badge ${site.freshness}`, title: site.freshness }, state)),
    make("td", { class: "tight" }, age(site.since)), make("td", { class: "number" }, String(site.epoch)), make("td", {}, buffer),
    make("td", { class: "number" }, String(site.sensors)), make("td", {}, wrappers), make("td", {}, site.rooms.length > 8 ? `${site.rooms.length} rooms` : site.rooms.join(", ")), make("td", { title: clock(site) }, site.detail));
}

async function look() {
  const sites = await get("/api/sites").catch(() => null);
  if (!sites) return; // the line at the top says that the console does not answer
  body.replaceChildren(...(sites.length ? sites.map(row) : [make("tr", {}, make("td", { colspan: 10, class: "empty" }, "No gateway has announced itself yet."))]));
}

look();
setInterval(look, 2000);
