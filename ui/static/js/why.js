// The panel beside a result: what the clicked row rests on, and what would go without a base row.
import { count, fill, make, post, problemOf, text } from "./api.js";
import { deletion, facts, loadSources, nameOf, naming, probabilityColumns, share } from "./base_rows.js";

/** @typedef {{ query: Query, row: Row, limit: number, confidence: string }} Question */
/** @import { BaseRow, Child, Definition, Loss, Problem, Query, Row, Unanswered, Why } from "./payloads.d.ts" */

const FIRST = 10;
const MOST = 1000;
const LISTED = 50;

export class WhyPanel {
  /** @param {HTMLElement} element the panel
   *  @param {{ closed: () => void, breaking: (rows: Row[]) => void }} told that it is closed, and which rows would
   *    go, to mark them; with [] to mark none */
  constructor(element, { closed, breaking }) {
    this.element = element;
    this.closed = closed;
    this.breaking = breaking;
    this.ticket = 0;
    /** @type {Question | null} */
    this.asked = null;
    /** @type {Map<string, Definition>} */
    this.sources = new Map();
    document.addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && this.close());
  }

  /** What the panel answers. */
  get question() {
    if (!this.asked) throw new Error("Nothing has been asked.");
    return this.asked;
  }

  /** Ask why a row {column: value} of a query is there.
   *  @param {Query} query
   *  @param {Row} row
   *  @param {{ limit?: number, confidence?: string }} how */
  async ask(query, row, { limit = FIRST, confidence = "" } = {}) {
    this.asked = { query, row, limit, confidence };
    const mine = (this.ticket += 1);
    this.breaking([]);
    this.show(make("p", { class: "quiet busy" }, "Asking the gateways for the base rows…"));
    try {
      const sources = await loadSources();
      const names = query.columns.map(({ name }) => name);
      const values = new Set(names).size === names.length ? names.map((name) => row[name]) : row;
      const { data } = await post(`/api/queries/${query.id}/why`, { row: values, limit, confidence });
      if (mine === this.ticket) this.answer(data, sources);
    } catch (error) {
      if (mine === this.ticket) this.show(problem(problemOf(error)));
    }
  }

  close() {
    if (this.element.hidden) return;
    this.ticket += 1;
    this.element.hidden = true;
    this.breaking([]);
    this.closed();
  }

  /** @param {...Child} content */
  show(...content) {
    const values = Object.entries(this.question.row).map(([column, value]) =>
      make("span", { class: "value" }, make("i", {}, column), text(value)),
    );
    this.element.hidden = false;
    this.element.replaceChildren(
      make(
        "div",
        { class: "why-head" },
        make("h2", {}, "Why this row?"),
        make(
          "button",
          { type: "button", class: "close", title: "Close (Esc)", "aria-label": "Close", onclick: () => this.close() },
          "✕",
        ),
      ),
      make("p", { class: "asked" }, values),
      make("div", { class: "why-body", "aria-live": "polite" }, content),
    );
  }

  /** @param {Why} data
   *  @param {Map<string, Definition>} sources */
  answer(data, sources) {
    if (!data.holds) {
      this.show(make("p", {}, "This row is no longer in the result."), notes(data.notes));
      return;
    }
    this.sources = sources;
    const all = data.supports.flat();
    this.show(
      lead(data),
      this.sure(data, probabilityColumns(all, sources)),
      this.supports(data),
      this.more(data),
      notes(data.notes),
    );
  }

  /** @param {Why} data */
  supports(data) {
    const several = data.supports.length > 1 || !data.complete;
    const cards = data.supports
      .filter((support) => support.length)
      .map((support, index) =>
        make(
          "li",
          {},
          several && make("span", { class: "number" }, index + 1),
          make(
            "div",
            { class: "chips" },
            support.map((base) => this.chip(base)),
          ),
        ),
      );
    return make("ol", { class: "supports" }, cards);
  }

  /** @param {BaseRow} base */
  chip(base) {
    const { kind, name, values } = naming(base, this.sources);
    const title = Object.entries(base.row)
      .map(([column, value]) => `${column}: ${text(value)}`)
      .join("\n");
    const face = kind === "link" ? values : [make("b", {}, name), ` ${values.join(", ")}`];
    const chip = make("button", { type: "button", class: `chip ${kind}`, title }, face);
    chip.addEventListener("click", () => this.open(base, chip));
    return chip;
  }

  /** Show a base row's values below its chips; a second click hides them.
   *  @param {BaseRow} base
   *  @param {Element} button */
  open(base, button) {
    const wasOpen = button.getAttribute("aria-expanded") === "true";
    this.element.querySelectorAll(".base-row").forEach((shown) => shown.remove());
    this.element.querySelectorAll(".chip").forEach((chip) => chip.removeAttribute("aria-expanded"));
    this.breaking([]);
    if (wasOpen) return;
    button.setAttribute("aria-expanded", "true");
    const answer = make("div", { class: "breaks" });
    const ask = make(
      "button",
      { type: "button", onclick: () => this.whatIf(base, ask, answer) },
      "What if it is deleted?",
    );
    button.parentElement?.after(
      make("div", { class: "base-row" }, make("strong", {}, base.source), facts(base), ask, answer),
    );
  }

  /** @param {BaseRow} base
   *  @param {HTMLButtonElement} button
   *  @param {Element} answer */
  async whatIf(base, button, answer) {
    const mine = this.ticket;
    button.disabled = true;
    answer.replaceChildren(make("p", { class: "quiet busy" }, "Computing the result without it…"));
    try {
      const { data } = await post("/api/what-if", { delete: [deletion(base)], query: this.question.query.id });
      if (mine !== this.ticket) return;
      const found = data.queries[0];
      const [gone, said] = isAnswered(found) ? [found.gone, found.notes] : [[], []];
      this.breaking(gone);
      fill(answer, [changes(found, `Without ${nameOf(base, this.sources)},`), notes([...said, ...data.notes])]);
    } catch (error) {
      answer.replaceChildren(problem(problemOf(error)));
    } finally {
      button.disabled = false;
    }
  }

  /** How probable the row is, once a column of probabilities is chosen.
   *  @param {Why} data
   *  @param {string[]} columns */
  sure(data, columns) {
    if (!columns.length) return null;
    const chosen = this.question.confidence;
    const options = ["", ...columns].map((name) =>
      make("option", { value: name, selected: name === chosen }, name || "choose a column…"),
    );
    const choice = make("select", {}, options);
    choice.addEventListener("change", () => {
      this.ask(this.question.query, this.question.row, { ...this.question, confidence: choice.value });
    });
    const { confidence } = data;
    return make(
      "div",
      { class: "sure" },
      make(
        "label",
        {
          title: "Probability of the row, if each base row exists independently with the probability in this column",
        },
        "Probability by",
        choice,
      ),
      confidence &&
        make(
          "p",
          { class: "share" },
          make("strong", {}, share(confidence)),
          !confidence.exact && make("span", { class: "quiet" }, ` — ${confidence.reason}`),
        ),
    );
  }

  /** @param {Why} data */
  more(data) {
    if (data.complete) return null;
    const { query, row, limit, confidence } = this.question;
    const next = Math.min(limit * 5, MOST);
    const can = (next > limit && data.known > data.supports.length) || (data.supports.length >= limit && next > limit);
    return make(
      "p",
      { class: "quiet" },
      "There are more combinations than these. ",
      can &&
        make(
          "button",
          { type: "button", class: "link-button", onclick: () => this.ask(query, row, { limit: next, confidence }) },
          `Look for ${next}`,
        ),
    );
  }
}

