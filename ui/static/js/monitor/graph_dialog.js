// The dialog that adds a graph: something sensible to choose, as a text that may be changed.
import { fill, make, post } from "../api.js";
import { offers } from "./graph_texts.js";

export class GraphDialog {
  /** @param element a dialog
   *  @param add called with {title, text} */
  constructor(element, add) {
    this.element = element;
    this.add = add;
    this.form = element.querySelector("form");
    this.choice = element.querySelector("select");
    this.text = element.querySelector("textarea");
    this.problem = element.querySelector(".problem");
    this.choice.addEventListener("change", () => this.take());
    this.form.addEventListener("submit", (event) => this.submit(event));
    element.querySelector("[data-cancel]").addEventListener("click", () => element.close());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
  }

  /** Offer graphs for a query, its plan, and what is chosen in it. */
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

  async submit(event) {
    event.preventDefault();
    const offer = this.offers[Number(this.choice.value)];
    const text = this.text.value.trim().replace(/;\s*$/, "");
    try {
      const { diagnoses } = await post("/api/validate", { text });
      const wrong = diagnoses.find(({ severity }) => severity !== "warning");
      if (wrong) throw wrong;
    } catch (error) {
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
