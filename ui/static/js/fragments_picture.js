// The picture of a plan's fragments: the result above, a box per fragment, what each sends at its arrow.
import { shape } from "./svg.js";

/** @import { Fragment, Fed, Explained } from "./payloads.d.ts" */
/** @typedef {{ fragment: Fragment, x: number, y: number }} Placed */

const BOX = { width: 230, height: 64 };
const BETWEEN = { across: 30, down: 74 };
const RATE = 26; // from a box up to where its arrow bends, with the rates beside it
const RIGHT = 64; // for the rates of the box at the right
const TOP = 46; // for the result and its arrow
const SITES = 28; // letters that fit
const METHOD = 32;
const SIGNS = { gateway: "◉", base: "⌂", static: "▤" };

/** Fragments by their distance from the result, the longest way: below all that read them.
 *  @param {Fragment[]} fragments
 *  @returns {Fragment[][]} */
export function ranked(fragments) {
  const known = new Map(fragments.map((fragment) => [fragment.id, fragment]));
  /** @type {Fragment[][]} */
  const ranks = [];
  /** @param {Fragment} fragment
   *  @param {number} most Ways longer than this go round in circles.
   *  @returns {number} */
  const rankOf = ({ readers }, most) => {
    const above = readers.map((id) => known.get(id)).filter((reader) => reader !== undefined);
    return most ? Math.max(0, ...above.map((reader) => 1 + rankOf(reader, most - 1))) : 0;
  };
  for (const fragment of fragments) {
    (ranks[rankOf(fragment, fragments.length)] ??= []).push(fragment);
  }
  return ranks.filter(Boolean);
}

/** A number with two digits: 1,200, 3.4, 0.041.
 *  @param {number | null} value */
export function short(value) {
  if (value === null) return "?";
  const rounded = Number(value.toPrecision(2));
  return rounded >= 10 ? rounded.toLocaleString("en", { maximumFractionDigits: 0 }) : String(rounded);
}

/** @param {string} text
 *  @param {number} most */
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The sites of a fragment, in words.
 *  @param {Fragment} fragment */
export function sitesText({ sites, engine }) {
  if (sites.length === 1) return sites[0];
  if (!sites.length) return "no site offers its sources";
  const names = sites.join(", ");
  return names.length <= SITES ? names : `${sites.length} ${engine === "gateway" ? "gateways" : "sites"}`;
}

/** What a fragment sends: measured, where it runs, else as estimated.
 *  @param {Fragment} fragment */
export function rateText({ estimated, measured }) {
  /** @param {{ rows_per_second: number | null, bytes_per_second: number | null }} rates */
  const words = ({ rows_per_second, bytes_per_second }) =>
    `${short(rows_per_second)} rows/s · ${short(bytes_per_second)} B/s`;
  if (measured && measured.bytes_per_second !== null) return words(measured);
  return estimated ? `≈ ${words(estimated)}` : "";
}

/** The picture of a plan.
 *  @param {Pick<Explained, "fragments" | "fed">} explained
 *  @returns {SVGSVGElement} */
export function fragmentsPicture({ fragments, fed = {} }) {
  const ranks = ranked(fragments);
  const widest = Math.max(...ranks.map((rank) => rank.length));
  const width = widest * (BOX.width + BETWEEN.across) - BETWEEN.across;
  const height = TOP + ranks.length * (BOX.height + BETWEEN.down) - BETWEEN.down;
  /** @type {Map<string, Placed>} */
  const at = new Map();
  ranks.forEach((rank, level) => {
    const left = (width - rank.length * (BOX.width + BETWEEN.across) + BETWEEN.across) / 2;
    rank.forEach((fragment, index) => {
      const x = left + index * (BOX.width + BETWEEN.across);
      at.set(fragment.id, { fragment, x, y: TOP + level * (BOX.height + BETWEEN.down) });
    });
  });
  const placed = [...at.values()];
  return shape(
    "svg",
    {
      viewBox: `-4 -4 ${width + RIGHT} ${height + 8}`,
      width: width + RIGHT,
      height: height + 8,
      role: "img",
      "aria-label": `Plan of ${fragments.length} fragments`,
      class: "fragments",
    },
    ...placed.flatMap((box) => arrows(box, at)),
    ...placed.map((box) => drawn(box, fed[box.fragment.id])),
  );
}

/** A fragment's arrows to all that read it: its rows are sent once, so the first one has the rates.
 *  @param {Placed} box
 *  @param {Map<string, Placed>} at */
function arrows(box, at) {
  const { readers } = box.fragment;
  if (!readers.length) return [arrow(box, undefined, true)];
  return readers.map((reader, place) => arrow(box, at.get(reader), !place));
}

/** @param {Placed} box
 *  @param {Placed | undefined} to The reader; none: it gives the result.
 *  @param {boolean} isFirst Whether it has the rates. */
function arrow({ fragment, x, y }, to, isFirst) {
  const x1 = x + BOX.width / 2;
  const [x2, y2] = to ? [to.x + BOX.width / 2, to.y + BOX.height] : [x1, 14];
  const out = y - (to ? RATE : 0);
  const bend = (out + y2) / 2;
  return shape(
    "g",
    { class: "sends" },
    shape("path", { class: "edge", d: `M${x1} ${y}V${out}C${x1} ${bend} ${x2} ${bend} ${x2} ${y2 + 8}` }),
    shape("path", { class: "arrow", d: `M${x2 - 5} ${y2 + 9}l5 -9 5 9z` }),
    !to && shape("text", { class: "result-text", x: x1, y: 8, "text-anchor": "middle" }, "result"),
    isFirst && shape("text", { class: "rate", x: x1 + 8, y: y - 8 }, rateText(fragment)),
  );
}

/** @param {Placed} box
 *  @param {Fed | undefined} feed */
function drawn({ fragment, x, y }, feed) {
  const { id, engine, method, measured } = fragment;
  const beyond = Object.keys(measured?.beyond ?? {}).length > 0;
  const where = `${id} · ${sitesText(fragment)}`;
  const title = [
    `${id} at ${fragment.sites.join(", ") || "no site"}: ${method}`,
    feed && `runs for run ${feed.run}, which feeds it`,
    beyond && "measured outside of the estimate's range",
    ...fragment.not_pushed,
  ];
  return shape(
    "g",
    { class: `fragment ${engine}${feed ? " fed" : ""}${beyond ? " beyond" : ""}` },
    shape("rect", { x, y, width: BOX.width, height: BOX.height, rx: 8 }),
    shape("text", { class: "sign", x: x + 20, y: y + 38, "text-anchor": "middle" }, SIGNS[engine]),
    shape("text", { class: "where", x: x + 38, y: y + 22 }, cut(where, SITES)),
    shape("text", { class: "line", x: x + 38, y: y + 40 }, cut(method, METHOD)),
    feed && shape("text", { class: "feed", x: x + 38, y: y + 56 }, cut(`fed by run ${feed.run}`, METHOD)),
    shape("title", {}, title.filter(Boolean).join("\n")),
  );
}
