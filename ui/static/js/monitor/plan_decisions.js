// Decisions on plans: why a query took another plan or kept its own, with the bytes before and after.
import { count, fill, make, moment } from "../api.js";
import { shape } from "../svg.js";
import { textOf } from "./graphs.js";
import { QueryRows } from "./query_rows.js";

/** @import { DecisionRow, Problem } from "../payloads.d.ts" */
/** @import { Followed, SessionQueries } from "./session_queries.js" */

const MOST = 30; // of them are drawn
const WIDTH = 100;
const TEXT =
  "SELECT id, ts, queries, reason, outcome, detail, plan_before, plan_after, bytes_before, bytes_after, " +
  "measured_before, measured_after, switch_bytes, switch_seconds FROM sys_decisions";

export class PlanDecisions {
  /** @param {HTMLDetailsElement} place followed while it is open
   *  @param {SessionQueries} queries */
  constructor(place, queries) {
    this.place = place;
    this.queries = queries;
    /** @type {QueryRows<DecisionRow>} */
    this.rows = new QueryRows();
    /** @type {Followed | null} */
    this.followed = null;
    /** @type {Problem | null} */
    this.trouble = null;
    /** @type {string | null} */
    this.query = null;
    this.list = make("div", { class: "decisions" });
    place.append(this.list, textOf("This list is the query", TEXT));
    place.addEventListener("toggle", () => (place.open ? this.open() : this.close()));
  }

  open() {
    this.followed ??= this.queries.follow(TEXT, {
      changed: (changes, snapshot) => {
        this.rows.apply(changes, snapshot);
        this.draw();
      },
      said: (query, error) => {
        this.trouble = error || (query?.error ? { message: query.error } : null);
        this.draw();
      },
    });
    this.draw();
  }

  close() {
    this.followed?.close();
    this.followed = null;
    this.rows = new QueryRows();
  }

  /** Show the decisions on a query's plan; of all queries if there are none on it.
   *  @param {string | null} query its id */
  of(query) {
    if (query === this.query) return;
    this.query = query;
    if (this.followed) this.draw();
  }

  draw() {
    const all = [...this.rows.rows].sort((a, b) => b.id - a.id);
    const mine = all.filter(({ queries }) => this.query !== null && queries.split(", ").includes(this.query));
    const shown = (mine.length ? mine : all).slice(0, MOST);
    fill(this.list, [
      make("p", { class: "quiet small" }, this.trouble?.message ?? this.lead(mine.length, all.length)),
      shown.map(drawn),
    ]);
  }

  /** @param {number} mine
   *  @param {number} all */
  lead(mine, all) {
    if (!this.followed?.query) return "Waiting for the decisions…";
    if (!all) return "No plan has been looked at again: no fact has left the range for which a plan was chosen.";
    if (!mine) return `No decision on the plan that is shown; ${count(all, "decision")} on plans of other queries:`;
    return `${count(mine, "decision")} on the plan that is shown.`;
  }
}

/** @param {DecisionRow} row */
function drawn(row) {
  const most = Math.max(row.bytes_before, row.bytes_after, row.measured_before ?? 0, row.measured_after ?? 0);
  const cost =
    row.switch_bytes === null ? null : `The change took ${bytes(row.switch_bytes)} and ${row.switch_seconds} s.`;
  return make(
    "article",
    { class: `decision ${row.outcome.replace(" ", "-")}`, "aria-label": `${row.outcome}: ${row.queries}` },
    make(
      "header",
      {},
      make("strong", { class: "outcome" }, row.outcome),
      ` ${row.queries} `,
      make("time", { class: "quiet", datetime: row.ts }, moment(row.ts)),
    ),
    make("p", {}, row.reason),
    bar("before", row.plan_before, row.bytes_before, row.measured_before, most),
    row.plan_after === row.plan_before ? null : bar("after", row.plan_after, row.bytes_after, row.measured_after, most),
    make("p", { class: "quiet small" }, [row.detail, cost].filter(Boolean).join(". ").replace("..", ".")),
  );
}

/** One plan: a bar for the estimate, a line where it was measured.
 *  @param {string} when
 *  @param {string} plan
 *  @param {number} estimated
 *  @param {number | null} measured
 *  @param {number} most */
function bar(when, plan, estimated, measured, most) {
  /** @param {number} value */
  const x = (value) => (most ? (WIDTH * value) / most : 0);
  const said = `${bytes(estimated)}/s estimated${measured === null ? "" : `, ${bytes(measured)}/s measured`}`;
  return make(
    "div",
    { class: `plan-bar ${when}` },
    make("span", { class: "when quiet" }, when),
    shape(
      "svg",
      { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img", "aria-label": `${when}: ${said}` },
      shape("rect", { class: "estimated", x: 0, y: 1, width: Math.max(x(estimated), 0.5), height: 8 }),
      measured === null
        ? null
        : shape("path", { class: "measured", d: `M${x(measured)} 0V10`, "vector-effect": "non-scaling-stroke" }),
    ),
    make("span", { class: "bytes" }, said),
    make("span", { class: "quiet small plan-words" }, plan),
  );
}

/** @param {number} number */
function bytes(number) {
  if (number < 1000) return `${Math.round(number * 10) / 10} B`;
  return number < 1e6 ? `${Math.round(number / 100) / 10} kB` : `${Math.round(number / 1e5) / 10} MB`;
}
