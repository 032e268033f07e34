// The network of shared computations made small enough to be read: what only gathers rows becomes part of its
// queries, and many thin nodes that are alike become one.

/** @import { NetworkNode } from "../payloads.d.ts" */

/** What is drawn as one box: a node, or thin nodes that are alike. `reads` names other units, `direct` and `resting`
 *  are queries.
 *  @typedef {{ id: string, nodes: NetworkNode[], reads: string[], sources: string[], direct: number,
 *    resting: number }} Unit */
/** Queries beside what gives their rows: `nodes` are those whose answer they are.
 *  @typedef {{ id: string, nodes: NetworkNode[], of: string, queries: number }} Pill */

/** How many thin nodes that are alike become one, whether these have to be of one kind, and which nodes are only told
 *  of at their queries.
 *  @typedef {{ few: number, kinds: boolean, atQueries: (node: NetworkNode) => boolean }} Coarseness */
/** @param {NetworkNode} node */
const isEnd = ({ reads, sources, readers, direct }) =>
  reads.length === 1 && !sources.length && !readers.length && direct > 0;
/** @type {Coarseness} */
const FINE = { few: 4, kinds: true, atQueries: (node) => isEnd(node) && node.kind === "rows" };
/** @type {Coarseness} */
const COARSE = {
  few: 2,
  kinds: false,
  atQueries: (node) => isEnd(node) && (node.kind === "rows" || node.resting <= 1),
};
const READABLE = 60; // boxes

/** Nodes of a network, those that are read before their readers.
 *  @param {NetworkNode[]} nodes */
function inOrder(nodes) {
  const known = new Map(nodes.map((node) => [node.node, node]));
  /** @type {Set<NetworkNode>} */
  const found = new Set();
  /** @param {NetworkNode} node
   *  @param {number} most Ways longer than this go round in circles. */
  const add = (node, most) => {
    if (found.has(node)) return;
    for (const name of node.reads) {
      const below = known.get(name);
      if (below && most) add(below, most - 1);
    }
    found.add(node);
  };
  for (const node of nodes) add(node, nodes.length);
  return [...found];
}

/** What is drawn of the nodes: of many more thin ones become one.
 *  @param {NetworkNode[]} nodes
 *  @param {Set<string>} opened units of several nodes of which each is drawn all the same
 *  @returns {{ units: Unit[], pills: Pill[] }} */
export function folded(nodes, opened) {
  const ordered = inOrder(nodes);
  const fine = foldedBy(FINE, ordered, opened);
  return fine.units.length > READABLE ? foldedBy(COARSE, ordered, opened) : fine;
}

/** The same for nodes that are alike, none for one that is not thin.
 *  @param {Coarseness} how
 *  @param {NetworkNode} node
 *  @param {string[]} reads */
function keyOf({ kinds }, { kind, sources, resting, readers, direct }, reads) {
  if (resting > 1 || readers.length > 1) return null;
  return `thin ${JSON.stringify([kinds && kind, direct, sources, reads.sort()])}`;
}

/** @param {Coarseness} how
 *  @param {NetworkNode[]} ordered
 *  @param {Set<string>} opened
 *  @returns {{ units: Unit[], pills: Pill[] }} */
function foldedBy(how, ordered, opened) {
  const known = new Set(ordered.map(({ node }) => node));
  /** @type {Map<string, string>} */
  const alike = new Map(); // a key by node
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const node of ordered) {
    if (how.atQueries(node)) continue;
    const reads = node.reads.map((name) => alike.get(name) ?? name);
    const key = keyOf(how, node, reads) ?? node.node;
    alike.set(node.node, key);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  /** @param {string} name */
  const unitOf = (name) => {
    const key = alike.get(name) ?? name;
    return (counts.get(key) ?? 0) >= how.few && !opened.has(key) ? key : name;
  };
  /** @type {Map<string, Unit>} */
  const units = new Map();
  for (const node of ordered) {
    if (!alike.has(node.node)) continue;
    const id = unitOf(node.node);
    const unit = units.get(id) ?? { id, nodes: [], reads: [], sources: node.sources, direct: 0, resting: 0 };
    const reads = node.reads.filter((name) => known.has(name)).map(unitOf);
    unit.nodes.push(node);
    unit.reads = [...new Set([...unit.reads, ...reads])];
    unit.direct += node.direct;
    unit.resting += node.resting;
    units.set(id, unit);
  }
  return { units: [...units.values()], pills: pillsOf(ordered, { unitOf, units, opened, how }) };
}

/** @param {NetworkNode[]} ordered
 *  @param {{ unitOf: (name: string) => string, units: Map<string, Unit>, opened: Set<string>, how: Coarseness }} made
 *  @returns {Pill[]} */
function pillsOf(ordered, { unitOf, units, opened, how }) {
  /** @type {Map<string, NetworkNode[]>} */
  const beside = new Map(); // nodes with queries by the unit that gives their rows
  for (const node of ordered) {
    if (!node.direct) continue;
    const of = unitOf(how.atQueries(node) ? node.reads[0] : node.node);
    if (!units.has(of)) continue; // what it gathers is not listed
    beside.set(of, [...(beside.get(of) ?? []), node]);
  }
  return [...beside].flatMap(([of, nodes]) => {
    const many = `queries of ${of}`;
    const single = nodes.length < how.few || opened.has(many);
    const parts = single && units.get(of)?.nodes.length === 1 ? nodes.map((node) => [node]) : [nodes];
    return parts.map((part) => ({
      id: part.length === 1 ? `queries of ${part[0].node}` : many,
      nodes: part,
      of,
      queries: part.reduce((sum, { direct }) => sum + direct, 0),
    }));
  });
}
