// The network of shared computations as a drawing: sources, nodes by kind, queries. The wider a line, the more it is
// used.
import { DRAWING, PanZoom } from "../pan_zoom.js";
import { shape } from "../svg.js";
import { folded } from "./network_fold.js";
import { placed } from "./network_layout.js";
import { act, cut } from "./plan_marks.js";

/** @import { NetworkNode } from "../payloads.d.ts" */
/** @import { Pill, Unit } from "./network_fold.js" */
/** @import { NetworkPlace } from "./network_layout.js" */

/** What can be chosen: a source, a node or several that are alike, or the queries of nodes.
 *  @typedef {{ id: string, source?: string, unit?: Unit, pill?: Pill }} Chosen */
/** @typedef {"queries" | "bytes"} Width */
/** @typedef {{ from: string, to: string, path: SVGPathElement }} DrawnEdge */

const LETTERS = 29; // of a node's words that fit
const SHORT = 20; // of a source or query
const [LEAST, WIDEST] = [1.4, 13]; // of lines
const READABLE = 0.8; // pixels per unit
const GAP = 7; // between a box and the end of a line

/** @type {Record<string, string>} */
const SIGNS = {
  selection: "σ",
  join: "⋈",
  aggregate: "Σ",
  distinct: "δ",
  "set operation": "∪",
  recursion: "↻",
  window: "▦",
  rows: "≡",
  mixed: "⋮",
};

/** The kind of nodes that are drawn as one, or "mixed".
 *  @param {NetworkNode[]} nodes */
export const kindOf = (nodes) => (nodes.every(({ kind }) => kind === nodes[0].kind) ? nodes[0].kind : "mixed");
/** @param {string} kind */
export const signOfKind = (kind) => SIGNS[kind] ?? "•";
/** @param {string} kind */
export const classOfKind = (kind) => `kind-${kind.replace(" ", "-")}`;

export class NetworkDrawing {
  /** @param {SVGSVGElement} svg
   *  @param {(chosen: Chosen | null) => void} picked */
  constructor(svg, picked) {
    this.svg = svg;
    this.picked = picked;
    this.camera = new PanZoom(svg, {
      ...DRAWING,
      scales: [READABLE, 1.15],
      begin: () => [...this.places.values()].filter(({ column }) => column === 0),
    });
    /** @type {Width} */
    this.width = "queries";
    /** @type {Set<string>} */
    this.opened = new Set();
    this.signature = "";
    /** @type {string | null} */
    this.selected = null;
    /** @type {string | null} */
    this.run = null; // of the query whose plan is shown
    /** @type {Map<string, Chosen>} */
    this.things = new Map();
    /** @type {Map<string, SVGGElement>} */
    this.marks = new Map();
    /** @type {Map<string, NetworkPlace>} */
    this.places = new Map();
    /** @type {DrawnEdge[]} */
    this.edges = [];
    svg.addEventListener("keydown", (event) => this.go(event));
    svg.addEventListener("focusout", () => this.light(this.selected));
  }

  /** Show the nodes as they are now.
   *  @param {NetworkNode[]} nodes */
  update(nodes) {
    const { units, pills } = folded(nodes, this.opened);
    const signature = JSON.stringify([
      units.map(({ id, reads, sources, nodes: own }) => [id, reads, sources, own.length]),
      pills.map(({ id, of, nodes: own }) => [id, of, own.length]),
    ]);
    this.things = new Map([
      ...units.flatMap(({ sources }) => sources.map((source) => thing(`source ${source}`, { source }))),
      ...units.map((unit) => thing(unit.id, { unit })),
      ...pills.map((pill) => thing(pill.id, { pill })),
    ]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.draw(units, pills);
    }
    this.write();
  }

  /** @param {Unit[]} units
   *  @param {Pill[]} pills */
  draw(units, pills) {
    const focused = document.activeElement?.getAttribute("data-id");
    const { places, width, height } = placed(units, pills);
    this.places = places;
    this.marks.clear();
    const lines = shape("g", { class: "lines" });
    const boxes = shape("g", { class: "nodes" });
    this.edges = [...places.values()].flatMap((to) =>
      to.below.flatMap((name) => {
        const from = places.get(name);
        if (!from) return [];
        const path = shape("path", { class: "share", d: curve(from, to) });
        return [{ from: name, to: to.id, path }];
      }),
    );
    lines.append(...this.edges.map(({ path }) => path));
    for (const place of places.values()) boxes.append(this.mark(place));
    this.svg.replaceChildren(lines, boxes);
    this.camera.world({ x: -14, y: -14, width: width + 28, height: height + 28 });
    if (this.selected !== null && !this.things.has(this.selected)) this.choose(null);
    this.reach(focused && this.marks.has(focused) ? focused : (this.selected ?? [...this.marks.keys()][0]));
    if (focused) this.marks.get(focused)?.focus();
    this.press();
    this.light(this.selected);
  }

