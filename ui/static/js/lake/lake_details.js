// A table of the lake opened: its columns, its newest rows, a plot for each number, and what reads it.
import { get, headedTable, make, text } from "../api.js";
import { plot, plotted } from "./kept_plot.js";

/** @import { LakeSample, LakeStatus, LakeTable, Problem } from "../payloads.d.ts" */

const HOUR = 3_600_000;
const SPANS = /** @type {[string, number][]} */ ([
  ["Last hour", HOUR],
  ["Last day", 24 * HOUR],
  ["Last week", 7 * 24 * HOUR],
  ["Last 30 days", 30 * 24 * HOUR],
]);

/** What stands below a table's row; its sample is read once it is opened, and for each interval chosen.
 *  @param {LakeTable} table
 *  @param {LakeStatus} status */
export function details(table, status) {
  const sample = make("div", { class: "kept-sample" }, make("p", { class: "empty" }, "Loading…"));
  const spans = make(
    "select",
    { "aria-label": `Interval of ${table.table}`, onchange: () => load() },
    SPANS.map(([label, span]) => make("option", { value: span }, label)),
  );
  const load = async () => {
    const until = table.last ? Date.parse(table.last) + 1 : null;
    const since = until && until - Number(spans.value);
    const asked = since ? `?since=${new Date(since).toISOString()}` : "";
    try {
      const found = await get(`/api/lake/tables/${encodeURIComponent(table.table)}/sample${asked}`);
      sample.replaceChildren(...shown(table, /** @type {LakeSample} */ (found)));
    } catch (error) {
      sample.replaceChildren(make("p", { class: "problem" }, /** @type {Problem} */ (error).message));
    }
  };
  load();
  return make(
    "div",
    { class: "kept-details" },
    lineage(table, status),
    make("div", { class: "toolbar" }, make("h3", {}, "Newest rows and plots"), spans),
    sample,
    make("h3", {}, "Columns"),
    headedTable(
      ["Column", "Type", "Meaning"].map((name) => make("th", {}, name)),
      make(
        "tbody",
        {},
        table.columns.map((each) =>
          make("tr", {}, make("td", {}, each.name), make("td", {}, each.type), make("td", {}, each.words)),
        ),
      ),
    ),
  );
}

/** @param {LakeTable} table
 *  @param {LakeStatus} status */
function lineage(table, status) {
  const source = table.name.replace(/__1[mhd]$/, "");
  const steps = [];
  if (table.namespace === "readings") steps.push("gateways", `source ${source}`, "this table");
  if (table.namespace === "rollups") steps.push(`source ${source}`, `readings.${source}`, "this roll-up");
  const readers = table.namespace === "rollups" ? [] : (status.readers[source] ?? []);
  const read = readers.map(({ kind, name }) => make("span", { class: "badge" }, `${kind} ${name}`));
  return make(
    "p",
    { class: "kept-lineage" },
    steps.join(" → "),
    read.length > 0 && [steps.length ? ". Read by " : "Read by ", read.flatMap((each) => [each, " "])],
  );
}

/** @param {LakeTable} table
 *  @param {LakeSample} sample */
function shown(table, sample) {
  const words = (/** @type {string} */ name) => table.columns.find((each) => each.name === name)?.words || name;
  const head = sample.columns.map((name) => make("th", {}, name));
  const rows = sample.rows.map((row) =>
    make(
      "tr",
      {},
      row.map((value) => make("td", { class: value === null ? "null" : "tight" }, text(value))),
    ),
  );
  return [
    ...(sample.cut ? [make("p", { class: "quiet" }, "The interval has too many rows; the plots show a part.")] : []),
    make(
      "div",
      { class: "kept-plots" },
      plotted(sample).map((name) =>
        make("figure", {}, make("figcaption", {}, words(name)), plot(sample, name, words(name))),
      ),
    ),
    rows.length
      ? make("div", { class: "scroll" }, headedTable(head, make("tbody", {}, rows)))
      : make("p", { class: "empty" }, "No row in this interval."),
  ];
}
