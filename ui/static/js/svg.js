// Elements of drawings.
import { present } from "./api.js";

/** @import { Child } from "./payloads.d.ts" */

const SVG = "http://www.w3.org/2000/svg";

/** Build an SVG element: shape("circle", {r: 3}, children or texts); null attributes are left out.
 *  @template {keyof SVGElementTagNameMap} K
 *  @param {K} tag
 *  @param {Record<string, string | number | null | undefined>} attributes
 *  @param {...Child} children
 *  @returns {SVGElementTagNameMap[K]} */
export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...present(children));
  return element;
}