  /** @param {NetworkPlace} place */
  mark(place) {
    const { id } = place;
    const { source, unit } = this.things.get(id) ?? {};
    const mark = unit ? unitMark(unit, place) : pillMark(source === undefined ? "pill" : "source-mark", place);
    mark.append(shape("title"));
    for (const [name, value] of Object.entries({ tabindex: -1, role: "button", "data-id": id })) {
      mark.setAttribute(name, String(value));
    }
    act(mark, () => this.choose(this.selected === id ? null : id));
    mark.addEventListener("focus", () => {
      this.reach(id);
      this.light(id);
    });
    mark.addEventListener("pointerenter", () => this.light(id));
    mark.addEventListener("pointerleave", () => this.light(this.selected));
    this.marks.set(id, mark);
    return mark;
  }

  /** Write what may have changed while the same things are drawn. */
  write() {
    for (const [id, mark] of this.marks) {
      const { source, unit, pill } = this.things.get(id) ?? {};
      if (unit) writeUnit(mark, unit);
      else if (pill) writePill(mark, pillName(pill), pillTitle(pill));
      else if (source !== undefined) writePill(mark, source, `source ${source}`);
      mark.classList.toggle("of-query", pill?.nodes.some(({ run }) => run === this.run) ?? false);
    }
    const uses = this.edges.map((edge) => this.useOf(edge));
    const most = Math.max(...uses.map((use) => use ?? 0), 1);
    this.edges.forEach(({ path }, index) => {
      const use = uses[index] ?? 0;
      path.setAttribute("stroke-width", widthOf(use, most).toFixed(1));
      path.classList.toggle("unmeasured", uses[index] === null);
    });
  }

  /** How much a line is used: queries, or bytes a second; null: not measured.
   *  @param {DrawnEdge} edge
   *  @returns {number | null} */
  useOf({ from, to }) {
    const [below, above] = [this.things.get(from), this.things.get(to)];
    if (this.width === "bytes") {
      const nodes = above?.pill ? above.pill.nodes : below?.unit ? below.unit.nodes : [];
      const known = nodes.flatMap(({ bytes_per_second: bytes }) => bytes ?? []);
      return known.length ? known.reduce((sum, bytes) => sum + bytes, 0) : null;
    }
    return above?.pill ? above.pill.queries : (above?.unit?.resting ?? 0);
  }

  /** Show which thing is chosen. */
  press() {
    for (const [id, mark] of this.marks) {
      mark.classList.toggle("chosen", id === this.selected);
      mark.setAttribute("aria-pressed", String(id === this.selected));
    }
  }

  /** @param {string | null} id */
  choose(id) {
    this.selected = id;
    this.press();
    this.light(id);
    this.picked(id === null ? null : (this.things.get(id) ?? null));
  }

  /** What a thing rests on and what rests on it stands out; null: all is alike.
   *  @param {string | null} id */
  light(id) {
    const lit = new Set(id === null ? [] : [...this.along(id, "from", "to"), ...this.along(id, "to", "from")]);
    this.svg.classList.toggle("dimmed", lit.size > 0);
    for (const [known, mark] of this.marks) mark.classList.toggle("lit", lit.has(known));
    for (const { from, to, path } of this.edges) path.classList.toggle("lit", lit.has(from) && lit.has(to));
  }

  /** All that can be reached from a thing along lines in one direction, itself too.
   *  @param {string} id
   *  @param {"from" | "to"} end at which a line leaves
   *  @param {"from" | "to"} other */
  along(id, end, other) {
    const found = new Set([id]);
    for (const known of found) {
      for (const edge of this.edges) if (edge[end] === known) found.add(edge[other]);
    }
    return found;
  }

  /** Let the tab key come to one thing; arrow keys go on from there.
   *  @param {string | undefined} id */
  reach(id) {
    for (const [known, mark] of this.marks) mark.setAttribute("tabindex", known === id ? "0" : "-1");
  }

  /** @param {KeyboardEvent} event */
  go(event) {
    const id = event.target instanceof Element ? event.target.getAttribute("data-id") : null;
    const here = id === null ? undefined : this.places.get(id);
    if (!here || event.ctrlKey || event.altKey || event.metaKey) return;
    const next = this.next(here, event.key);
    if (!next) return;
    event.preventDefault();
    this.marks.get(next)?.focus({ preventScroll: true });
    this.camera.show(this.places.get(next));
  }

