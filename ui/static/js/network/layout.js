// Where to draw nodes: at their places in the building if they have any, else pushed apart by springs.
import { get } from "../api.js";
import { compare } from "../rows_table.js";

/** @typedef {[x: number, y: number]} XY */
/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/** @typedef {Box & { name: string }} LevelBox */
/** @import { Point } from "../payloads.d.ts" */
/** @import { Pair } from "./graph.js" */

const LEVEL_GAP = 0.14; // between two levels, as a share of a level's height
const ROUNDS = 300;

/** Load the places of motes, levels above each other; none without a map.
 *  @returns {Promise<{ places: Map<string, XY>, levels: LevelBox[] }>} */
export async function loadPlaces() {
  const file = await get("/api/site.geojson").catch(() => null);
  const motes = (file?.features ?? []).flatMap(({ geometry, properties }) =>
    properties.feature_type === "mote" && geometry.type === "Point" ? [{ geometry, properties }] : [],
  );
  if (!file || !motes.length) return { places: new Map(), levels: [] };
  const [[west, south], [east, north]] = file.pando.bounds;
  const height = (north - south) * (1 + LEVEL_GAP);
  const ordinals = [...new Set(motes.map(({ properties }) => properties.level))].sort((a, b) => b - a);
  /** @type {Map<string, XY>} */
  const places = new Map(
    motes.map(({ geometry, properties }) => {
      const [x, y] = geometry.coordinates;
      return [properties.id, [x - west, ordinals.indexOf(properties.level) * height + north - y]];
    }),
  );
  const names = new Map(file.pando.levels.map(({ ordinal, name }) => [ordinal, name]));
  const levels = ordinals.map((ordinal, index) => ({
    name: names.get(ordinal) || `Level ${ordinal}`,
    x: 0,
    y: index * height,
    width: east - west,
    height: north - south,
  }));
  return { places, levels: levels.length > 1 ? levels : [] };
}

/** Places for nodes without any, by springs (Fruchterman and Reingold); the same for the same graph.
 *  @param {Iterable<string>} nodes
 *  @param {Pick<Pair, "a" | "b">[]} links
 *  @param {Map<string, XY>} known
 *  @returns {Map<string, XY>} */
export function spring(nodes, links, known = new Map()) {
  const ids = [...nodes].sort(compare);
  const side = Math.sqrt(ids.length) * 60;
  const bodies = ids.map((id, index) => {
    const angle = (index / ids.length) * 2 * Math.PI;
    const [x, y] = known.get(id) ?? [side / 2 + (Math.cos(angle) * side) / 2, side / 2 + (Math.sin(angle) * side) / 2];
    return { id, x, y, dx: 0, dy: 0 };
  });
  const byName = new Map(bodies.map((body) => [body.id, body]));
  const springs = links.flatMap(({ a, b }) => {
    const [from, to] = [byName.get(a), byName.get(b)];
    return from && to ? [{ from, to }] : [];
  });
  const ideal = 60;
  const rounds = ids.length > 300 ? 60 : ROUNDS;
  for (let round = 0; round < rounds; round += 1) {
    const heat = (side / 8) * (1 - round / rounds) + 0.5;
    for (const body of bodies) body.dx = body.dy = 0;
    for (const [i, body] of bodies.entries()) {
      for (const other of bodies.slice(i + 1)) push(body, other, (d) => (ideal * ideal) / d);
    }
    for (const { from, to } of springs) push(from, to, (d) => (-d * d) / ideal);
    for (const body of bodies) {
      const length = Math.hypot(body.dx, body.dy) || 1;
      const step = Math.min(length, heat);
      body.x += (body.dx / length) * step + (side / 2 - body.x) * 0.004;
      body.y += (body.dy / length) * step + (side / 2 - body.y) * 0.004;
    }
  }
  return new Map(bodies.map(({ id, x, y }) => [id, /** @type {XY} */ ([x, y])]));
}

/** A node on its way: where it is, and where to it is pushed.
 *  @typedef {{ x: number, y: number, dx: number, dy: number }} Body */

/** Push two nodes apart, or pull them together where the force is negative.
 *  @param {Body} a
 *  @param {Body} b
 *  @param {(distance: number) => number} force */
function push(a, b, force) {
  const [dx, dy] = [a.x - b.x || 0.01, a.y - b.y || 0.01];
  const distance = Math.hypot(dx, dy);
  const strength = force(distance) / distance;
  Object.assign(a, { dx: a.dx + dx * strength, dy: a.dy + dy * strength });
  Object.assign(b, { dx: b.dx - dx * strength, dy: b.dy - dy * strength });
}
