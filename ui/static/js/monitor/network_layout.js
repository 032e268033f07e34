// Places of the network of shared computations: sources at the left, queries at the right, between them what is read
// before what reads it.

/** @import { Pill, Unit } from "./network_fold.js" */

/** @typedef {{ id: string, column: number, x: number, y: number, width: number, height: number,
 *    below: string[] }} NetworkPlace */

const BOX = { width: 216, height: 50 };
const SIZES = { source: { width: 150, height: 30 }, unit: BOX, pill: { width: 150, height: 30 } };
const BETWEEN = { across: 60, down: 14 }; // three nodes one after another fit the page
const TURNS = 6; // of putting places near what they are joined with

/** The column of each unit: one right of the last that it reads.
 *  @param {Unit[]} units those that are read before their readers
 *  @returns {Map<string, number>} */
export function columnsOf(units) {
  /** @type {Map<string, number>} */
  const columns = new Map();
  for (const { id, reads } of units) {
    columns.set(id, 1 + Math.max(0, ...reads.map((read) => columns.get(read) ?? 0)));
  }
  return columns;
}

/** Places of sources, units and queries, by id; a source `heat` has the id `source heat`.
 *  @param {Unit[]} units
 *  @param {Pill[]} pills
 *  @returns {{ places: Map<string, NetworkPlace>, width: number, height: number }} */
export function placed(units, pills) {
  const rows = rowsOf(units, pills);
  const places = new Map(rows.flat().map((place) => [place.id, place]));
  /** @type {Map<string, string[]>} */
  const above = new Map();
  for (const { id, below } of places.values()) {
    for (const name of below) above.set(name, [...(above.get(name) ?? []), id]);
  }
  const width = acrossOf(rows);
  for (const column of rows) stack(column);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const column of rows.slice(1)) near(column, places, (place) => place.below);
    for (const column of rows.slice(0, -1).reverse()) near(column, places, (place) => above.get(place.id) ?? []);
  }
  const top = Math.min(...[...places.values()].map(({ y }) => y));
  for (const place of places.values()) place.y -= top;
  const height = Math.max(0, ...[...places.values()].map(({ y, height: own }) => y + own));
  return { places, width, height };
}

/** Everything that is drawn by its column, with no place yet.
 *  @param {Unit[]} units
 *  @param {Pill[]} pills */
function rowsOf(units, pills) {
  const columns = columnsOf(units);
  const last = 1 + Math.max(0, ...columns.values());
  /** @type {NetworkPlace[][]} */
  const rows = Array.from({ length: last + 1 }, () => []);
  /** @param {string} id
   *  @param {number} column
   *  @param {string[]} below
   *  @param {keyof typeof SIZES} kind */
  const put = (id, column, below, kind) => rows[column].push({ id, column, x: 0, y: 0, ...SIZES[kind], below });
  const sources = [...new Set(units.flatMap((unit) => unit.sources))].sort();
  for (const source of sources) put(`source ${source}`, 0, [], "source");
  for (const unit of units) {
    const below = [...unit.sources.map((source) => `source ${source}`), ...unit.reads];
    put(unit.id, columns.get(unit.id) ?? 1, below, "unit");
  }
  for (const { id, of } of pills) put(id, last, [of], "pill");
  return rows;
}

/** Put columns side by side; returns how wide they are together.
 *  @param {NetworkPlace[][]} rows */
function acrossOf(rows) {
  let x = 0;
  for (const column of rows) {
    if (!column.length) continue;
    for (const place of column) place.x = x;
    x += Math.max(...column.map(({ width }) => width)) + BETWEEN.across;
  }
  return Math.max(x - BETWEEN.across, 0);
}

/** @param {NetworkPlace[]} column */
function stack(column) {
  let y = 0;
  for (const place of column) {
    place.y = y;
    y += place.height + BETWEEN.down;
  }
}

/** Move the places of a column near what they are joined with, one below the other.
 *  @param {NetworkPlace[]} column
 *  @param {Map<string, NetworkPlace>} places
 *  @param {(place: NetworkPlace) => string[]} joined */
function near(column, places, joined) {
  /** @param {NetworkPlace} place */
  const middle = (place) => {
    const found = joined(place).flatMap((id) => places.get(id) ?? []);
    if (!found.length) return place.y + place.height / 2;
    return found.reduce((sum, { y, height }) => sum + y + height / 2, 0) / found.length;
  };
  const wanted = new Map(column.map((place) => [place, middle(place) - place.height / 2]));
  /** @param {NetworkPlace} place */
  const at = (place) => wanted.get(place) ?? 0;
  column.sort((a, b) => at(a) - at(b) || (a.id < b.id ? -1 : 1));
  // Blocks of places that touch lie where their members want to be on average.
  /** @type {{ members: NetworkPlace[], y: number, height: number, sum: number }[]} */
  const blocks = [];
  for (const place of column) {
    let block = { members: [place], y: at(place), height: place.height, sum: at(place) };
    for (;;) {
      const before = blocks.at(-1);
      if (!before || before.y + before.height + BETWEEN.down <= block.y) break;
      blocks.pop();
      const moved = before.height + BETWEEN.down;
      const members = [...before.members, ...block.members];
      const sum = before.sum + block.sum - moved * block.members.length;
      block = { members, sum, y: sum / members.length, height: moved + block.height };
    }
    blocks.push(block);
  }
  for (const { members, y: begin } of blocks) {
    let y = begin;
    for (const place of members) {
      place.y = y;
      y += place.height + BETWEEN.down;
    }
  }
}
