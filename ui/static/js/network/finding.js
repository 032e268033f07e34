// Links by the names of their ends, as somebody types them.

/** @import { Pair } from "./graph.js" */

/** Return the pairs that a text names: "a ↔ b", "a -> b", "a, b", or one end, or a part of it.
 *  A name that is written in full counts before those that only hold it.
 *  @template {Pick<Pair, "a" | "b">} P
 *  @param {string} text
 *  @param {P[]} pairs
 *  @returns {P[]} */
export function linksNamed(text, pairs) {
  const nodes = [...new Set(pairs.flatMap(({ a, b }) => [a, b]))];
  const whole = ends(text.trim(), nodes, true);
  if (whole.size) return pairs.filter(({ a, b }) => whole.has(a) || whole.has(b));
  const [from, to] = text.split(/↔|→|<?->|,/).map((part) => ends(part.trim(), nodes));
  return pairs.filter(({ a, b }) =>
    to ? (from.has(a) && to.has(b)) || (from.has(b) && to.has(a)) : from.has(a) || from.has(b),
  );
}

/** @param {string} name
 *  @param {string[]} nodes
 *  @param {boolean} exactly
 *  @returns {Set<string>} */
function ends(name, nodes, exactly = false) {
  const wanted = name.toLowerCase();
  if (!wanted) return new Set();
  const same = nodes.filter((node) => node.toLowerCase() === wanted);
  return new Set(same.length || exactly ? same : nodes.filter((node) => node.toLowerCase().includes(wanted)));
}
