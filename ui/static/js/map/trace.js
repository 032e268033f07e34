// A recorded network: nodes, links that come and go, the cheapest path between two nodes.
import { make, post } from "../api.js";
import { drawnRoute, mark, setClasses } from "./plan.js";
import { QueryRows } from "./subscription.js";
import { byId } from "../elements.js";

/** @import { PathRow } from "../payloads.d.ts" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Plan } from "./plan.js" */
/** @import { Told } from "./subscription.js" */

/** Whether a row has a path.
 *  @param {PathRow} row
 *  @returns {row is PathRow & { path: string }} */
const isPath = (row) => row.path !== null;

export class Trace {
  /** @param {Plan} plan
   *  @param {LiveLayers} live */
  constructor(plan, live) {
    this.plan = plan;
    this.live = live;
    /** @type {Map<string, L.Marker>} */
    this.markers = new Map();
    /** @type {L.Polyline | null} */
    this.route = null;
    /** @type {string[]} */
    this.path = [];
    /** @type {QueryRows<PathRow> | null} */
    this.rows = null;
    this.start = byId("path-from", HTMLSelectElement);
    this.end = byId("path-to", HTMLSelectElement);
    for (const mote of plan.site.motes.values()) {
      const marker = mark(mote.at, "node", { size: 24, label: `node ${mote.id}`, text: mote.id });
      marker.on("click", () => this.click(mote.id));
      marker.on("keypress", (event) => event.originalEvent.key === "Enter" && this.click(mote.id));
      marker.addTo(plan.group(mote.level, "nodes"));
      this.markers.set(mote.id, marker);
    }
    for (const id of ["path-from", "path-to"]) byId(id).addEventListener("change", () => this.ask());
    byId("path-form").addEventListener("submit", (event) => event.preventDefault());
    byId("path-clear").addEventListener("click", () => {
      byId("path-form", HTMLFormElement).reset();
      this.ask();
    });
  }

  /** @param {string} node */
  click(node) {
    const [from, to] = [this.start, this.end];
    if (!from.value || to.value) {
      from.value = node;
      to.value = "";
    } else if (from.value !== node) to.value = node;
    this.ask();
  }

  ask() {
    const [from, to] = [this.start.value, this.end.value];
    this.rows?.close();
    this.clear();
    byId("path-clear").hidden = !(from || to);
    byId("path-answer").replaceChildren();
    this.update();
    if (!from || !to) return;
    this.say("Computing the path…");
    this.rows = new QueryRows(
      () => post("/api/path", { from, to }),
      (answer) => this.show(answer, from, to),
    );
  }

  /** @param {string} text */
  say(text) {
    byId("path-answer").replaceChildren(make("p", { class: "quiet" }, text));
  }

  clear() {
    this.route?.remove();
    this.route = null;
    this.path = [];
  }

  /** @param {Told<PathRow>} told
   *  @param {string} from
   *  @param {string} to */
  show({ rows, query, error }, from, to) {
    this.clear();
    const row = rows.find(isPath);
    const wrong = error?.message ?? query?.error;
    if (wrong) this.say(wrong);
    else if (row) this.draw(row);
    else if (query?.status === "starting") this.say("Computing the path…");
    else this.say(`Node ${to} is not reachable from ${from} now.${this.withoutCosts()}`);
    this.update();
  }

  withoutCosts() {
    const links = [...this.live.rows("links").values()];
    return links.some(({ cost }) => cost === null) ? " Links without a cost are on no path." : "";
  }

  /** @param {PathRow & { path: string }} row */
  draw(row) {
    this.path = row.path.split(">");
    const places = this.path.map((id) => this.plan.site.motes.get(id)?.at).filter((at) => at !== undefined);
    this.route = drawnRoute(places).addTo(this.plan.map);
    const hops = this.path.length - 1;
    byId("path-answer").replaceChildren(
      make(
        "p",
        { class: "found" },
        make("strong", {}, row.cost.toFixed(2)),
        ` expected transmissions, ${hops} ${hops === 1 ? "hop" : "hops"}`,
      ),
      make("p", { class: "steps mono" }, this.path.join(" → ")),
    );
  }

  update() {
    const linked = new Set([...this.live.rows("links").values()].flatMap(({ src, dst }) => [src, dst]));
    const ends = [this.start.value, this.end.value];
    for (const [id, marker] of this.markers) {
      setClasses(marker, "node", [
        linked.has(id) ? "linked" : "isolated",
        ...(this.path.includes(id) ? ["on-path"] : []),
        ...(ends.includes(id) ? ["chosen"] : []),
      ]);
    }
  }
}
