// The plan as a live drawing: drawn anew when operators come or go, else only its numbers change.
import { shape } from "../svg.js";
import { keyOf, number, shown } from "./reported.js";
import { foldedSites } from "./plan_fold.js";
import { NODE, STORE_SIZE, layout } from "./plan_layout.js";
import { belongings, signatureOf, storeOf, storesOf } from "./plan_belongings.js";
import { grouped, hasWindow, signOf } from "./plan_model.js";
import { act, cut, flow, ladder, magnifier, named, panes } from "./plan_marks.js";
import { PanZoom } from "../pan_zoom.js";

/** Where a plan is drawn: its layers, the places of its operators by "site entity", what they report.
 *  @typedef {{ layers: Record<"boxes" | "lines" | "nodes", SVGGElement>, at: Map<string, Spot>,
 *    reported: Reported }} Scene */
/** @import { Crossing, Operator, RunningPlan } from "./plan_model.js" */
/** @import { SiteBox, Spot } from "./plan_layout.js" */
/** @import { Entity, Reported, Reporter } from "./reported.js" */

const LETTERS = 20; // of an operator's line that fit

const OUTSIDE = 58; // from an operator at the top of a site's box to above the box

export class PlanDrawing {
  /** @param {SVGSVGElement} svg where to draw
   *  @param {(entity: Entity) => void} picked called with {site, kind, entity} */
  constructor(svg, picked) {
    this.svg = svg;
    this.picked = picked;
    /** @type {Entity | null} */
    this.selected = null;
    /** @type {Set<string>} */
    this.wanted = new Set(); // sites drawn although others are like them
    /** @type {Set<string>} */
    this.away = new Set();
    this.signature = "";
    /** @type {((now: Reported) => void)[]} */
    this.live = []; // functions that write the newest numbers
    /** @type {Map<string, SVGElement>} */
    this.marks = new Map(); // by the key of an entity
    /** @type {string | null} */
    this.result = null; // what is said of the result
    /** @type {(() => void) | null} */
    this.shown = null; // called when another site is to be drawn
    this.camera = new PanZoom(svg);
  }

  /** Show a plan with what is reported now.
   *  @param {RunningPlan} plan
   *  @param {Reported} reported
   *  @param {string | null} result */
  update(plan, reported, result) {
    const { drawn, folded } = grouped(plan.sites, this.wanted);
    const signature = JSON.stringify([
      drawn.map(({ site, shape: own }) => [site, own, this.away.has(site)]),
      folded,
      drawn.map((found) => signatureOf(found, reported)),
    ]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.draw(
        plan,
        layout(drawn, folded, (found) => storesOf(found, reported)),
        reported,
      );
    }
    this.result = result;
    for (const write of this.live) write(reported);
  }

  /** @param {RunningPlan} plan
   *  @param {ReturnType<typeof layout>} places
   *  @param {Reported} reported */
  draw(plan, places, reported) {
    this.live = [];
    this.marks.clear();
    const focused = document.activeElement?.getAttribute("data-key");
    const layers = {
      boxes: shape("g", { class: "boxes" }),
      lines: shape("g", { class: "lines" }),
      nodes: shape("g", { class: "nodes" }),
    };
    /** @type {Map<string, Spot>} */
    const at = new Map(); // "site entity" -> absolute place
    const scene = { layers, at, reported };
    for (const box of places.sites) {
      for (const [entity, { x, y }] of box.places) {
        at.set(`${box.found.site} ${entity}`, { x: box.x + x, y: box.y + y });
      }
      this.drawSite(box, scene);
    }
    for (const fold of places.folded) layers.boxes.append(...foldedSites(fold, (site) => this.show(site)));
    for (const { from, to, fragment } of plan.crossings) this.drawCrossing(from, to, fragment, scene);
    this.svg.replaceChildren(...Object.values(layers));
    this.camera.world({ x: -10, y: -34, width: places.width + 20, height: places.height + 44 });
    this.select(this.selected);
    if (focused) this.marks.get(focused)?.focus();
  }

