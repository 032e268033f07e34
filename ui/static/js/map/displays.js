// Displays on the map: their answers stand beside the building, with a line to where they hang.
import { Answers } from "../answers.js";
import { make } from "../api.js";

/** @typedef {"top" | "bottom"} Side */
/** A display on the map, and where it hangs.
 *  @typedef {{ box: HTMLElement, title: HTMLElement, answers: Answers, marker: L.Marker, line: L.Polyline,
 *    spot: L.CircleMarker, group: L.LayerGroup | null, floor: number | null, at: L.LatLngTuple,
 *    point: L.Point }} Hung */
/** @import { Display } from "../payloads.d.ts" */
/** @import { Plan } from "./plan.js" */
/** @import { LatLng } from "./site.js" */

const SMALL = { most: 5, each: 3, columns: 4 };
/** @type {Side[]} */
const SIDES = ["top", "bottom"];
const WIDTH = 190;
const GAP = 10; // pixels between the building and a box, and between boxes
const MOST_BESIDE = 0.55; // of the height that boxes may take from the building
const CONTROLS = 48; // pixels that the zoom buttons take of the upper right corner

export class Displays {
  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    /** @type {Map<string, Hung>} */
    this.known = new Map(); // name -> {box, title, answers, marker, line, spot, group, floor, at}
    this.waiting = false;
    plan.map.on("zoomend moveend resize", () => this.later());
  }

  /** @param {Display} display */
  show(display) {
    const known = this.known.get(display.name) ?? this.add(display.name);
    known.title.textContent = known.title.title = display.title;
    known.answers.show(display);
    known.at = [display.y, display.x];
    if (known.floor !== display.floor) {
      this.remove(known);
      known.floor = display.floor;
      known.group = this.plan.group(display.floor, "displays");
      for (const layer of [known.line, known.spot, known.marker]) known.group.addLayer(layer);
    }
    this.later();
  }

  /** @param {string} name
   *  @returns {Hung} */
  add(name) {
    const body = make("div", { class: "answers" });
    const title = make("a", { href: `/displays/${encodeURIComponent(name)}`, target: "_blank", rel: "noopener" });
    const box = make(
      "section",
      { class: "map-display", "data-display": name, "aria-label": `Display ${name}` },
      title,
      body,
    );
    L.DomEvent.disableClickPropagation(box);
    const icon = L.divIcon({ className: "display-place", html: box, iconSize: [WIDTH, 0], iconAnchor: [WIDTH / 2, 0] });
    const marker = L.marker([0, 0], { icon, keyboard: false, zIndexOffset: 600, riseOnHover: true });
    marker.on("add", () => this.later());
    const drawn = { interactive: false, pane: "markerPane" };
    const line = L.polyline([], { ...drawn, className: "display-line" });
    const spot = L.circleMarker([0, 0], { ...drawn, radius: 4, className: "display-spot" });
    /** @type {Hung} */
    const known = {
      box,
      title,
      answers: new Answers(body, SMALL),
      marker,
      line,
      spot,
      group: null,
      floor: null,
      at: [0, 0],
      point: L.point(0, 0),
    };
    this.known.set(name, known);
    return known;
  }

  /** All that there are, when the page hears again: what was dropped meanwhile goes.
   *  @param {string[]} names */
  only(names) {
    for (const name of [...this.known.keys()]) if (!names.includes(name)) this.gone(name);
  }

  /** @param {string} name */
  gone(name) {
    const known = this.known.get(name);
    if (known) this.remove(known);
    this.known.delete(name);
    this.later();
  }

  /** @param {Hung} hung */
  remove({ group, marker, line, spot }) {
    for (const layer of [marker, line, spot]) group?.removeLayer(layer);
  }

  /** Place the boxes soon, once for many changes. */
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.place();
    });
  }

  /** Put each box beyond the nearer edge of the building that has room for it; without room it folds up where it is. */
  place() {
    const { map, site } = this.plan;
    const shown = [...this.known.values()].filter(
      ({ floor, marker }) => floor === this.plan.level && map.hasLayer(marker),
    );
    const bounds = L.latLngBounds(site.bounds);
    const edge = {
      top: map.latLngToContainerPoint(bounds.getNorthWest()).y,
      bottom: map.latLngToContainerPoint(bounds.getSouthEast()).y,
    };
    const size = map.getSize();
    /** @type {Record<Side, Hung[]>} */
    const beside = { top: [], bottom: [] };
    for (const { box } of shown) box.classList.remove("folded");
    if (!this.plan.moved && this.makeRoom(shown, bounds.getCenter().lat, size.y)) return;
    for (const known of shown) {
      known.point = map.latLngToContainerPoint(known.at);
      const side = sideFor(known, edge, size, beside);
      if (side) beside[side].push(known);
      else this.fold(known);
    }
    for (const side of SIDES) {
      const from = row(beside[side], side === "top" ? size.x - CONTROLS : size.x);
      const y = side === "top" ? edge.top - GAP : edge.bottom + GAP;
      beside[side].forEach((known, index) => this.hang(known, from[index] + WIDTH / 2, y, side));
    }
  }

  /** Move the building so that boxes have room beside it; returns whether it moves, for then all is placed again.
   *  @param {Hung[]} shown
   *  @param {number} middle
   *  @param {number} height */
  makeRoom(shown, middle, height) {
    /** @type {Record<Side, number>} */
    const wanted = { top: 0, bottom: 0 };
    for (const { at, box } of shown) {
      const side = at[0] >= middle ? "top" : "bottom";
      wanted[side] = Math.max(wanted[side], box.offsetHeight + 2 * GAP);
    }
    const { beside } = this.plan;
    const grown = { top: Math.max(beside.top, wanted.top), bottom: Math.max(beside.bottom, wanted.bottom) };
    const much = grown.top + grown.bottom > MOST_BESIDE * height;
    if (much || (grown.top === beside.top && grown.bottom === beside.bottom)) return false;
    this.plan.beside = grown;
    this.plan.fit();
    this.later();
    return true;
  }

  /** @param {Hung} hung
   *  @param {number} x
   *  @param {number} y
   *  @param {Side} side */
  hang({ box, marker, line, spot, at }, x, y, side) {
    const end = this.plan.map.containerPointToLatLng([x, y]);
    box.classList.toggle("above", side === "top");
    marker.setLatLng(end);
    line.setLatLngs([at, end]);
    spot.setLatLng(at);
  }

  /** @param {Hung} hung */
  fold({ box, marker, line, spot, at }) {
    box.classList.add("folded");
    box.classList.remove("above");
    marker.setLatLng(at);
    line.setLatLngs([]);
    spot.setLatLng(at);
  }
}

