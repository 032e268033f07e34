// Sites that are like one that is drawn: a box with their names.
import { shape } from "../svg.js";
import { act, cut } from "./plan_marks.js";

/** @import { FoldBox } from "./plan_layout.js" */

const NAMED = 4; // sites that are named; of the others only the number is

/** @param {FoldBox} box
 *  @param {(site: string) => void} show draws one of them, too */
export function foldedSites({ fold: { sites, like }, x, y, width, height }, show) {
  const buttons = sites.slice(0, NAMED).map((site, index) => {
    const button = shape(
      "g",
      { class: "more-site", tabindex: 0, role: "button", "aria-label": `show site ${site}` },
      shape("text", { x: x + 12, y: y + 44 + index * 19 }, `+ ${cut(site, 18)}`),
    );
    act(button, () => show(site));
    return button;
  });
  const others = sites.length - NAMED;
  return [
    shape("rect", { x, y, width, height, rx: 8, class: "site-box folded" }),
    shape("text", { x: x + 12, y: y + 20, class: "site-name" }, `${sites.length} more like ${like}`),
    ...buttons,
    ...(others > 0 ? [shape("text", { x: x + 12, y: y + 114, class: "facts-line" }, `and ${others} more`)] : []),
  ];
}
