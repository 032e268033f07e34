// Radio: motes, links coloured by cost, contiguous hot regions.
import { mark } from "./plan.js";
import { spotsOf } from "./positions.js";

/** @import { LiveLayers } from "./layers.js" */
/** @import { Plan } from "./plan.js" */
/** @import { Spot } from "./positions.js" */
/** @import { Sensor } from "./site.js" */

/** Expected transmissions as "good", "fair" or "poor".
 *  @param {number} cost */
export function quality(cost) {
  return cost < 1.15 ? "good" : cost < 1.5 ? "fair" : "poor";
}

/** The fewest, shortest joins that show the sensors hang together: Prim's spanning tree.
 *  @param {Sensor[]} sensors
 *  @returns {[Sensor, Sensor][]} */
function joins(sensors) {
  /** @param {Sensor} a
   *  @param {Sensor} b */
  const metres = (a, b) => Math.hypot(a.at[0] - b.at[0], a.at[1] - b.at[1]);
  const [joined, left] = [[sensors[0]], sensors.slice(1)];
  /** @type {[Sensor, Sensor][]} */
  const found = [];
  while (left.length) {
    const pairs = left.flatMap((b) => joined.map((a) => /** @type {[Sensor, Sensor]} */ ([a, b])));
    const [a, b] = pairs.reduce((best, pair) => (metres(...pair) < metres(...best) ? pair : best));
    left.splice(left.indexOf(b), 1);
    joined.push(b);
    found.push([a, b]);
  }
  return found;
}

export class Radio {
  /** @param {Plan} plan
   *  @param {LiveLayers} live */
  constructor(plan, live) {
    this.plan = plan;
    this.live = live;
    /** @type {Map<string, { line: L.Polyline, group: L.LayerGroup, quality: string }>} */
    this.lines = new Map(); // "a|b" with a < b -> {line, group, quality}
    /** @type {{ group: L.LayerGroup, shape: L.Layer }[]} */
    this.regions = [];
    /** @type {Map<string, Spot>} */
    this.places = new Map(); // device -> where a relation says that it is
    /** @type {{ group: L.LayerGroup, shape: L.Layer }[]} */
    this.devices = [];
  }

  /** @param {Set<string>} news */
  update(news) {
    if (news.has("places")) this.updatePlaces();
    if (["links", "declared", "places"].some((part) => news.has(part))) this.updateLinks();
    if (news.has("regions")) this.updateRegions();
  }

  /** Devices that are not in the plan's file, but in a table. */
  updatePlaces() {
    const rows = [...this.live.rows("places").values()].filter(({ id }) => !this.plan.site.motes.has(id));
    this.places = spotsOf(new Map(rows.map((row) => [row.id, row])), this.plan);
    for (const { group, shape } of this.devices) group.removeLayer(shape);
    this.devices = [...this.places].map(([id, { at, level }]) => {
      const group = this.plan.group(level, "links");
      const name = document.createElement("span");
      name.textContent = id; // a string would be taken for HTML
      const shape = L.circleMarker(at, { radius: 4, className: "mote" }).bindTooltip(name);
      group.addLayer(shape);
      return { group, shape };
    });
    for (const { group, line } of this.lines.values()) group.removeLayer(line);
    this.lines.clear();
  }

  /** Draw each pair of motes once; the dearer direction decides the colour. A pair without costs
   *  has none. */
  updateLinks() {
    /** @type {Map<string, number | null>} */
    const pairs = new Map();
    const rows = (/** @type {"links" | "declared"} */ layer) => this.live.rows(layer).values();
    for (const { src, dst, cost } of [...rows("links"), ...rows("declared")]) {
      const key = src < dst ? `${src}|${dst}` : `${dst}|${src}`;
      const known = pairs.get(key) ?? null;
      pairs.set(key, known === null || cost === null ? (known ?? cost) : Math.max(known, cost));
    }
    for (const [key, drawn] of this.lines) {
      if (!pairs.has(key)) {
        drawn.group.removeLayer(drawn.line);
        this.lines.delete(key);
      }
    }
    for (const [key, cost] of pairs) this.drawLink(key, cost);
    this.sayWhatIsMissing();
  }

  sayWhatIsMissing() {
    const state = document.getElementById("links-state");
    if (!state) return; // a trace has no declared links
    const { moreLinks } = this.live;
    state.hidden = !moreLinks;
    const text = moreLinks ? `${moreLinks} more ${moreLinks === 1 ? "link is" : "links are"} not drawn` : "";
    if (state.textContent !== text) state.textContent = text;
  }

  /** @param {string} key
   *  @param {number | null} cost */
  drawLink(key, cost) {
    const [a, b] = key.split("|").map((id) => this.plan.site.motes.get(id) ?? this.places.get(id));
    if (!a || !b) return;
    const wanted = cost === null ? "" : quality(cost);
    const known = this.lines.get(key);
    if (known?.quality === wanted) return;
    if (known) known.group.removeLayer(known.line);
    const group = this.plan.group(Math.min(a.level, b.level), "links");
    const line = L.polyline([a.at, b.at], {
      className: `link ${wanted}${a.level === b.level ? "" : " between"}`,
      interactive: false,
    });
    group.addLayer(line);
    this.lines.set(key, { line, group, quality: wanted });
  }

  addMotes() {
    for (const mote of this.plan.site.motes.values()) {
      L.circleMarker(mote.at, { radius: 3, className: "mote", interactive: false }).addTo(
        this.plan.group(mote.level, "links"),
      );
    }
  }

  updateRegions() {
    for (const { group, shape } of this.regions) group.removeLayer(shape);
    this.regions = [];
    /** @type {Map<string, Sensor[]>} */
    const byRegion = new Map();
    for (const { sensorid, region } of this.live.rows("regions").values()) {
      const sensor = this.plan.site.sensors.get(sensorid);
      if (!sensor) continue;
      byRegion.set(region, [...(byRegion.get(region) ?? []), sensor]);
    }
    for (const sensors of byRegion.values()) this.drawRegion(sensors);
  }

  /** @param {Sensor[]} sensors */
  drawRegion(sensors) {
    /** @param {L.Layer} shape
     *  @param {number} level */
    const add = (shape, level) => {
      const group = this.plan.group(level, "regions");
      group.addLayer(shape);
      this.regions.push({ group, shape });
    };
    for (const sensor of sensors) {
      add(L.circle(sensor.at, { radius: 3.2, className: "region", interactive: false }), sensor.level);
    }
    for (const [a, b] of joins(sensors)) {
      add(L.polyline([a.at, b.at], { className: "region-join", interactive: false }), a.level);
    }
    const first = sensors.reduce((a, b) => (a.at[0] > b.at[0] ? a : b));
    add(mark(first.at, "region-label", { size: 0, text: `hot: ${sensors.length}`, interactive: false }), first.level);
  }
}