  /** @param {SiteBox} box
   *  @param {Scene} scene */
  drawSite({ found, x, y, width, height, stores }, scene) {
    const { layers, at, reported } = scene;
    const { site } = found;
    const away = this.away.has(site);
    const facts = shape("text", { x: x + width - 12, y: y + 20, class: "facts-line", "text-anchor": "end" });
    const title = this.pick(
      shape(
        "g",
        { class: "site-title" },
        shape("rect", { x, y, width, height: 28, rx: 8, class: "site-head" }),
        shape("text", { x: x + 12, y: y + 19, class: "site-name" }, site),
        facts,
      ),
      { site, kind: "site", entity: site },
      `site ${site}`,
    );
    layers.boxes.append(
      shape("rect", { x, y, width, height, rx: 8, class: away ? "site-box away" : "site-box" }),
      title,
    );
    this.live.push((now) => {
      const waiting = now.value(site, "site", site, "queued_rows");
      const memory = now.value(site, "site", site, "memory_mb");
      facts.textContent = away
        ? "offline"
        : width < 260
          ? waiting === null
            ? ""
            : `${number(waiting)} waiting`
          : [waiting !== null && `${number(waiting)} waiting`, memory !== null && `${number(memory)} MB`]
              .filter(Boolean)
              .join(" · ");
    });
    const storeAt = new Map(stores.map((store) => [store.entity, { x: x + store.x, y: y + store.y }]));
    for (const [entity, place] of storeAt) this.drawStore(site, entity, place, layers.nodes);
    for (const operator of found.operators.values()) {
      const place = at.get(`${site} ${operator.entity}`);
      if (!place) continue;
      this.drawOperator(operator, place, scene);
      operator.inputs.forEach((input) => this.drawEdge(operator, operator.feeding.indexOf(input.entity), input, scene));
      belongings(reported, site, operator.entity).synopses.forEach((synopsis, index) =>
        this.drawSynopsis(synopsis, place, index, storeAt, layers),
      );
    }
    const top = found.rank === 0 && found.roots[0] && at.get(`${site} ${found.roots[0].entity}`);
    if (top && found.roots[0].fragment === [...found.operators.values()].map(({ fragment }) => fragment).sort()[0]) {
      this.drawResult(top, layers);
    }
  }

  /** @param {Spot} spot
   *  @param {Scene["layers"]} layers */
  drawResult({ x, y }, { lines }) {
    const middle = x + NODE.width / 2;
    const text = shape("text", { x: middle + 10, y: y - 52, class: "result-text" });
    lines.append(
      shape("path", { d: `M${middle} ${y}V${y - 62}`, class: "edge" }),
      shape("path", { d: `M${middle - 5} ${y - 58}l5 -9 5 9z`, class: "arrow" }),
      text,
    );
    this.live.push(() => {
      text.textContent = this.result ?? "";
    });
  }

  /** @param {Operator} operator
   *  @param {Spot} spot
   *  @param {Scene} scene */
  drawOperator({ site, entity, fragment, line, explained, fed, consumers }, { x, y }, { layers, reported }) {
    const job = explained && reported.find(site, "job", fragment); // what runs as a whole: at the static engine
    const numbers = shape("text", { x: x + 40, y: y + 54, class: "numbers" });
    const holds = belongings(reported, site, entity).synopses.length;
    const { verb, rest } = named(line);
    const mark = shape(
      "g",
      { class: `operator${explained ? " explained" : ""}${fed ? " fed" : ""}` },
      shape("rect", { x, y, width: NODE.width, height: NODE.height, rx: 7 }),
      shape("text", { x: x + 20, y: y + 39, class: "sign", "text-anchor": "middle" }, signOf(line)),
      shape("text", { x: x + 40, y: y + 19, class: "verb" }, cut(verb, 20)),
      shape("text", { x: x + 40, y: y + 37, class: "line" }, cut(rest, LETTERS)),
      hasWindow(line) && panes(x + NODE.width - 24, y + 8),
      numbers,
      shape("title", {}, fed ? `${line}\nThis runs for run ${fed}, which feeds this query.` : line),
    );
    layers.nodes.append(
      this.pick(mark, job ? { site, kind: "job", entity: fragment } : { site, kind: "operator", entity }, line),
    );
    this.live.push((now) => {
      /** @param {string} property */
      const value = (property) => now.value(site, "operator", entity, property);
      const selectivity = value("selectivity");
      const busy = holds < 2 ? value("us_per_row") : null;
      const word = busy === null && holds < 2 ? "selectivity" : "sel";
      const whole =
        job && !consumers.length ? `${number(now.value(site, "job", fragment, "last_ms"))} ms a run` : "as planned";
      numbers.textContent = explained
        ? fed
          ? cut(`fed by run ${fed}`, LETTERS)
          : whole
        : [selectivity !== null && `${word} ${number(selectivity)}`, busy !== null && `${number(busy)} µs/row`]
            .filter(Boolean)
            .join(" · ") || entity;
      mark.classList.toggle("busy", (value("rows_out_per_s") ?? 0) > 0);
    });
  }

