// The box below the editor: what is wrong, where, and what to do.
import { make } from "./api.js";

/** @import { Problem } from "./payloads.d.ts" */

/** Show an error, or warnings in the same form; null hides the box.
 *  @param {HTMLElement} box
 *  @param {Problem | null} error
 *  @param {boolean} warning */
export function showProblem(box, error, warning = false) {
  box.hidden = !error;
  box.dataset.lost = String(Boolean(error?.lost));
  if (!error) return;
  box.className = warning ? "problem warning" : "problem";
  const place = error.line
    ? make("div", { class: "place" }, `line ${error.line}, column ${error.column}`, error.text ? `: ${error.text}` : "")
    : null;
  const done = (error.carried_out ?? []).map((deed) => make("li", {}, deed));
  box.replaceChildren(
    make("strong", {}, error.message),
    ...(place ? [place] : []),
    ...(error.hint ? [make("div", { class: "hint" }, error.hint)] : []),
    ...(done.length ? [make("div", { class: "done" }, "Already done:", make("ul", {}, done))] : []),
    ...(error.code ? [make("div", { class: "code" }, error.code)] : []),
  );
}
