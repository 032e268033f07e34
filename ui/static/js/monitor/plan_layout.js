// Places for operators: results above, sources below, a box per site.

/** @typedef {{ x: number, y: number }} Spot */
/** @typedef {Spot & { width: number, height: number }} Box */
/** A site with its operators' places in it, and its stores'.
 *  @typedef {Box & { found: RunningSite, places: Map<string, Spot>, stores: (Spot & { entity: string })[] }} SiteBox */
/** @typedef {Box & { fold: Folded }} FoldBox */
/** @import { Folded, Operator, RunningSite } from "./plan_model.js" */

export const NODE = { width: 196, height: 66, across: 22, down: 50 };
const PAD = 16;
const HEAD = 30;
const BETWEEN = { across: 34, down: 88 };
const STORE = { width: 118, height: 34 };

/** Places of everything drawn.
 *  @param {RunningSite[]} drawn sites of `grouped`
 *  @param {Folded[]} folded likewise
 *  @param {(found: RunningSite) => string[]} storesOf names of the stores drawn at a site */
export function layout(drawn, folded, storesOf) {
  /** @type {SiteBox[]} */
  const sites = drawn.map((found) => ({ ...inner(found, storesOf(found)), x: 0, y: 0 }));
  /** @type {FoldBox[]} */
  const folds = folded.map((fold) => ({ fold, width: 170, height: 120, x: 0, y: 0 }));
  const ranks = [...new Set([...drawn, ...folded].map(({ rank }) => rank))].sort((a, b) => a - b);
  const rows = ranks.map((rank) => [
    ...sites.filter(({ found }) => found.rank === rank),
    ...folds.filter(({ fold }) => fold.rank === rank),
  ]);
  const widths = rows.map((row) => row.reduce((sum, box) => sum + box.width + BETWEEN.across, -BETWEEN.across));
  const width = Math.max(...widths, NODE.width);
  let y = 0;
  rows.forEach((row, index) => {
    let x = (width - widths[index]) / 2;
    for (const box of row) {
      Object.assign(box, { x, y });
      x += box.width + BETWEEN.across;
    }
    y += Math.max(...row.map(({ height }) => height)) + BETWEEN.down;
  });
  return { sites, folded: folds, width, height: y - BETWEEN.down };
}

/** One site: its fragments side by side, each a tree.
 *  @param {RunningSite} found
 *  @param {string[]} stores
 *  @returns {Omit<SiteBox, "x" | "y">} */
function inner(found, stores) {
  /** @type {Map<string, { x: number, y: number, owner?: string }>} */
  const places = new Map();
  /** @type {Set<string>} */
  const claimed = new Set(); // another consumer only draws a line to it
  let right = PAD;
  let deepest = 0;
  /** @param {Operator} operator
   *  @param {number} left
   *  @param {number} depth
   *  @returns {number} */
  const place = (operator, left, depth) => {
    let next = left;
    for (const input of operator.inputs) {
      if (claimed.has(input.entity)) continue;
      claimed.add(input.entity);
      next = place(input, next, depth + 1);
    }
    const fed = operator.inputs.flatMap(({ entity }) => {
      const at = places.get(entity);
      return at?.owner === operator.entity ? [at] : [];
    });
    const x = fed.length ? (fed[0].x + fed[fed.length - 1].x) / 2 : left;
    places.set(operator.entity, {
      x: Math.max(x, left),
      y: HEAD + 12 + depth * (NODE.height + NODE.down),
      owner: operator.consumers[0]?.entity,
    });
    deepest = Math.max(deepest, depth);
    return Math.max(next, Math.max(x, left) + NODE.width + NODE.across);
  };
  for (const root of found.roots) right = place(root, right, 0) + 6;
  const treesEnd = HEAD + 12 + (deepest + 1) * (NODE.height + NODE.down) - NODE.down;
  const storeRow = stores.length ? treesEnd + 40 : treesEnd;
  const storePlaces = stores.map((entity, index) => ({ entity, x: PAD + index * (STORE.width + 14), y: storeRow }));
  const width = Math.max(right - NODE.across - 6, PAD + stores.length * (STORE.width + 14) - 14) + PAD;
  return {
    found,
    places,
    stores: storePlaces,
    width: Math.max(width, 210),
    height: (stores.length ? storeRow + STORE.height : treesEnd) + PAD,
  };
}

export const STORE_SIZE = STORE;