  /** @param {NetworkPlace} here
   *  @param {string} key
   *  @returns {string | undefined} */
  next({ id, column, y }, key) {
    const ends = { ArrowLeft: ["to", "from"], ArrowRight: ["from", "to"] };
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const [end, other] = /** @type {("from" | "to")[]} */ (ends[key]);
      const found = this.edges.filter((edge) => edge[end] === id).flatMap((edge) => this.places.get(edge[other]) ?? []);
      return found.sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y))[0]?.id;
    }
    const beside = [...this.places.values()].filter((place) => place.column === column).sort((a, b) => a.y - b.y);
    const index = beside.findIndex((place) => place.id === id);
    if (key === "ArrowUp") return beside[index - 1]?.id;
    if (key === "ArrowDown") return beside[index + 1]?.id;
    if (key === "Home") return beside[0]?.id;
    return key === "End" ? beside.at(-1)?.id : undefined;
  }

  clear() {
    this.signature = "";
    this.things.clear();
    this.marks.clear();
    this.edges = [];
    this.svg.replaceChildren();
    this.camera.reset();
  }
}

/** @param {string} id
 *  @param {Omit<Chosen, "id">} of
 *  @returns {[string, Chosen]} */
const thing = (id, of) => [id, { id, ...of }];

/** @param {Unit} unit
 *  @param {NetworkPlace} place */
function unitMark({ nodes }, { x, y, width, height }) {
  const kind = kindOf(nodes);
  const box = { x, y, width, height, rx: 7 };
  return shape(
    "g",
    { class: `unit ${classOfKind(kind)}` },
    nodes.length > 1 && shape("rect", { ...box, x: x + 5, y: y + 5, class: "behind" }),
    shape("rect", { ...box, class: "body" }),
    shape("path", { class: "stripe", d: `M${x + 4} ${y + 9}v${height - 18}` }),
    shape("text", { x: x + 19, y: y + 20, class: "sign", "text-anchor": "middle" }, signOfKind(kind)),
    shape("text", { x: x + 34, y: y + 20, class: "name" }),
    shape("text", { x: x + 12, y: y + 39, class: "line" }),
    shape("text", { x: x + width - 9, y: y + 20, class: "used", "text-anchor": "end" }),
  );
}

/** @param {string} name
 *  @param {NetworkPlace} place */
const pillMark = (name, { x, y, width, height }) =>
  shape(
    "g",
    { class: name },
    shape("rect", { x, y, width, height, rx: height / 2, class: "body" }),
    shape("text", { x: x + width / 2, y: y + 20, class: "name", "text-anchor": "middle" }),
  );

/** @param {SVGGElement} mark
 *  @param {Record<string, string>} texts by class */
function write(mark, texts) {
  for (const [name, text] of Object.entries(texts)) {
    const place = mark.querySelector(name);
    if (place && place.textContent !== text) place.textContent = text;
  }
}

/** @param {SVGGElement} mark
 *  @param {Unit} unit */
function writeUnit(mark, unit) {
  const [name, words] = [unitName(unit), unitWords(unit)];
  const used = unit.resting === 1 ? "1 query rests on it" : `${unit.resting} queries rest on it`;
  const whole = `${name} ${kindOf(unit.nodes)}, ${words}, ${unit.resting ? used : "kept for others"}`;
  write(mark, {
    ".name": cut(name, LETTERS - 10),
    ".line": cut(words, LETTERS),
    ".used": unit.resting ? String(unit.resting) : "kept",
    title: whole,
  });
  mark.setAttribute("aria-label", whole);
  mark.classList.toggle(
    "kept",
    unit.nodes.every(({ kept }) => kept),
  );
}

/** @param {SVGGElement} mark
 *  @param {string} name
 *  @param {string} whole */
function writePill(mark, name, whole) {
  write(mark, { ".name": cut(name, SHORT), title: whole });
  mark.setAttribute("aria-label", whole);
}

/** How wide a line is, by how much of the most used one it is.
 *  @param {number} use
 *  @param {number} most */
function widthOf(use, most) {
  const share = Math.log2(1 + use) / Math.log2(1 + most);
  return LEAST + share * (WIDEST - LEAST) * Math.min(1, most / 8);
}

/** @param {Unit} unit */
const unitName = ({ nodes }) => (nodes.length === 1 ? nodes[0].node : `${nodes.length} × ${kindOf(nodes)}`);

/** @param {Unit} unit */
function unitWords({ nodes, sources }) {
  if (nodes.length === 1) return nodes[0].computes;
  return sources.length ? `of ${sources.join(", ")}` : "alike, one query each";
}

/** @param {Pill} pill */
export function pillName({ nodes, queries }) {
  const known = nodes.flatMap((node) => node.queries);
  if (queries === 1 && known.length === 1) return known[0].name;
  return queries === 1 ? "1 query" : `${queries} queries`;
}

/** @param {Pill} pill */
const pillTitle = (pill) => `${pillName(pill)}, the answer is node ${pill.nodes.map(({ node }) => node).join(", ")}`;

/** @param {NetworkPlace} from
 *  @param {NetworkPlace} to */
function curve(from, to) {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x - GAP, to.y + to.height / 2];
  const bend = Math.max(36, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}h${GAP}`;
}
