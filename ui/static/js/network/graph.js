// The links of a network as a drawing: nodes, one line per pair, zoom and drag.
import { shape } from "../svg.js";
import { PanZoom } from "../pan_zoom.js";
import { spring } from "./layout.js";

/** Two nodes and the rows of the links between them.
 *  @typedef {{ a: string, b: string, rows: Row[] }} Pair */
/** @typedef {Pair & { line: SVGLineElement, hit: SVGLineElement, title: SVGTitleElement }} DrawnPair */
/** @import { Row } from "../payloads.d.ts" */
/** @import { Box, LevelBox, XY } from "./layout.js" */

const ENOUGH = 0.8; // share of nodes with a place for which the floor plan is used

/** @param {string} src
 *  @param {string} dst */
export const pairKey = (src, dst) => (src < dst ? `${src}|${dst}` : `${dst}|${src}`);

export class Graph {
  /** @param {SVGSVGElement} svg where to draw
   *  @param {{ places: Map<string, XY>, levels: LevelBox[] }} laid of loadPlaces
   *  @param {(pair: Pair) => void} picked called with a pair {a, b, rows} when its line is chosen */
  constructor(svg, { places, levels }, picked) {
    this.svg = svg;
    this.places = places;
    this.levels = levels;
    this.picked = picked;
    /** @type {Map<string, { at: XY, element: SVGGElement }>} */
    this.nodes = new Map(); // id -> {at, element}
    /** @type {Map<string, DrawnPair>} */
    this.pairs = new Map(); // key -> {a, b, rows, line, hit}
    this.layers = {
      levels: shape("g", { class: "levels" }),
      lines: shape("g", { class: "lines" }),
      hits: shape("g", { class: "hits" }),
      nodes: shape("g", { class: "nodes" }),
    };
    svg.append(...Object.values(this.layers));
    this.camera = new PanZoom(svg, {
      range: ({ width }) => [width / 40, width * 2],
      scales: [0, Infinity],
      looked: (view) => this.keepSizes(view),
    });
  }

  /** Draw the rows of a link source: [{src, dst, …}]; `quality` gives a row's class.
   *  @param {Row[]} rows
   *  @param {string[]} ends
   *  @param {(rows: Row[]) => string[]} quality */
  update(rows, [src, dst], quality) {
    /** @type {Map<string, Pair>} */
    const pairs = new Map();
    for (const row of rows) {
      const [from, to] = [String(row[src]), String(row[dst])];
      const key = pairKey(from, to);
      const pair = pairs.get(key) ?? { a: from < to ? from : to, b: from < to ? to : from, rows: [] };
      pair.rows.push(row);
      pairs.set(key, pair);
    }
    const names = new Set([...pairs.values()].flatMap(({ a, b }) => [a, b]));
    this.placeNodes(names, pairs);
    for (const [key, { line, hit }] of this.pairs) {
      if (pairs.has(key)) continue;
      line.remove();
      hit.remove();
      this.pairs.delete(key);
    }
    for (const [key, pair] of pairs) this.drawPair(key, pair, quality);
  }

  /** Place nodes; only when some are new does anything move.
   *  @param {Set<string>} names
   *  @param {Map<string, Pair>} pairs */
  placeNodes(names, pairs) {
    const fresh = [...names].filter((id) => !this.nodes.has(id));
    for (const [id, node] of this.nodes) node.element.classList.toggle("alone", !names.has(id));
    if (!fresh.length) return;
    const all = new Set([...this.nodes.keys(), ...fresh]);
    const placed = [...all].filter((id) => this.places.has(id)).length >= ENOUGH * all.size;
    const before = new Map([...this.nodes].map(([id, { at }]) => [id, at]));
    const at = placed ? this.places : spring(all, [...pairs.values()], before);
    for (const id of all) this.placeNode(id, at.get(id) || [0, 0]);
    for (const pair of this.pairs.values()) this.stretch(pair);
    if (placed) this.drawLevels();
    this.fit();
  }

