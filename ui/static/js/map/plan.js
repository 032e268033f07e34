// The drawn plan: levels, level switch, groups that belong to a level.
import { get, make, problemOf } from "../api.js";
import { byId } from "../elements.js";

/** What is chosen on the map.
 *  @typedef {{ machine?: string, room?: string }} Choice */
/** @import { LatLng, Site } from "./site.js" */

export class Plan {
  /** @param {Site} site see site.js
   *  @param {() => void} shown called after another level is shown */
  constructor(site, shown) {
    this.site = site;
    this.shown = shown;
    if (!window.pandoPlan) throw new Error("There is no drawn plan.");
    this.map = window.pandoPlan.map;
    this.drawn = new Map(Object.entries(window.pandoPlan.levels).map(([level, group]) => [Number(level), group]));
    /** @type {Map<number, Map<string, L.LayerGroup>>} */
    this.groups = new Map(); // level -> Map(name -> LayerGroup)
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** @type {number | null} */
    this.level = null;
    this.moved = false; // by a person: then it stays where it is
    this.beside = { top: 0, bottom: 0 }; // pixels above and below the building that others want
    this.map.setMinZoom(-3);
    this.map.setMaxZoom(7);
    this.map.options.zoomSnap = 0.1;
    this.map.doubleClickZoom.disable();
    const zoom = L.control.zoom({ position: "topright" }).addTo(this.map);
    zoom.getContainer()?.addEventListener("click", () => (this.moved = true));
    // The nodes of a trace are placed by who hears whom, not by metres.
    if (site.spaces.size) L.control.scale({ imperial: false, position: "bottomright" }).addTo(this.map);
    new ResizeObserver(() => {
      this.map.invalidateSize({ animate: false });
      if (!this.moved) this.fit();
    }).observe(this.map.getContainer());
    this.map.on("zoomend", () => this.scaleDesks());
    this.map.on("dragstart", () => (this.moved = true));
    this.map.getContainer().addEventListener("wheel", () => (this.moved = true), { passive: true });
    this.fit();
  }

  /** Pixels per metre. */
  get scale() {
    return this.map.getZoomScale(this.map.getZoom(), 0);
  }

  /** A desk is as large as in the building, within what can be seen and clicked. */
  scaleDesks() {
    const pixels = Math.min(Math.max(this.scale * 1.5, 6), 26);
    this.map.getContainer().style.setProperty("--desk", `${Math.round(pixels)}px`);
  }

  fit() {
    const { top, bottom } = this.beside;
    this.map.fitBounds(this.site.bounds, {
      paddingTopLeft: [14, 14 + top],
      paddingBottomRight: [14, 14 + bottom],
      animate: false,
    });
    this.scaleDesks();
  }

  /** The group of a name on a level, shown while its level is.
   *  @param {number} level
   *  @param {string} name
   *  @returns {L.LayerGroup} */
  group(level, name) {
    const named = this.groups.get(level) ?? new Map();
    this.groups.set(level, named);
    const known = named.get(name);
    if (known) return known;
    const group = L.layerGroup();
    named.set(name, group);
    if (level === this.level && !this.hidden.has(name)) group.addTo(this.map);
    return group;
  }

  /** Show or hide all groups of a name.
   *  @param {string} name
   *  @param {boolean} visible */
  toggle(name, visible) {
    if (visible) this.hidden.delete(name);
    else this.hidden.add(name);
    const group = this.level === null ? undefined : this.groups.get(this.level)?.get(name);
    if (group && visible) group.addTo(this.map);
    if (group && !visible) group.remove();
  }

  /** @param {number} level */
  show(level) {
    if (level === this.level) return;
    if (this.level !== null) {
      this.drawn.get(this.level)?.remove();
      for (const group of this.groups.get(this.level)?.values() || []) group.remove();
    }
    this.level = level;
    this.drawn.get(level)?.addTo(this.map);
    for (const [name, group] of this.groups.get(level) || []) if (!this.hidden.has(name)) group.addTo(this.map);
    /** @type {NodeListOf<HTMLButtonElement>} */
    const buttons = document.querySelectorAll("#levels button");
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.level) === level));
    }
    this.shown();
  }

  /** Fill the level switch, highest level first as in a lift. */
  addSwitch() {
    const levels = [...this.site.levels].sort((a, b) => b.ordinal - a.ordinal);
    if (levels.length > 1) {
      byId("levels").replaceChildren(
        ...levels.map((level) =>
          make(
            "button",
            {
              type: "button",
              "data-level": level.ordinal,
              "aria-pressed": "false",
              onclick: () => this.show(level.ordinal),
            },
            level.name,
          ),
        ),
      );
    }
    this.show(levels.some((level) => level.ordinal === 0) ? 0 : levels[levels.length - 1].ordinal);
  }

  /** @param {number} level */
  levelName(level) {
    return this.site.levels.find((known) => known.ordinal === level)?.name || `level ${level}`;
  }
}

/** Say why there is no drawn plan. */
export async function missingPlan() {
  const reason = await get("/map/plan.js").then(() => ({ message: "The map cannot be drawn.", hint: "" }), problemOf);
  byId("map_plan").replaceChildren(make("p", { class: "empty" }, reason.message, reason.hint ? ` ${reason.hint}` : ""));
}

/** A marker that is an HTML element, so that the style sheet decides how it looks.
 *  @param {LatLng} at
 *  @param {string} className
 *  @param {{ size?: number, label?: string, text?: string, interactive?: boolean, z?: number }} how */
export function mark(at, className, { size = 16, label = "", text = "", interactive = true, z = 0 } = {}) {
  const content = document.createElement("span");
  content.textContent = text;
  const marker = L.marker(at, {
    icon: L.divIcon({ className, html: content, iconSize: [size, size] }),
    title: label,
    interactive,
    keyboard: interactive,
    zIndexOffset: z,
    riseOnHover: true,
  });
  if (label) marker.on("add", () => marker.getElement()?.setAttribute("aria-label", label));
  return marker;
}

/** A route whose dashes move along it.
 *  @param {LatLng[]} places */
export const drawnRoute = (places) =>
  L.polyline.antPath(places, {
    color: "#0b6fd6",
    pulseColor: "#ffffff",
    weight: 5,
    opacity: 0.9,
    delay: 900,
    dashArray: [10, 22],
    interactive: false,
    className: "route",
  });

/** Set the classes of a marker or path to `base` and those wanted.
 *  @param {L.Marker} layer
 *  @param {string} base
 *  @param {string[]} wanted */
export function setClasses(layer, base, wanted) {
  const element = layer.getElement();
  if (!element) return;
  const own = [...element.classList].filter((name) => name.startsWith("leaflet-"));
  const next = [...own, base, ...wanted].join(" ");
  if (element.getAttribute("class") !== next) element.setAttribute("class", next);
}
