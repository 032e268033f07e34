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
  const places = { space: "spaces", outside: "spaces", machine: "machines", sensor: "sensors", mote: "motes", routing_point: "points" };
  for (const { geometry, properties } of file.features) {
    const type = properties.feature_type;
    if (type === "edge") {
      site.edges.set(`${properties.src}>${properties.dst}`, properties);
      site.edges.set(`${properties.dst}>${properties.src}`, properties);
    } else if (places[type]) {
      const at = geometry.type === "Point" ? [geometry.coordinates[1], geometry.coordinates[0]] : middle(geometry);
      site[places[type]].set(properties.id, { ...properties, at });
      if (type === "sensor") site.sensed.add(`${properties.kind}:${properties.mid || properties.room}`);
    }
  }
  return site;
}

/** Where to write a shape's name: the middle of its bounds, which is inside rectangles. */
function middle(geometry) {
  const ring = geometry.type === "Polygon" ? geometry.coordinates[0] : geometry.coordinates[0][0];
  const xs = ring.map((p) => p[0]);
  const ys = ring.map((p) => p[1]);
  return [(Math.min(...ys) + Math.max(...ys)) / 2, (Math.min(...xs) + Math.max(...xs)) / 2];
}
