// The site's features, by type and id.
import { get } from "../api.js";

/** @import { AreaGeometry, EdgeProperties, MachineProperties, Point } from "../payloads.d.ts" */
/** @import { PointGeometry, SensorProperties, SiteFeature, SpaceProperties } from "../payloads.d.ts" */

/** @typedef {Point} LatLng y, x: as Leaflet has them */
/** @typedef {{ at: LatLng, id: string, level: number, simulated?: boolean }} Place */
/** @typedef {Place & SpaceProperties & { width: number, height: number }} Space */
/** @typedef {Place & MachineProperties} Machine */
/** @typedef {Place & SensorProperties} Sensor */
/** @typedef {Place & { room: string | null }} Node */
/** @typedef {{
 *    name: string, levels: { ordinal: number, name: string }[], bounds: LatLng[],
 *    spaces: Map<string, Space>, machines: Map<string, Machine>, sensors: Map<string, Sensor>,
 *    motes: Map<string, Node>, points: Map<string, Node>, edges: Map<string, EdgeProperties>,
 *    sensed: Set<string> }} Site */

/** Load the map file.
 *  @returns {Promise<Site>} `edges` by both their ends, "a>b"; `sensed`: "light:room", "seat:machine" */
export async function loadSite() {
  const file = await get("/api/site.geojson");
  /** @type {Site} */
  const site = {
    name: file.pando.name,
    levels: file.pando.levels,
    bounds: file.pando.bounds.map(([x, y]) => [y, x]),
    spaces: new Map(),
    machines: new Map(),
    sensors: new Map(),
    motes: new Map(),
    points: new Map(),
    edges: new Map(),
    sensed: new Set(),
  };
  for (const feature of file.features) add(site, feature);
  return site;
}

/** @param {Site} site
 *  @param {SiteFeature} feature */
function add(site, { geometry, properties }) {
  const { feature_type: type, id } = properties;
  if (type === "edge") {
    site.edges.set(`${properties.src}>${properties.dst}`, properties);
    site.edges.set(`${properties.dst}>${properties.src}`, properties);
  } else if (type === "space" || type === "outside") {
    site.spaces.set(id, { ...properties, ...extent(geometry) });
  } else if (geometry.type === "Point") {
    /** @type {LatLng} */
    const at = [geometry.coordinates[1], geometry.coordinates[0]];
    if (type === "machine") site.machines.set(id, { ...properties, at });
    if (type === "mote") site.motes.set(id, { ...properties, at });
    if (type === "routing_point") site.points.set(id, { ...properties, at });
    if (type === "sensor") {
      site.sensors.set(id, { ...properties, at });
      site.sensed.add(`${properties.kind}:${properties.mid || properties.room}`);
    }
  }
}

/** What of a site is simulated, in a sentence; empty where nothing is.
 *  @param {Site} site */
export function simulatedWords(site) {
  /** @param {Map<string, Place>} places */
  const count = (places) => [...places.values()].filter((place) => place.simulated).length;
  const [machines, sensors] = [count(site.machines), count(site.sensors)];
  if (!machines && !sensors) return "";
  const host = [...site.machines.values()].some((machine) => machine.is_host);
  const measured = host ? "; only the load of this computer is measured" : "";
  return `${machines} machines and ${sensors} sensors of this building are simulated${measured}.`;
}

/** The outline of an area, or of its first part.
 *  @param {AreaGeometry | PointGeometry} geometry
 *  @returns {Point[]} */
function ringOf(geometry) {
  if (geometry.type === "Polygon") return geometry.coordinates[0];
  if (geometry.type === "MultiPolygon") return geometry.coordinates[0][0];
  return geometry.type === "Point" ? [geometry.coordinates] : geometry.coordinates;
}

/** Where to write a shape's name, the middle of its bounds, and how wide and high they are.
 *  @param {AreaGeometry | PointGeometry} geometry
 *  @returns {{ at: LatLng, width: number, height: number }} */
function extent(geometry) {
  const ring = ringOf(geometry);
  const xs = ring.map((p) => p[0]);
  const ys = ring.map((p) => p[1]);
  const [west, east, south, north] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { at: [(south + north) / 2, (west + east) / 2], width: east - west, height: north - south };
}
