// A recorded network: nodes, links that come and go, the cheapest path between two nodes.
import { make, post } from "../api.js";
import { mark, setClasses } from "./plan.js";
import { QueryRows } from "./subscription.js";

const byId = (id) => document.getElementById(id);

export class Trace {
  constructor(plan, live) {
    this.plan = plan;
    this.live = live;
    this.markers = new Map();
    this.route = null;
    this.path = [];
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
      byId("path-form").reset();
      this.ask();
    });
  }

  click(node) {
    const [from, to] = [byId("path-from"), byId("path-to")];
    if (!from.value || to.value) {
      from.value = node;
      to.value = "";
    } else if (from.value !== node) to.value = node;
    this.ask();
  }

  ask() {
    const [from, to] = [byId("path-from").value, byId("path-to").value];
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

  say(text) {
    byId("path-answer").replaceChildren(make("p", { class: "quiet" }, text));
  }

  clear() {
    this.route?.remove();
    this.route = null;
    this.path = [];
  }

  show({ rows, query, error }, from, to) {
    this.clear();
    const row = rows.find((candidate) => candidate.path !== null);
    if (error || query?.error) this.say(error ? error.message : query.error);
    else if (row) this.draw(row);
    else if (query?.status === "starting") this.say("Computing the path…");
    else this.say(`Node ${to} is not reachable from ${from} now.`);
    this.update();
  }

  draw(row) {
    this.path = row.path.split(">");
    const places = this.path.map((id) => this.plan.site.motes.get(id)?.at).filter(Boolean);
    this.route = L.polyline
      .antPath(places, {
        color: "#0b6fd6",
        pulseColor: "#ffffff",
        weight: 5,
        opacity: 0.9,
        delay: 900,
        dashArray: [10, 22],
        interactive: false,
        className: "route",
      })
      .addTo(this.plan.map);
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
    const ends = [byId("path-from").value, byId("path-to").value];
    for (const [id, marker] of this.markers) {
      setClasses(marker, "node", [
        linked.has(id) ? "linked" : "isolated",
        ...(this.path.includes(id) ? ["on-path"] : []),
        ...(ends.includes(id) ? ["chosen"] : []),
      ]);
    }
  }
}
