// Computed positions of badges: the rows of a view or query that says where each one is, and how sure that is.
import { count, make } from "../api.js";
import { byId } from "../elements.js";

/** Where something stands on the plan.
 *  @typedef {{ at: LatLng, level: number, room: Space | undefined, isPoint: boolean }} Spot */
/** @typedef {{ marker: L.Marker, group: L.LayerGroup, title: HTMLElement, where: HTMLElement, text: string }} Shown */
/** @import { PlacedRow } from "../payloads.d.ts" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { LatLng, Site, Space } from "./site.js" */

const LABEL = { letter: 6.4, edge: 14, widest: 132, height: 33, gap: 14 }; // pixels
const REMEMBERED = "pando.positions";

export class Positions {
  /** @param {Plan} plan
   *  @param {LiveLayers} live
   *  @param {(wanted: Choice) => void} choose */
  constructor(plan, live, choose) {
    this.plan = plan;
    this.live = live;
    this.choose = choose;
    /** @type {Map<string, Shown>} */
    this.shown = new Map(); // badge -> {marker, group, title, where, text}
    this.panel = byId("positions");
    this.source = byId("positions-source", HTMLSelectElement);
    plan.map.on("zoomend moveend resize", () => this.placeLabels());
    this.source.addEventListener("change", () => {
      localStorage.setItem(REMEMBERED, this.source.value);
      live.follow(this.source.value);
    });
  }

  /** What somebody chose in this browser before. */
  static get wanted() {
    return localStorage.getItem(REMEMBERED) ?? "";
  }

  /** What can be followed, and what is; without anything the layer is not offered. */
  updateOffer() {
    const { offered, followed } = this.live.placed;
    const hidden = !offered.length;
    this.panel.hidden = hidden;
    for (const part of document.querySelectorAll("[data-with-positions]")) part.toggleAttribute("hidden", hidden);
    const first = offered[0]?.title ?? "";
    const options = [{ key: "", title: `automatic (${first})` }, ...offered];
    const known = [...this.source.options].map(({ value, text }) => ({ key: value, title: text }));
    if (JSON.stringify(known) !== JSON.stringify(options)) {
      this.source.replaceChildren(...options.map(({ key, title }) => make("option", { value: key }, title)));
    }
    const chosen = Positions.wanted;
    this.source.value = chosen && chosen === followed ? followed : "";
  }

  /** @param {Set<string>} news */
  update(news) {
    if (news.has("offer")) this.updateOffer();
    if (["positions", "offer", "level"].some((part) => news.has(part))) this.updateBadges();
  }

  updateBadges() {
    /** @type {Map<string, PlacedRow>} */
    const best = new Map();
    for (const row of this.live.rows("positions").values()) {
      const known = best.get(row.id);
      if (!known || (row.confidence ?? 0) > (known.confidence ?? 0)) best.set(row.id, row);
    }
    const spots = spotsOf(best, this.plan);
    for (const [id, { marker, group }] of this.shown) {
      if (spots.has(id)) continue;
      group.removeLayer(marker);
      this.shown.delete(id);
    }
    for (const [id, row] of best) {
      const spot = spots.get(id);
      if (spot) this.draw(row, spot);
    }
    this.placeLabels();
    this.say(best, spots);
  }

  /** Write each label on the side that is free; without room it waits until somebody points at the badge. */
  placeLabels() {
    const { map } = this.plan;
    const width = map.getSize().x;
    const seen = [...this.shown.values()].filter(({ marker }) => map.hasLayer(marker));
    const points = seen.map(({ marker }) => map.latLngToContainerPoint(marker.getLatLng()));
    const taken = points.map(({ x, y }) => L.bounds([x - 8, y - 8], [x + 8, y + 8]));
    for (const [index, { marker, title, where }] of seen.entries()) {
      const element = marker.getElement();
      if (!element) continue;
      const { x, y } = points[index];
      const letters = Math.max(title.textContent?.length ?? 0, where.textContent?.length ?? 0);
      const wide = Math.min(letters * LABEL.letter + LABEL.edge, LABEL.widest);
      const boxes = { right: x + LABEL.gap, left: x - LABEL.gap - wide };
      const side = Object.entries(boxes).find(([, from]) => {
        const box = L.bounds([from, y - LABEL.height / 2], [from + wide, y + LABEL.height / 2]);
        if (from < 0 || from + wide > width || taken.some((other) => other.overlaps(box))) return false;
        taken.push(box);
        return true;
      });
      element.classList.toggle("is-left", side?.[0] === "left");
      element.classList.toggle("is-folded", !side);
    }
  }

  /** @param {PlacedRow} row
   *  @param {Spot} spot */
  draw(row, spot) {
    const known = this.shown.get(row.id) ?? this.add(row.id, spot);
    const group = this.plan.group(spot.level, "positions");
    known.marker.setLatLng(spot.at);
    if (known.group !== group) {
      known.group.removeLayer(known.marker);
      group.addLayer(known.marker);
      known.group = group;
    }
    const sure = row.confidence === null ? "" : `${Math.round(row.confidence * 100)} %`;
    const where = [spot.room?.id ?? metres(spot.at), sure].filter(Boolean).join(" · ");
    if (known.where.textContent !== where) known.where.textContent = where;
    const text = [
      `${row.id}: ${spot.room?.name ?? "in no room"}`,
      this.plan.levelName(spot.level),
      ...(spot.isPoint ? [`at ${metres(spot.at)}`] : []),
      ...(sure ? [`confidence ${sure}`] : []),
    ].join(", ");
    known.text = text;
    name(known);
  }

