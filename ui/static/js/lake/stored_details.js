// A stored table opened: a bar chart of each column, its first rows, and what reads it.
import { count, get, headedTable, make, problemOf, text } from "../api.js";
import { shape } from "../svg.js";

/** @import { ColumnFigures, StoredSample, StoredTable, StoredTables } from "../payloads.d.ts" */

const WIDTH = 260;
const HEIGHT = 70;

/** What stands below a table's row; its rows are read once it is opened.
 *  @param {StoredTable} table
 *  @param {StoredTables} all */
export function storedDetails(table, all) {
  const sample = make("div", {}, make("p", { class: "empty" }, "Loading…"));
  const load = async () => {
    try {
      sample.replaceChildren(...shown(table, await get(`/api/tables/${encodeURIComponent(table.name)}/sample`)));
    } catch (error) {
      sample.replaceChildren(make("p", { class: "problem" }, problemOf(error).message));
    }
  };
  load();
  const readers = (all.readers[table.name.toLowerCase()] ?? []).map(({ kind, name }) =>
    make("span", { class: "badge" }, `${kind} ${name}`),
  );
  return make(
    "div",
    { class: "kept-details" },
    make(
      "p",
      { class: "kept-lineage" },
      `${table.source} ${table.place} → this table`,
      readers.length > 0 && [". Read by ", readers.flatMap((each) => [each, " "])],
    ),
    sample,
  );
}

/** @param {StoredTable} table
 *  @param {StoredSample} sample */
function shown(table, sample) {
  const types = new Map(table.columns.map(({ name, type }) => [name, type]));
  const rows = sample.rows.map((row) =>
    make(
      "tr",
      {},
      row.map((value) => make("td", { class: value === null ? "null" : "tight" }, text(value))),
    ),
  );
  const head = sample.columns.map((name) => make("th", {}, name));
  return [
    make("h3", {}, "Columns"),
    make(
      "p",
      { class: "quiet" },
      sample.whole ? `${count(sample.looked, "row")}.` : `Of the first ${sample.looked.toLocaleString()} rows.`,
    ),
    make(
      "div",
      { class: "kept-plots" },
      sample.figures.map((figures) => figure(figures, types.get(figures.name) ?? "")),
    ),
    make("h3", {}, "First rows"),
    rows.length
      ? make("div", { class: "scroll" }, headedTable(head, make("tbody", {}, rows)))
      : make("p", { class: "empty" }, "The table has no row."),
  ];
}

/** @param {ColumnFigures} figures
 *  @param {string} type */
function figure(figures, type) {
  const facts = [
    figures.least && (figures.least === figures.greatest ? figures.least : `${figures.least} to ${figures.greatest}`),
    count(figures.distinct, "value"),
    figures.nulls > 0 && `${figures.nulls.toLocaleString()} NULL`,
    figures.others > 0 && `${figures.others.toLocaleString()} rows with other values`,
  ];
  return make(
    "figure",
    {},
    make("figcaption", {}, make("strong", {}, figures.name), ` ${type}`),
    bars(figures),
    make("p", { class: "quiet facts" }, facts.filter(Boolean).join(" · ")),
  );
}

/** A bar for each value or interval; its text is told by pointing at it.
 *  @param {ColumnFigures} figures */
function bars(figures) {
  const top = Math.max(1, ...figures.bars.map((bar) => bar.count));
  const most = figures.bars.find((bar) => bar.count === top);
  const label = most
    ? `${figures.name}: ${count(figures.bars.length, "bar")}, most rows have ${most.label}`
    : `${figures.name}: no value`;
  const svg = shape("svg", {
    class: "column-bars",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  if (!most) {
    svg.append(shape("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no value"));
    return svg;
  }
  const step = WIDTH / figures.bars.length;
  figures.bars.forEach((bar, place) => {
    const height = bar.count ? Math.max(1, (bar.count / top) * (HEIGHT - 2)) : 0;
    svg.append(
      shape(
        "rect",
        { x: place * step + 0.5, y: HEIGHT - height, width: Math.max(1, step - 1), height },
        shape("title", {}, `${bar.label}: ${count(bar.count, "row")}`),
      ),
    );
  });
  return svg;
}