  /** @param {string} id
   *  @param {XY} at */
  placeNode(id, at) {
    const known = this.nodes.get(id);
    const element =
      known?.element ??
      shape("g", { class: "node" }, shape("circle", { r: 1 }), shape("text", {}, id), shape("title", {}, id));
    element.setAttribute("transform", `translate(${at[0]} ${at[1]})`);
    if (!known) this.layers.nodes.append(element);
    this.nodes.set(id, { at, element });
  }

  drawLevels() {
    this.layers.levels.replaceChildren(
      ...this.levels.map(({ name, x, y, width, height }) => {
        const label = shape("text", { x, y: y - height * 0.015, class: "level-name" });
        label.textContent = name;
        return shape("g", {}, shape("rect", { x, y, width, height, class: "level" }), label);
      }),
    );
  }

  /** @param {string} key
   *  @param {Pair} found
   *  @param {(rows: Row[]) => string[]} quality */
  drawPair(key, found, quality) {
    let pair = this.pairs.get(key);
    if (!pair) {
      const title = shape("title");
      const made = { ...found, line: shape("line"), hit: shape("line", { class: "hit" }, title), title };
      pair = made;
      pair.hit.addEventListener("click", () => this.picked(made));
      this.layers.lines.append(pair.line);
      this.layers.hits.append(pair.hit);
      this.pairs.set(key, pair);
      this.stretch(pair);
    }
    pair.rows = found.rows;
    const classes = ["link", ...quality(found.rows)];
    for (const kept of ["chosen", "gone"]) if (pair.line.classList.contains(kept)) classes.push(kept);
    pair.line.setAttribute("class", classes.join(" "));
    pair.title.textContent = `${found.a} ${found.rows.length > 1 ? "↔" : "→"} ${found.b}: what changes without it?`;
  }

  /** @param {DrawnPair} pair */
  stretch({ a, b, line, hit }) {
    const [from, to] = [this.nodes.get(a)?.at, this.nodes.get(b)?.at];
    if (!from || !to) return;
    for (const element of [line, hit]) {
      for (const [name, value] of Object.entries({ x1: from[0], y1: from[1], x2: to[0], y2: to[1] })) {
        element.setAttribute(name, String(value));
      }
    }
  }

  /** Mark a pair as thought away, and nodes and pairs that rows name.
   *  @param {string} name
   *  @param {Set<string>} keys */
  mark(name, keys) {
    for (const [key, { line }] of this.pairs) line.classList.toggle(name, keys.has(key));
  }

  /** @param {string} name
   *  @param {Set<string>} ids */
  markNodes(name, ids) {
    for (const [id, { element }] of this.nodes) element.classList.toggle(name, ids.has(id));
  }

  // --- looking around ---------------------------------------------------------------------------

  fit() {
    const xs = [...this.nodes.values()].map(({ at }) => at[0]);
    const ys = [...this.nodes.values()].map(({ at }) => at[1]);
    for (const { x, y, width, height } of this.layers.levels.childElementCount ? this.levels : []) {
      xs.push(x, x + width);
      ys.push(y, y + height);
    }
    const [west, east, north, south] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const margin = Math.max(east - west, south - north, 10) * 0.05;
    this.camera.world({
      x: west - margin,
      y: north - margin,
      width: Math.max(east - west, 1) + 2 * margin,
      height: Math.max(south - north, 1) + 2 * margin,
    });
    this.camera.fit();
  }

  /** Nodes and letters keep their size on the screen however close one looks.
   *  @param {Box} view */
  keepSizes(view) {
    const box = this.svg.getBoundingClientRect();
    const scale = Math.max(view.width / (box.width || 1), view.height / (box.height || 1));
    this.svg.style.setProperty("--px", `${scale}px`);
    const whole = this.camera.whole?.width ?? view.width;
    this.svg.classList.toggle("close", this.nodes.size <= 40 || view.width < whole * 0.6);
  }
}
