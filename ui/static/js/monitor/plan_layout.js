// Places for operators: results above, sources below, a box per site.

export const NODE = { width: 196, height: 66, across: 22, down: 50 };
const PAD = 16;
const HEAD = 30;
const BETWEEN = { across: 34, down: 88 };
const STORE = { width: 118, height: 34 };

/** Places of everything drawn.
 *  @param drawn sites of `grouped`; @param folded likewise
 *  @param storesOf names of the stores drawn at a site
 *  @returns {sites: [{found, x, y, width, height, places: Map(entity -> {x, y}), stores}], folded, width, height} */
export function layout(drawn, folded, storesOf) {
  const boxes = drawn.map((found) => inner(found, storesOf(found)));
  const ranks = [...new Set([...drawn, ...folded].map(({ rank }) => rank))].sort((a, b) => a - b);
  const rows = ranks.map((rank) => [
    ...boxes.filter(({ found }) => found.rank === rank),
    ...folded.filter((fold) => fold.rank === rank).map((fold) => ({ fold, width: 170, height: 120 })),
  ]);
  const widths = rows.map((row) => row.reduce((sum, { width }) => sum + width + BETWEEN.across, -BETWEEN.across));
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
  const all = rows.flat();
  return {
    sites: all.filter(({ found }) => found),
    folded: all.filter(({ fold }) => fold),
    width,
    height: y - BETWEEN.down,
  };
}

/** One site: its fragments side by side, each a tree. */
function inner(found, stores) {
  const places = new Map();
  let right = PAD;
  let deepest = 0;
  const place = (operator, left, depth) => {
    let next = left;
    for (const input of operator.inputs) {
      if (places.has(input.entity)) continue;
      places.set(input.entity, null); // claimed: another consumer only draws a line to it
      next = place(input, next, depth + 1);
    }
    const fed = operator.inputs
      .map(({ entity }) => places.get(entity))
      .filter((at) => at && at.owner === operator.entity);
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