/** @param {Why} data */
function lead(data) {
  const [first] = data.supports;
  if (data.supports.length === 1 && !first.length) return make("p", {}, "It is in the result for any base rows.");
  if (data.supports.length === 1 && data.complete) {
    return make(
      "p",
      {},
      first.length === 1 ? "It depends on this base row alone:" : "It depends on all of these base rows together:",
    );
  }
  return make(
    "p",
    {},
    "It stays while all base rows of ",
    make("em", {}, "any one"),
    ` group exist${data.complete ? `. These ${data.supports.length} groups are all there are` : ""}:`,
  );
}

/** @param {string[]} list */
export function notes(list) {
  return list.length
    ? make(
        "ul",
        { class: "notes" },
        list.map((note) => make("li", {}, `${note[0].toUpperCase()}${note.slice(1)}.`)),
      )
    : null;
}

/** @param {Problem} error */
export function problem(error) {
  return make(
    "div",
    { class: "problem" },
    make("strong", {}, error.message),
    error.hint && make("div", { class: "hint" }, error.hint),
  );
}

/** Whether it is known what would become of a query.
 *  @param {Loss | Unanswered} found
 *  @returns {found is Loss} */
export const isAnswered = (found) => found.error === undefined;

/** What would become of a query: a sentence, and the rows that go and come.
 *  @param {Loss | Unanswered} found
 *  @param {string} without */
export function changes(found, without) {
  if (!isAnswered(found)) return make("p", { class: "quiet" }, found.error);
  const { gone_count: gone, come_count: come, rows } = found;
  if (!gone && !come) {
    return make("p", { class: "unharmed" }, `${without} nothing changes: all ${count(rows, "row")} stay.`);
  }
  const sentence = `${without} ${gone} of ${count(rows, "row")} would go${come ? `, ${come} would come instead` : ""}.`;
  /** @param {string} sign
   *  @param {Row} row */
  const line = (sign, row) =>
    make("li", { class: sign === "−" ? "minus" : "plus" }, `${sign} ${Object.values(row).map(text).join("  ")}`);
  /** @param {string} sign
   *  @param {Row[]} list
   *  @param {number} total */
  const listed = (sign, list, total) => [
    ...list.slice(0, LISTED).map((row) => line(sign, row)),
    total > LISTED && make("li", { class: "quiet" }, `… and ${total - LISTED} more`),
  ];
  return make(
    "div",
    {},
    make("p", {}, sentence),
    make("ol", { class: "changes" }, listed("−", found.gone, gone), listed("+", found.come, come)),
  );
}
