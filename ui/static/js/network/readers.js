// Views that read a source: found by the names in texts, through views.

/** @import { Definition } from "../payloads.d.ts" */

/** @param {string} sql */
const words = (sql) =>
  new Set(
    sql
      .replace(/--[^\n]*|'(?:[^']|'')*'/g, " ")
      .toLowerCase()
      .match(/[a-z_]\w*/g) || [],
  );

/** The names of the views that read a source, directly or through views.
 *  @param {string} name
 *  @param {Definition[]} definitions */
export function viewsOf(name, definitions) {
  const views = definitions.filter((d) => d.kind === "view").map((d) => ({ name: d.name, words: words(d.text) }));
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
  return views.filter((view) => reading.has(view.name.toLowerCase())).map((view) => view.name);
}
