// The dialog that adds a graph: something sensible to choose, as a text that may be changed.
import { fill, make, post, problemOf } from "../api.js";
import { part } from "../elements.js";
import { offers } from "./graph_texts.js";

/** @import { Offer } from "./graph_texts.js" */
/** @import { RunningPlan } from "./plan_model.js" */
/** @import { Entity } from "./reported.js" */

export class GraphDialog {
  /** @param {HTMLDialogElement} element a dialog
   *  @param {(graph: { title: string, text: string }) => void} add called with {title, text} */
  constructor(element, add) {
    this.element = element;
    this.add = add;
    this.form = part(element, "form", HTMLFormElement);
    this.choice = part(element, "select", HTMLSelectElement);
    this.text = part(element, "textarea", HTMLTextAreaElement);
    this.problem = part(element, ".problem", HTMLElement);
    /** @type {Offer[]} */
    this.offers = [];
    this.choice.addEventListener("change", () => this.take());
    this.form.addEventListener("submit", (event) => this.submit(event));
    part(element, "[data-cancel]", HTMLElement).addEventListener("click", () => element.close());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
  }

  /** Offer graphs for a query, its plan, and what is chosen in it.
   *  @param {string} query
   *  @param {RunningPlan} plan
   *  @param {Entity | null} selected */
  open(query, plan, selected) {
    this.offers = offers(query, plan, selected);
    const groups = [...new Set(this.offers.map(({ group }) => group))];
    fill(
      this.choice,
      groups.map((group) =>
        make(
          "optgroup",
          { label: group },
          this.offers.flatMap((offer, index) =>
            offer.group === group ? [make("option", { value: index }, offer.title)] : [],
          ),
        ),
      ),
    );
    this.take();
    this.element.showModal();
  }

  take() {
    const offer = this.offers[Number(this.choice.value)];
    this.text.value = offer.text;
    this.problem.hidden = true;
    if (offer.own && this.element.open) this.text.focus();
  }

  /** @param {Event} event */
  async submit(event) {
    event.preventDefault();
    const offer = this.offers[Number(this.choice.value)];
    const text = this.text.value.trim().replace(/;\s*$/, "");
    try {
      const { diagnoses } = await post("/api/validate", { text });
      const wrong = diagnoses.find(({ severity }) => severity !== "warning");
      if (wrong) throw wrong;
    } catch (thrown) {
      const error = problemOf(thrown);
      this.problem.hidden = false;
      fill(this.problem, [
        make("strong", {}, error.message),
        error.line ? make("div", { class: "place" }, `line ${error.line}, column ${error.column}`) : null,
        error.hint ? make("div", { class: "hint" }, error.hint) : null,
      ]);
      return;
    }
    this.element.close();
    const changed = offer.own || text !== offer.text;
    this.add({ title: changed ? text.replace(/\s+/g, " ").slice(0, 80) : offer.title, text });
  }
}
