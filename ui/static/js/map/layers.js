// The live layers: every row the map shows comes from a standing query, over one event stream.
import { whileSeen } from "../while_seen.js";

const KEYS = {
  seats: ["mid"],
  lights: ["rid"],
  temperatures: ["rid"],
  reservations: ["rid", "starts", "title"],
  loads: ["mid"],
  energy: ["mid"],
  tasks: ["mid", "task"],
  visitors: ["tag"],
  links: ["src", "dst"],
  regions: ["sensorid"],
  free: ["mid"],
};

export class LiveLayers {
  /** @param changed called with the name of what has changed: a layer, "sites", "layers", "connection" */
  constructor(changed) {
    this.changed = changed;
    this.tables = new Map(); // layer -> Map(key -> row)
    this.states = {}; // layer -> {status, error, waiting_for}
    this.sites = new Map();
    this.connected = false;
    whileSeen(
      () => this.connect(),
      () => this.rest(),
    );
  }

  /** Rows of a layer by key: "a" or "a|b". */
  rows(layer) {
    if (!this.tables.has(layer)) this.tables.set(layer, new Map());
    return this.tables.get(layer);
  }

  /** "live", "stale" or "unknown": how fresh what a gateway says is. */
  freshness(gateway) {
    const site = this.sites.get(gateway);
    return site && this.connected ? site.freshness : this.connected ? "unknown" : "stale";
  }

  connect() {
    const source = new EventSource("/api/map/events");
    this.source = source;
    source.addEventListener("layer", (event) => this.apply(JSON.parse(event.data)));
    source.addEventListener("layers", (event) => {
      this.states = JSON.parse(event.data);
      this.changed("layers");
    });
    source.addEventListener("sites", (event) => {
      this.sites = new Map(JSON.parse(event.data).map((site) => [site.site, site]));
      this.connected = true;
      this.changed("sites");
    });
    source.addEventListener("error", () => {
      this.connected = false;
      this.changed("connection");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.source === source && this.connect(), 2000);
    });
  }

  rest() {
    this.source.close();
    this.source = null;
  }

  apply({ layer, snapshot, changes }) {
    const table = this.rows(layer);
    const columns = KEYS[layer];
    if (!columns) return;
    if (snapshot) table.clear();
    for (const { diff, row } of changes) {
      const key = columns.map((column) => row[column]).join("|");
      // A new value may come before the old one is taken back: only the value taken back goes.
      if (diff > 0) table.set(key, row);
      else if (JSON.stringify(table.get(key)) === JSON.stringify(row)) table.delete(key);
    }
    this.changed(layer);
  }
}
