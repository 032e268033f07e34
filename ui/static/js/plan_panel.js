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

/** Show a plan.
 *  @param {string} text
 *  @param {object | null} data of EXPLAIN, or of another answer */
export function showPlan(text, data) {
  const explained = explainedIn(data);
  byId("plan").textContent = text || (explained?.text ?? []).join("\n");
  const picture = byId("plan-picture");
  picture.replaceChildren(...(explained ? [fragmentsPicture(explained)] : []));
  picture.hidden = !explained;
}
