// Desks with machines: free, idle, in use; and visitors with badges.
import { mark, setClasses } from "./plan.js";

/** @import { Machine } from "./site.js" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Choice, Plan } from "./plan.js" */

const BUSY = 0.6;

export class Desks {
  /** @param {Plan} plan
   *  @param {LiveLayers} live
   *  @param {(wanted: Choice) => void} choose */
  constructor(plan, live, choose) {
    this.plan = plan;
    this.live = live;
    /** @type {Map<string, L.Marker>} */
    this.markers = new Map();
    /** @type {Map<string, { marker: L.Marker, group?: L.LayerGroup, detector?: string }>} */
    this.visitors = new Map();
    for (const machine of plan.site.machines.values()) {
      const marker = mark(machine.at, "desk", { size: 16, label: machine.id });
      marker.on("click", () => choose({ machine: machine.id }));
      marker.on("keypress", (event) => event.originalEvent.key === "Enter" && choose({ machine: machine.id }));
      marker.addTo(plan.group(machine.level, "desks"));
      this.markers.set(machine.id, marker);
    }
  }

  /** "taken", "busy" (nobody sits there, but it works hard), "free", "idle", "stale" or "unknown".
   *  @param {Machine} machine
   *  @returns {keyof typeof STATES} */
  state(machine) {
    if (this.live.freshness(machine.gateway) !== "live") return "stale";
    const seat = this.live.rows("seats").get(machine.id);
    if (!seat) return "unknown";
    if (seat.taken) return "taken";
    if ((this.live.rows("loads").get(machine.id)?.cpu ?? 0) > BUSY) return "busy";
    return this.live.rows("free").has(machine.id) ? "free" : "idle";
  }

  /** @param {string} [chosen]
   *  @param {string | null} [target] */
  update(chosen, target) {
    for (const [id, marker] of this.markers) {
      const machine = this.plan.site.machines.get(id);
      if (machine?.level !== this.plan.level) continue;
      const state = this.state(machine);
      setClasses(marker, "desk", [
        `is-${state}`,
        ...(chosen === id ? ["chosen"] : []),
        ...(target === id ? ["target"] : []),
        ...(machine.is_host ? ["host"] : []),
      ]);
      const element = marker.getElement();
      const label = `${id}: ${STATES[state]}`;
      if (element && element.getAttribute("aria-label") !== label) {
        element.setAttribute("aria-label", label);
        element.title = label;
      }
    }
    this.updateVisitors();
  }

  updateVisitors() {
    const seen = this.live.rows("visitors");
    for (const [tag, visitor] of this.visitors) {
      if (!seen.has(tag)) {
        visitor.marker.remove();
        visitor.group?.removeLayer(visitor.marker);
        this.visitors.delete(tag);
      }
    }
    for (const [tag, row] of seen) {
      const detector = this.plan.site.sensors.get(row.detector);
      if (!detector) continue;
      let visitor = this.visitors.get(tag);
      if (!visitor) {
        visitor = {
          marker: mark(detector.at, "visitor", {
            size: 22,
            label: tag,
            text: tag.replace(/^\D+/, ""),
            interactive: false,
            z: 800,
          }),
        };
        this.visitors.set(tag, visitor);
      }
      const group = this.plan.group(detector.level, "visitors");
      if (visitor.group !== group) {
        visitor.group?.removeLayer(visitor.marker);
        visitor.group = group;
        group.addLayer(visitor.marker);
      }
      if (visitor.detector !== row.detector) visitor.marker.setLatLng(detector.at);
      visitor.detector = row.detector;
    }
  }
}

export const STATES = {
  free: "free, in an open room",
  idle: "free, but the room is dark or reserved",
  taken: "in use: somebody sits at it",
  busy: "in use: its load is high",
  stale: "unknown: its gateway is offline",
  unknown: "no data yet",
};
