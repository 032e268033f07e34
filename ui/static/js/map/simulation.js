// What a person may do in the simulated building.
import { make, post, problemOf } from "../api.js";

/** @typedef {[label: string, action: string, target: string, celsius?: number]} Order */

/** Buttons that make something happen in the simulated building.
 *  @param {string} title
 *  @param {Order[]} orders */
export function actions(title, orders) {
  const said = make("p", { class: "quiet small", role: "status" });
  /** @param {string} action
   *  @param {string} target
   *  @param {number} [celsius] */
  const act = async (action, target, celsius) => {
    try {
      await post("/api/simulate", { action, target, ...(celsius === undefined ? {} : { celsius }) });
      said.textContent = "Sent. The sensors will report it soon.";
    } catch (thrown) {
      const error = problemOf(thrown);
      said.textContent = `${error.message} ${error.hint || ""}`;
    }
  };
  return make(
    "div",
    { class: "actions" },
    make("h3", {}, title),
    make(
      "div",
      { class: "buttons" },
      orders.map(([label, action, target, celsius]) =>
        make("button", { type: "button", "data-action": action, onclick: () => act(action, target, celsius) }, label),
      ),
    ),
    said,
  );
}
