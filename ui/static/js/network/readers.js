// What reads a source: found by the names in texts, through views.

/** @import { Definition, Query } from "../payloads.d.ts" */

/** @param {string} sql */
const words = (sql) =>
  new Set(
    sql
      .replace(/--[^\n]*|'(?:[^']|'')*'/g, " ")
      .toLowerCase()
      .match(/[a-z_]\w*/g) || [],
  );

/** {running: queries, views: names} that read a source, directly or through views.
 *  @param {string} name
 *  @param {Definition[]} definitions
 *  @param {Query[]} queries */
export function readersOf(name, definitions, queries) {
  const views = definitions
    .filter((d) => d.kind === "view")
    .map((d) => ({ name: d.name, library: d.library, words: words(d.text) }));
  const reading = new Set([name.toLowerCase()]);
  for (let grown = true; grown;) {
    grown = false;
    for (const view of views) {
      const others = [...view.words].filter((word) => word !== view.name.toLowerCase());
      if (reading.has(view.name.toLowerCase()) || !others.some((word) => reading.has(word))) continue;
      reading.add(view.name.toLowerCase());
      grown = true;
    }
  }
  /** @param {string} sql */
  const reads = (sql) => [...words(sql)].some((word) => reading.has(word));
  return {
    running: queries.filter((query) => query.origin === "user" && query.status !== "failed" && reads(query.text)),
    views: views.filter((view) => reading.has(view.name.toLowerCase())).map((view) => view.name),
  };
}
