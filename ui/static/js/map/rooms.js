// Rooms: coloured by light, reservation and freshness; names and temperatures.
import { make } from "../api.js";

/** @import { SiteFeature } from "../payloads.d.ts" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { Space } from "./site.js" */

const LETTER = 6.6; // pixels, mean width

export class Rooms {
  /** @param {Plan} plan
   *  @param {LiveLayers} live
   *  @param {(wanted: Choice) => void} choose */
  constructor(plan, live, choose) {
    this.plan = plan;
    this.live = live;
    /** @type {Map<string, { layer: L.Path, base: string | undefined }>} */
    this.shapes = new Map(); // room -> {layer, base}
    /** @type {Map<string, { room: Space, label: HTMLElement, celsius: HTMLElement }>} */
    this.labels = new Map(); // room -> element
    for (const drawn of plan.drawn.values()) {
      drawn.eachLayer((collection) =>
        /** @type {L.FeatureGroup} */ (collection).eachLayer((one) => {
          const layer = /** @type {L.Path & { feature: SiteFeature }} */ (one);
          const room = plan.site.spaces.get(layer.feature.id);
          if (!room || layer.feature.properties.feature_type === "opening") return;
          this.shapes.set(room.id, { layer, base: layer.options.className });
          layer.on("click", () => choose({ room: room.id }));
          this.addLabel(room);
        }),
      );
    }
    plan.map.on("zoomend", () => this.fitLabels());
    this.fitLabels();
  }

  /** Write names as large rooms allow: the whole name, the id, or nothing. */
  fitLabels() {
    const { scale } = this.plan;
    for (const [id, { room, label, celsius }] of this.labels) {
      const { name, width, height } = room;
      /** @param {string} text
       *  @param {number} pixels */
      const fits = (text, pixels) => text.length * pixels < width * scale - 4;
      label.textContent = height * scale < 16 ? "" : fits(name, LETTER) ? name : fits(id, LETTER) ? id : "";
      celsius.hidden = !fits("00.0 °C", LETTER - 1) || height * scale < (label.textContent ? 32 : 16);
    }
  }

  /** @param {Space} room */
  addLabel(room) {
    if (room.kind === "outside") return;
    const [label, celsius] = [make("b", {}, room.name), make("i", {})];
    this.labels.set(room.id, { room, label, celsius });
    const element = make("div", {}, label, celsius);
    const icon = L.divIcon({ className: `room-label kind-${room.kind}`, html: element, iconSize: [0, 0] });
    L.marker(room.at, { icon, interactive: false, keyboard: false, zIndexOffset: -1000 }).addTo(
      this.plan.group(room.level, "names"),
    );
  }

  /** @param {string} room */
  reservations(room) {
    return [...this.live.rows("reservations").values()].filter((row) => row.rid === room);
  }

  /** "open", "dark", "reserved", "stale", "unknown" or, where nothing senses, "plain".
   *  @param {Space} room
   *  @returns {"open" | "dark" | "reserved" | "stale" | "unknown" | "plain"} */
  state(room) {
    if (!this.plan.site.sensed.has(`light:${room.id}`)) return "plain";
    const freshness = this.live.freshness(room.gateway);
    if (freshness !== "live") return "stale";
    const light = this.live.rows("lights").get(room.id);
    if (!light) return "unknown";
    if (this.reservations(room.id).length) return "reserved";
    return light.status === "open" ? "open" : "dark";
  }

  /** @param {string} [chosen] */
  update(chosen) {
    for (const [id, { layer, base }] of this.shapes) {
      const room = this.plan.site.spaces.get(id);
      const element = layer.getElement();
      if (room?.level !== this.plan.level || !element) continue;
      const wanted = `${base} is-${this.state(room)}${chosen === id ? " chosen" : ""} leaflet-interactive`;
      if (element.getAttribute("class") !== wanted) element.setAttribute("class", wanted);
      this.showTemperature(id);
    }
  }

  /** @param {string} room */
  showTemperature(room) {
    const celsius = this.live.rows("temperatures").get(room)?.celsius ?? null;
    const shown = celsius === null ? "" : `${celsius.toFixed(1)} °C`;
    const label = this.labels.get(room)?.celsius;
    if (label && label.textContent !== shown) label.textContent = shown;
  }
}
