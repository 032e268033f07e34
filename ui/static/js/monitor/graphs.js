// Monitoring graphs: each is a query over sys_stream, or any other, and ends with it.
import { count, fill, make } from "../api.js";
import { Chart } from "./chart.js";
import { MAX_SERIES, SeriesSet, partsOf } from "./series.js";

const MOST = 12; // graphs at once
const REDRAW_MS = 500;
const SILENT_MS = 8000;

export class Graphs {
  /** @param place where graphs are put
   *  @param queries SessionQueries
   *  @param changed called when one came or went */
  constructor(place, queries, changed) {
    this.place = place;
    this.queries = queries;
    this.changed = changed;
    this.graphs = new Set();
    this.seconds = 120;
    setInterval(() => !document.hidden && this.draw(), REDRAW_MS);
    new ResizeObserver(() => this.draw()).observe(place);
  }

  get full() {
    return this.graphs.size >= MOST;
  }

  get most() {
    return MOST;
  }

  /** Add a graph {title, text}. */
  add({ title, text }) {
    const graph = { title, text, set: null, error: null, since: Date.now() };
    const body = make("div", { class: "graph-body" });
    graph.notice = make("p", { class: "graph-notice" }, "Requesting it…");
    graph.element = make(
      "article",
      { class: "graph", "aria-label": title },
      make(
        "header",
        {},
        make("h3", { title }, title),
        make(
          "button",
          {
            type: "button",
            class: "close",
            "aria-label": `Remove graph ${title}`,
            title: "Remove this graph and stop its query",
            onclick: () => this.remove(graph),
          },
          "✕",
        ),
      ),
      body,
      graph.notice,
      textOf("This graph is the query", text),
    );
    graph.chart = new Chart(body);
    this.place.append(graph.element);
    graph.followed = this.queries.follow(text, {
      changed: (changes) => {
        graph.error = null;
        if (graph.set) graph.set.apply(changes);
      },
      said: (query, error) => {
        graph.error = error || (query.error ? { message: query.error } : null);
        if (!query || graph.set) return;
        if (partsOf(query.columns).values.length) graph.set = new SeriesSet(query.columns);
        else
          graph.error = {
            message: "This query has no number to draw.",
            hint: "Select at least one column of type INTEGER or DOUBLE.",
          };
      },
    });
    this.graphs.add(graph);
    this.changed();
    this.draw();
    return graph;
  }

  remove(graph) {
    graph.followed.close();
    this.graphs.delete(graph);
    graph.element.remove();
    this.changed();
  }

  draw() {
    for (const graph of this.graphs) this.drawOne(graph);
  }

  drawOne(graph) {
    const { set, chart } = graph;
    const series = set?.labelled() ?? [];
    const stepped = set !== null && set.parts.time === null;
    // The end is the newest point: sites' clocks, or a recording's, need not be this one's.
    const newest = set?.newest ?? Date.now();
    const end = stepped ? Math.max(newest, Date.now()) : newest;
    chart.draw(series, end - this.seconds * 1000, end, stepped);
    const silent = !series.length && Date.now() - graph.since > SILENT_MS;
    const said = graph.error
      ? [make("strong", {}, graph.error.message), graph.error.hint && make("span", {}, ` ${graph.error.hint}`)]
      : set?.left.size
        ? `${count(set.left.size, "more line")} not drawn: the max is ${MAX_SERIES}. Use a stricter WHERE.`
        : silent
          ? "No report for this yet."
          : series.length
            ? ""
            : "Waiting for the first report…";
    graph.notice.hidden = said === "";
    graph.notice.classList.toggle("bad", graph.error !== null);
    fill(graph.notice, said);
    graph.element.classList.toggle("blank", !series.length);
  }
}

/** The text of a query, folded, with a way to the editor. */
export function textOf(lead, text) {
  const open = make(
    "a",
    {
      href: "/queries",
      target: "_blank",
      class: "open-editor",
      onclick: () => localStorage.setItem("pando.query", text),
    },
    "Open in the editor",
  );
  return make("details", { class: "query-text" }, make("summary", {}, lead), make("pre", {}, text), open);
}