  /** From an operator up to its consumer, with what flows and what waits.
   *  @param {Operator} to
   *  @param {number} port
   *  @param {Operator} from
   *  @param {Scene} scene */
  drawEdge(to, port, from, { at, layers, reported }) {
    const { site } = to;
    const [below, above] = [at.get(`${site} ${from.entity}`), at.get(`${site} ${to.entity}`)];
    if (!below || !above) return;
    const [x1, y1, y2] = [below.x + NODE.width / 2, below.y, above.y + NODE.height];
    const x2 = above.x + NODE.width * ((port + 1) / (to.feeding.length + 1));
    const bend = (y1 + y2) / 2;
    const rate = shape("text", { x: x1 + 10, y: y1 - 5, class: "rate" });
    const path = shape("path", { d: `M${x1} ${y1}C${x1} ${bend} ${x2} ${bend} ${x2} ${y2}`, class: "edge" });
    layers.lines.append(path, rate);
    this.live.push((now) => flow(path, rate, now.value(site, "operator", from.entity, "rows_out_per_s")));
    const entity = `${from.entity}-${to.number}.${port}`;
    const queue = reported
      .of(site, "queue")
      .find((found) => found.entity === entity || found.entity === `${from.entity}-${to.entity}.${port}`);
    if (queue) this.drawQueue(queue, (x1 + x2) / 2, bend, layers.nodes);
  }

  /** @param {Entity} queue
   *  @param {number} x
   *  @param {number} y
   *  @param {Element} layer */
  drawQueue({ site, entity }, x, y, layer) {
    const text = shape("text", { x: x - 13, y: y + 4, class: "waiting-rows", "text-anchor": "end" });
    const mark = shape(
      "g",
      { class: "queue" },
      shape("rect", { x: x - 30, y: y - 13, width: 42, height: 26, class: "hit" }),
      ladder(x, y),
      text,
      shape("title", {}, `Queue ${entity}`),
    );
    layer.append(this.pick(mark, { site, kind: "queue", entity }, `queue ${entity}`));
    this.live.push((now) => {
      const rows = now.value(site, "queue", entity, "rows");
      text.textContent = rows === null ? "" : number(rows);
      mark.classList.toggle("filled", rows !== null && rows > 0);
    });
  }

  /** @param {Reporter} synopsis
   *  @param {Spot} spot
   *  @param {number} index
   *  @param {Map<string, Spot>} storeAt
   *  @param {Scene["layers"]} layers */
  drawSynopsis(synopsis, { x, y }, index, storeAt, layers) {
    const { site, entity } = synopsis;
    const [left, top] = [x + NODE.width - 64 - index * 64, y + NODE.height - 9];
    const store = storeAt.get(storeOf(synopsis) ?? "");
    const text = shape("text", { x: left + 20, y: top + 14, class: "held" });
    const mark = shape(
      "g",
      { class: store ? "synopsis stub" : "synopsis" },
      shape("rect", { x: left, y: top, width: 60, height: 19, rx: 4 }),
      magnifier(left + 4, top + 4),
      text,
      shape("title", {}, store ? `Synopsis ${entity}, a stub of store ${storeOf(synopsis)}` : `Synopsis ${entity}`),
    );
    layers.nodes.append(this.pick(mark, { site, kind: "synopsis", entity }, `synopsis ${entity}`));
    if (store) {
      const [from, to] = [left + 30, store.x + STORE_SIZE.width / 2];
      layers.lines.append(
        shape("path", {
          d: `M${from} ${top + 19}C${from} ${top + 70} ${to} ${store.y - 40} ${to} ${store.y}`,
          class: "stub-line",
        }),
      );
    }
    this.live.push((now) => {
      text.textContent = number(now.value(site, "synopsis", entity, "rows"));
    });
  }