  /** @param {string} id
   *  @param {Spot} spot
   *  @returns {Shown} */
  add(id, { at, level }) {
    const [title, where] = [make("b", {}, id), make("i", {})];
    const html = make("div", { class: "position-label", "aria-hidden": "true" }, title, where);
    const icon = L.divIcon({ className: "position", html, iconSize: [16, 16] });
    const marker = L.marker(at, { icon, zIndexOffset: 800, riseOnHover: true });
    const group = this.plan.group(level, "positions");
    /** @type {Shown} */
    const shown = { marker, group, title, where, text: "" };
    marker.on("add", () => name(shown));
    const chosen = () => {
      const room = this.roomOf(id);
      if (room) this.choose({ room });
    };
    marker.on("click", chosen);
    marker.on("keypress", (event) => event.originalEvent.key === "Enter" && chosen());
    group.addLayer(marker);
    this.shown.set(id, shown);
    return shown;
  }

  /** @param {string} id */
  roomOf(id) {
    for (const row of this.live.rows("positions").values()) {
      if (row.id === id && row.room !== null && this.plan.site.spaces.has(row.room)) return row.room;
    }
    return undefined;
  }

  /** How many there are, and which are not on this level or not on the plan.
   *  @param {Map<string, PlacedRow>} best
   *  @param {Map<string, Spot>} spots */
  say(best, spots) {
    const here = [...spots.values()].filter(({ level }) => level === this.plan.level).length;
    const unknown = [...best.values()].filter(({ id }) => !spots.has(id));
    const rooms = [...new Set(unknown.map(({ room }) => room ?? "a point outside"))];
    const { others } = this.live.placed;
    const parts = [
      best.size ? `${count(best.size, "badge")}, ${here} on this level` : "no badge is heard now",
      ...(unknown.length
        ? [`${unknown.length} not on this plan (${rooms.slice(0, 3).join(", ")}${rooms.length > 3 ? ", …" : ""})`]
        : []),
      ...(others ? [`${others} more are not shown`] : []),
    ];
    const text = parts.join("; ");
    const state = byId("positions-state");
    if (state.textContent !== text) state.textContent = text;
  }
}

/** Give a marker its accessible name.
 *  @param {Shown} shown */
function name({ marker, text }) {
  const element = marker.getElement();
  if (!element || element.getAttribute("aria-label") === text) return;
  element.setAttribute("aria-label", text);
  element.title = text;
}

/** @param {LatLng} at */
const metres = ([y, x]) => `${x.toFixed(1)}, ${y.toFixed(1)} m`;

/** Where things stand, by id: at their point, else side by side in their room; things of no place on the plan are
 *  left out.
 *  @param {Map<string, PlacedRow>} rows by id
 *  @param {Plan} plan
 *  @returns {Map<string, Spot>} */
export function spotsOf(rows, plan) {
  const { site } = plan;
  /** @type {Map<string, Spot>} */
  const spots = new Map();
  /** @type {Map<Space, string[]>} */
  const inside = new Map();
  for (const [id, row] of rows) {
    const room = site.spaces.get(row.room ?? "");
    const level = row.floor ?? room?.level ?? 0;
    const at = pointOf(row, level, site);
    if (at) spots.set(id, { at, level, room, isPoint: true });
    else if (room) inside.set(room, [...(inside.get(room) ?? []), id]);
  }
  for (const [room, ids] of inside) {
    ids.sort().forEach((id, index) => {
      spots.set(id, { at: seat(room, index, ids.length), level: room.level, room, isPoint: false });
    });
  }
  return spots;
}

/** The place of one of several badges of which only the room is known: rows below the room's name.
 *  @param {Space} room
 *  @param {number} index
 *  @param {number} of
 *  @returns {LatLng} */
function seat({ at: [y, x], width, height }, index, of) {
  const columns = Math.ceil(Math.sqrt(of));
  const lines = Math.ceil(of / columns);
  const [column, line] = [index % columns, Math.floor(index / columns)];
  const dx = ((column + 0.5) / columns - 0.5) * width * 0.7;
  const dy = (0.5 + line) / lines;
  return [y - height * (0.1 + 0.3 * dy), x + dx];
}

/** The point of a row, if it is on the plan or next to it.
 *  @param {PlacedRow} row
 *  @param {number} level
 *  @param {Site} site
 *  @returns {LatLng | null} */
function pointOf({ x, y }, level, { bounds, levels }) {
  if (x === null || y === null || !levels.some(({ ordinal }) => ordinal === level)) return null;
  const [[south, west], [north, east]] = bounds;
  const margin = 0.2 * Math.max(east - west, north - south);
  const isInside = x >= west - margin && x <= east + margin && y >= south - margin && y <= north + margin;
  return isInside ? [y, x] : null;
}
