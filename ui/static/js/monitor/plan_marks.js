// The marks of the plan's drawing, and the words at them.
import { shape } from "../svg.js";
import { number } from "./reported.js";

/** @import { Entity } from "./reported.js" */

/** A text of at most so many letters.
 *  @param {string} text
 *  @param {number} most */
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Do something on a click, and on Enter or the space bar.
 *  @param {SVGElement} element
 *  @param {() => void} action */
export function act(element, action) {
  element.addEventListener("click", action);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    action();
  });
}

/** Write how many rows flow along a path, and show that they do.
 *  @param {Element} path
 *  @param {Element} text
 *  @param {number | null} rate */
export function flow(path, text, rate) {
  text.textContent = rate === null ? "" : `${number(Math.round(rate * 10) / 10)}/s`;
  path.classList.toggle("flowing", rate !== null && rate > 0);
}

/** A ladder: a queue.
 *  @param {number} x
 *  @param {number} y */
export function ladder(x, y) {
  const sides = `M${x - 5} ${y - 11}V${y + 11}M${x + 5} ${y - 11}V${y + 11}`;
  const steps = [-7, -2, 3, 8].map((step) => `M${x - 5} ${y + step}h10`).join("");
  return shape("path", { class: "ladder", d: sides + steps });
}

/** A box with a magnifier: a synopsis.
 *  @param {number} x
 *  @param {number} y */
export const magnifier = (x, y) =>
  shape(
    "g",
    { class: "magnifier" },
    shape("circle", { cx: x + 4.5, cy: y + 4.5, r: 4 }),
    shape("path", { d: `M${x + 7.5} ${y + 7.5}l4.5 4.5` }),
  );

/** Window panes.
 *  @param {number} x
 *  @param {number} y */
export const panes = (x, y) =>
  shape("path", { class: "panes", d: `M${x} ${y}h14v12h-14zM${x + 7} ${y}v12M${x} ${y + 6}h14` });

/** The operator and what it works on, of the line EXPLAIN shows.
 *  @param {string} line */
export function named(line) {
  const [, verb, rest] = /^(Scan \w+|MultiJoin of \d+(?=:)|\S+)(?:: | )?(.*)$/s.exec(line) ?? ["", line, ""];
  return { verb, rest };
}

/** What an entity is, in words.
 *  @param {Entity} of */
export const titleOf = ({ kind, entity, site }) =>
  kind === "site" ? `Site ${site}` : `${kind[0].toUpperCase()}${kind.slice(1)} ${entity}`;
