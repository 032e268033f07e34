// Rooms: coloured by light, reservation and freshness; names and temperatures.
import { make } from "../api.js";

const LETTER = 6.6; // pixels, mean width

export class Rooms {
  constructor(plan, live, choose) {
    this.plan = plan;
    this.live = live;
    this.shapes = new Map(); // room -> {layer, base}
    this.labels = new Map(); // room -> element
    for (const drawn of plan.drawn.values()) {
      drawn.eachLayer((collection) =>
        collection.eachLayer((layer) => {
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
    for (const [id, element] of this.labels) {
      const { name, width, height } = this.plan.site.spaces.get(id);
      const fits = (text, pixels) => text.length * pixels < width * scale - 4;
      const [label, celsius] = element.children;
      label.textContent = height * scale < 16 ? "" : fits(name, LETTER) ? name : fits(id, LETTER) ? id : "";
      celsius.hidden = !fits("00.0 °C", LETTER - 1) || height * scale < (label.textContent ? 32 : 16);
    }
  }

  addLabel(room) {
    if (room.kind === "outside") return;
    const element = make("div", {}, make("b", {}, room.name), make("i", {}));
    this.labels.set(room.id, element);
    const icon = L.divIcon({ className: `room-label kind-${room.kind}`, html: element, iconSize: [0, 0] });
    L.marker(room.at, { icon, interactive: false, keyboard: false, zIndexOffset: -1000 }).addTo(
      this.plan.group(room.level, "names"),
    );
  }

  reservations(room) {
    return [...this.live.rows("reservations").values()].filter((row) => row.rid === room);
  }

  /** "open", "dark", "reserved", "stale", "unknown" or, where nothing senses, "plain". */
  state(room) {
    if (!this.plan.site.sensed.has(`light:${room.id}`)) return "plain";
    const freshness = this.live.freshness(room.gateway);
    if (freshness !== "live") return "stale";
    const light = this.live.rows("lights").get(room.id);
    if (!light) return "unknown";
    if (this.reservations(room.id).length) return "reserved";
    return light.status === "open" ? "open" : "dark";
  }

  update(chosen) {
    for (const [id, { layer, base }] of this.shapes) {
      const room = this.plan.site.spaces.get(id);
      const element = layer.getElement();
      if (room.level !== this.plan.level || !element) continue;
      const wanted = `${base} is-${this.state(room)}${chosen === id ? " chosen" : ""} leaflet-interactive`;
      if (element.getAttribute("class") !== wanted) element.setAttribute("class", wanted);
      const celsius = this.live.rows("temperatures").get(id)?.celsius;
      const shown = celsius === undefined || celsius === null ? "" : `${celsius.toFixed(1)} °C`;
      const label = this.labels.get(id);
      if (label && label.lastChild.textContent !== shown) label.lastChild.textContent = shown;
    }
  }
}
