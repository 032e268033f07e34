// The panel of a plan on the page Queries: a picture of its fragments, and its text.
import { fragmentsPicture } from "./fragments_picture.js";
import { byId } from "./elements.js";

/** @import { Explained } from "./payloads.d.ts" */

/** The fragments that an answer has, if it is one of EXPLAIN about them.
 *  @param {object | null} data
 *  @returns {Explained | null} */
function explainedIn(data) {
  return data && "fragments" in data && "text" in data ? /** @type {Explained} */ (data) : null;
}

/** A line of a plan: a sentence goes on below its beginning, the columns of a table stay in place.
 *  @param {string} text
 *  @returns {HTMLElement} */
function planLine(text) {
  const line = document.createElement("span");
  const indent = text.length - text.trimStart().length;
  line.className = /\S {2,}\S/.test(text) ? "columns" : "sentence";
  line.style.setProperty("--indent", `${indent + 4}ch`);
  line.textContent = `${text}\n`;
  return line;
}

/** Show a plan.
 *  @param {string} text
 *  @param {object | null} data of EXPLAIN, or of another answer */
export function showPlan(text, data) {
  const explained = explainedIn(data);
  const lines = text ? text.split("\n") : (explained?.text ?? []);
  byId("plan").replaceChildren(...lines.map(planLine));
  const picture = byId("plan-picture");
  picture.replaceChildren(...(explained ? [fragmentsPicture(explained)] : []));
  picture.hidden = !explained;
}