/** The side that has room for a box, the nearer one first; undefined if neither has, or its place is out of sight.
 *  @param {Hung} hung
 *  @param {Record<Side, number>} edge
 *  @param {L.Point} size
 *  @param {Record<Side, Hung[]>} beside
 *  @returns {Side | undefined} */
function sideFor({ point, box }, edge, { x: width, y: height }, beside) {
  if (point.x < 0 || point.x > width || point.y < 0 || point.y > height) return undefined;
  const needed = box.offsetHeight + 2 * GAP;
  const fits = { top: edge.top >= needed, bottom: height - edge.bottom >= needed };
  const isNearTop = point.y - edge.top <= edge.bottom - point.y;
  return (isNearTop ? SIDES : SIDES.toReversed()).find(
    (side) => fits[side] && (beside[side].length + 1) * (WIDTH + GAP) < width - CONTROLS,
  );
}

/** Left edges of boxes in a row, each as near to its place as the others let it; sorts the boxes.
 *  @param {Hung[]} boxes
 *  @param {number} width */
function row(boxes, width) {
  boxes.sort((a, b) => a.point.x - b.point.x);
  /** @type {number[]} */
  const from = [];
  for (const [index, { point }] of boxes.entries()) {
    const least = index ? from[index - 1] + WIDTH + GAP : GAP;
    from.push(Math.max(least, point.x - WIDTH / 2));
  }
  for (let index = boxes.length - 1, most = width - WIDTH - GAP; index >= 0; index -= 1, most -= WIDTH + GAP) {
    from[index] = Math.max(Math.min(from[index], most), GAP);
    most = from[index];
  }
  return from;
}
