// The site's features, by type and id.
import { get } from "../api.js";

/** Load the map file: {name, levels, bounds, spaces, machines, sensors, motes, points, edges}. */
export async function loadSite() {
  const file = await get("/api/site.geojson");
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
  const places = {
    space: "spaces",
    outside: "spaces",
    machine: "machines",
    sensor: "sensors",
    mote: "motes",
    routing_point: "points",
  };
  for (const { geometry, properties } of file.features) {
    const type = properties.feature_type;
    if (type === "edge") {
      site.edges.set(`${properties.src}>${properties.dst}`, properties);
      site.edges.set(`${properties.dst}>${properties.src}`, properties);
    } else if (places[type]) {
      const place =
        geometry.type === "Point" ? { at: [geometry.coordinates[1], geometry.coordinates[0]] } : extent(geometry);
      site[places[type]].set(properties.id, { ...properties, ...place });
      if (type === "sensor") site.sensed.add(`${properties.kind}:${properties.mid || properties.room}`);
    }
  }
  return site;
}

/** What of a site is simulated, in a sentence; empty where nothing is. */
export function simulatedWords(site) {
  const count = (places) => [...places.values()].filter((place) => place.simulated).length;
  const [machines, sensors] = [count(site.machines), count(site.sensors)];
  if (!machines && !sensors) return "";
  const host = [...site.machines.values()].some((machine) => machine.is_host);
  return `${machines} machines and ${sensors} sensors of this building are simulated${host ? "; only the load of this computer is measured" : ""}.`;
}

/** Where to write a shape's name, the middle of its bounds, and how wide and high they are. */
function extent(geometry) {
  const ring = geometry.type === "Polygon" ? geometry.coordinates[0] : geometry.coordinates[0][0];
  const xs = ring.map((p) => p[0]);
  const ys = ring.map((p) => p[1]);
  const [west, east, south, north] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return { at: [(south + north) / 2, (west + east) / 2], width: east - west, height: north - south };
}
