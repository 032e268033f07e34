// Base rows as short names: a link as "a → b", anything else by source and key.
import { get, make, text } from "./api.js";

/** @import { BaseRow, Confidence, Definition } from "./payloads.d.ts" */

/** @type {Promise<Map<string, Definition>> | null} */
let known = null; // definitions of sources and tables by name

/** Load what sources and tables there are, once. */
export async function loadSources() {
  known ??= get("/api/definitions").then(
    (all) => new Map(all.filter((d) => d.kind !== "view").map((d) => [d.name, d])),
  );
  return known.catch((error) => {
    known = null;
    throw error;
  });
}

/** {kind, name, values}: the source if it says more than the values, and the values of its key.
 *  @param {BaseRow} base
 *  @param {Map<string, Definition>} sources */
export function naming(base, sources) {
  const columns = base.key.length ? base.key : Object.keys(base.row);
  const values = columns.map((column) => text(base.row[column]));
  const isLink = sources.get(base.source)?.stream === "link" && values.length === 2;
  return isLink
    ? { kind: "link", name: base.source, values: [values.join(" → ")] }
    : { kind: "row", name: base.source, values };
}

/** A base row in one line, for sentences.
 *  @param {BaseRow} base
 *  @param {Map<string, Definition>} sources */
export function nameOf(base, sources) {
  const { kind, name, values } = naming(base, sources);
  return kind === "link" ? values[0] : `${name} ${values.join(", ")}`;
}

/** All columns and values of a base row.
 *  @param {BaseRow} base */
export function facts(base) {
  return make(
    "dl",
    { class: "facts-list" },
    Object.entries(base.row).flatMap(([column, value]) => [make("dt", {}, column), make("dd", {}, text(value))]),
  );
}

/** How REST names a base row: by its key, or by all its values.
 *  @param {BaseRow} base */
export function deletion(base) {
  const columns = base.key.length ? base.key : Object.keys(base.row);
  return { source: base.source, values: columns.map((column) => base.row[column]) };
}

const CHANCES = /pdr|prr|prob|chance|conf|trust|reliab|deliver|ratio|certain/i;

/** Columns of probabilities, by name and values: ["link.pdr"]. Any other can be named in EXPLAIN.
 *  @param {BaseRow[]} rows
 *  @param {Map<string, Definition>} sources */
export function probabilityColumns(rows, sources) {
  const found = [];
  for (const [name, definition] of sources) {
    const mine = rows.filter((base) => base.source === name);
    if (!mine.length) continue;
    for (const { name: column, type } of definition.columns) {
      const fits =
        type === "DOUBLE" &&
        CHANCES.test(column) &&
        mine.every(({ row }) => typeof row[column] === "number" && row[column] >= 0 && row[column] <= 1);
      if (fits) found.push(`${name}.${column}`);
    }
  }
  return found;
}

/** A probability as people read it; a lower bound is not rounded up.
 *  @param {Pick<Confidence, "probability" | "exact">} confidence */
export function share({ probability, exact }) {
  const percent = probability * 100;
  let digits = 1;
  while (digits < 8 && percent > 0 && percent < 100 && ["0", "100"].includes(String(Number(percent.toFixed(digits))))) {
    digits += 2;
  }
  const shown = exact ? percent : Math.floor(percent * 10 ** digits) / 10 ** digits;
  return `${exact ? "" : "at least "}${Number(shown.toFixed(digits))} %`;
}
