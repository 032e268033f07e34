// Where to draw nodes: at their places in the building if they have any, else pushed apart by springs.
import { get } from "../api.js";
import { compare } from "../rows_table.js";

const LEVEL_GAP = 0.14; // between two levels, as a share of a level's height
const ROUNDS = 300;

/** Load the places of motes as {id: [x, y]}, levels above each other; empty without a map. */
export async function loadPlaces() {
  const file = await get("/api/site.geojson").catch(() => null);
  const motes = (file?.features || []).filter(({ properties }) => properties.feature_type === "mote");
  if (!motes.length) return { places: new Map(), levels: [] };
  const [[west, south], [east, north]] = file.pando.bounds;
  const height = (north - south) * (1 + LEVEL_GAP);
  const ordinals = [...new Set(motes.map(({ properties }) => properties.level))].sort((a, b) => b - a);
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

/** Places for nodes without any, by springs (Fruchterman and Reingold); the same for the same graph. */
export function spring(nodes, links, known = new Map()) {
  const ids = [...nodes].sort(compare);
  const side = Math.sqrt(ids.length) * 60;
  const at = new Map(
    ids.map((id, index) => {
      const angle = (index / ids.length) * 2 * Math.PI;
      return [
        id,
        known.get(id)
          ? [...known.get(id)]
          : [side / 2 + (Math.cos(angle) * side) / 2, side / 2 + (Math.sin(angle) * side) / 2],
      ];
    }),
  );
  const ideal = 60;
  const rounds = ids.length > 300 ? 60 : ROUNDS;
  for (let round = 0; round < rounds; round += 1) {
    const heat = (side / 8) * (1 - round / rounds) + 0.5;
    const moves = new Map(ids.map((id) => [id, [0, 0]]));
    const push = (a, b, force) => {
      const [[ax, ay], [bx, by]] = [at.get(a), at.get(b)];
      const [dx, dy] = [ax - bx || 0.01, ay - by || 0.01];
      const distance = Math.hypot(dx, dy);
      const strength = force(distance) / distance;
      const [ma, mb] = [moves.get(a), moves.get(b)];
      ma[0] += dx * strength;
      ma[1] += dy * strength;
      mb[0] -= dx * strength;
      mb[1] -= dy * strength;
    };
    for (let i = 0; i < ids.length; i += 1)
      for (let j = i + 1; j < ids.length; j += 1) push(ids[i], ids[j], (d) => (ideal * ideal) / d);
    for (const { a, b } of links) push(a, b, (d) => (-d * d) / ideal);
    for (const id of ids) {
      const [move, place] = [moves.get(id), at.get(id)];
      const length = Math.hypot(...move) || 1;
      const step = Math.min(length, heat);
      place[0] += (move[0] / length) * step + (side / 2 - place[0]) * 0.004;
      place[1] += (move[1] / length) * step + (side / 2 - place[1]) * 0.004;
    }
  }
  return at;
}
