// The live layers: every row the map shows comes from a standing query, over one event stream.
import { whileSeen } from "../while_seen.js";

/** @import { Layer, LayerChanges, LayerRows, LayerStates, PlacedOffer, SiteState } from "../payloads.d.ts" */

/** @type {Record<string, string[]>} */
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
  declared: ["src", "dst"],
  regions: ["sensorid"],
  free: ["mid"],
  positions: ["id", "room", "floor", "x", "y", "confidence"],
  places: ["id", "room", "floor", "x", "y", "confidence"],
};

export class LiveLayers {
  /** @param {(what: string) => void} changed called with what has changed: the name of a layer,
   *    "sites", "layers", "offer" (of positions) or "connection"
   *  @param {string} wanted key of the view or query with positions to follow, empty for the first one */
  constructor(changed, wanted) {
    this.changed = changed;
    this.wanted = wanted;
    /** @type {PlacedOffer} */
    this.placed = { offered: [], followed: "", others: 0 };
    /** @type {Map<string, Map<string, any>>} */
    this.tables = new Map(); // layer -> Map(key -> row)
    /** @type {LayerStates} */
    this.states = {}; // layer -> {status, error, waiting_for}
    /** @type {Map<string, SiteState>} */
    this.sites = new Map();
    this.moreLinks = 0; // that are not sent
    this.connected = false;
    /** @type {EventSource | null} */
    this.source = null;
    whileSeen(
      () => this.connect(),
      () => this.rest(),
    );
  }

  /** Rows of a layer by key: "a" or "a|b".
   *  @template {Layer} K
   *  @param {K} layer
   *  @returns {Map<string, LayerRows[K]>} */
  rows(layer) {
    return this.table(layer);
  }

  /** @param {string} layer */
  table(layer) {
    const known = this.tables.get(layer) ?? new Map();
    this.tables.set(layer, known);
    return known;
  }

  /** "live", "stale" or "unknown": how fresh what a gateway says is.
   *  @param {string | null} gateway */
  freshness(gateway) {
    const site = gateway === null ? undefined : this.sites.get(gateway);
    return site && this.connected ? site.freshness : this.connected ? "unknown" : "stale";
  }

  connect() {
    const source = new EventSource(`/api/map/events?positions=${encodeURIComponent(this.wanted)}`);
    this.source = source;
    source.addEventListener("layer", (event) => this.apply(JSON.parse(event.data)));
    source.addEventListener("layers", (event) => {
      this.states = JSON.parse(event.data);
      this.changed("layers");
    });
    source.addEventListener("positions", (event) => {
      this.placed = JSON.parse(event.data);
      this.changed("offer");
    });
    source.addEventListener("sites", (event) => {
      /** @type {SiteState[]} */
      const sites = JSON.parse(event.data);
      this.sites = new Map(sites.map((site) => [site.site, site]));
      this.connected = true;
      this.changed("sites");
    });
    source.addEventListener("error", () => {
      this.connected = false;
      this.changed("connection");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.source === source && this.connect(), 2000);
    });
  }

  /** Follow the positions of another view or query.
   *  @param {string} wanted its key, empty for the first one */
  follow(wanted) {
    this.wanted = wanted;
    if (!this.source) return;
    this.rest();
    this.connect();
  }

  rest() {
    this.source?.close();
    this.source = null;
  }

  /** @param {LayerChanges} news */
  apply({ layer, snapshot, changes, more }) {
    const table = this.table(layer);
    const columns = KEYS[layer];
    if (!columns) return;
    if (snapshot) table.clear();
    if (more !== undefined) this.moreLinks = more;
    for (const { diff, row } of changes) {
      const key = columns.map((column) => row[column]).join("|");
      // A new value may come before the old one is taken back: only the value taken back goes.
      if (diff > 0) table.set(key, row);
      else if (JSON.stringify(table.get(key)) === JSON.stringify(row)) table.delete(key);
    }
    this.changed(layer);
  }
}