  /** @param {string} site
   *  @param {string} entity
   *  @param {Spot} spot
   *  @param {Element} layer */
  drawStore(site, entity, { x, y }, layer) {
    const text = shape("text", { x: x + 26, y: y + 22, class: "held" });
    const mark = shape(
      "g",
      { class: "store" },
      shape("rect", { x, y, width: STORE_SIZE.width, height: STORE_SIZE.height, rx: 5 }),
      magnifier(x + 8, y + 11),
      text,
      shape("title", {}, `Store ${entity}`),
    );
    layer.append(this.pick(mark, { site, kind: "store", entity }, `store ${entity}`));
    this.live.push((now) => {
      text.textContent = `${entity}: ${shown("rows", now.value(site, "store", entity, "rows"))}`;
    });
  }

  /** @param {string} site */
  show(site) {
    this.wanted.add(site);
    this.signature = "";
    this.shown?.();
  }

  /** From a fragment's last operator to the site that reads it.
   *  @param {Operator | null} from
   *  @param {Operator} to
   *  @param {string} fragment
   *  @param {Scene} scene */
  drawCrossing(from, to, fragment, { at, layers }) {
    const above = at.get(`${to.site} ${to.entity}`);
    if (!above) return;
    const x2 = above.x + NODE.width / 2;
    const y2 = above.y + NODE.height;
    if (!from) {
      layers.lines.append(
        shape("path", { d: `M${x2} ${y2}v16`, class: "edge missing" }),
        shape("text", { x: x2 + 8, y: y2 + 16, class: "rate" }, `${fragment}: not reported`),
      );
      return;
    }
    const below = at.get(`${from.site} ${from.entity}`);
    if (!below) return;
    const [x1, y1] = [below.x + NODE.width / 2, below.y];
    const out = y1 - OUTSIDE; // above the box of its site
    const path = shape("path", {
      d: `M${x1} ${y1}V${out}C${x1} ${out - 44} ${x2} ${y2 + 52} ${x2} ${y2}`,
      class: from.fed ? "edge crossing fed" : "edge crossing",
    });
    const rate = shape("text", { x: x1 + 9, y: out + 4, class: "rate" });
    layers.lines.append(path, rate);
    if (from.fed) rate.textContent = `run ${from.fed}`;
    else this.live.push((now) => flow(path, rate, now.value(from.site, "operator", from.entity, "rows_out_per_s")));
    const channel = `to ${to.site}`;
    layers.nodes.append(
      this.pick(
        shape(
          "g",
          { class: "channel" },
          shape("circle", { cx: x1, cy: out, r: 5 }),
          shape("circle", { cx: x1, cy: out, r: 12, class: "hit" }),
          shape("title", {}, `Channel from ${from.site} ${channel}`),
        ),
        { site: from.site, kind: "channel", entity: channel },
        `channel from ${from.site} ${channel}`,
      ),
    );
  }

  /** Make an element something that can be chosen.
   *  @template {SVGElement} E
   *  @param {E} element
   *  @param {Entity} entity
   *  @param {string} label
   *  @returns {E} */
  pick(element, entity, label) {
    const key = keyOf(entity.site, entity.kind, entity.entity);
    for (const [name, value] of Object.entries({
      tabindex: 0,
      role: "button",
      "aria-label": `${label} at ${entity.site}`,
      "data-key": key,
    })) {
      element.setAttribute(name, String(value));
    }
    act(element, () => this.picked(entity));
    if (!this.marks.has(key)) this.marks.set(key, element);
    return element;
  }

  /** @param {Entity | null} entity */
  select(entity) {
    this.selected = entity;
    const key = entity && keyOf(entity.site, entity.kind, entity.entity);
    for (const [known, element] of this.marks) {
      element.classList.toggle("chosen", known === key);
      element.setAttribute("aria-pressed", String(known === key));
    }
  }

  clear() {
    this.signature = "";
    this.live = [];
    this.marks.clear();
    this.svg.replaceChildren();
    this.camera.reset();
  }
}
