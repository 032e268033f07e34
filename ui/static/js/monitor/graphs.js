// Monitoring graphs: each is a query over sys_stream, or any other, and ends with it.
import { count, fill, make } from "../api.js";
import { Chart } from "./chart.js";
import { MAX_SERIES, SeriesSet, partsOf } from "./series.js";

/** A graph: `set` has its lines as soon as the columns of its query are known.
 *  @typedef {{ set: SeriesSet | null, error: Problem | null, since: number, notice: HTMLElement,
 *    element: HTMLElement, chart: Chart, followed: Followed | null }} Graph */
/** @import { Problem } from "../payloads.d.ts" */
/** @import { Followed, SessionQueries } from "./session_queries.js" */

const MOST = 12; // graphs at once
const REDRAW_MS = 500;
const SILENT_MS = 8000;
const NO_NUMBER = {
  message: "This query has no number to draw.",
  hint: "Select at least one column of type INTEGER or DOUBLE.",
};

export class Graphs {
  /** @param {Element} place where graphs are put
   *  @param {SessionQueries} queries SessionQueries
   *  @param {() => void} changed called when one came or went */
  constructor(place, queries, changed) {
    this.place = place;
    this.queries = queries;
    this.changed = changed;
    /** @type {Set<Graph>} */
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

  /** Add a graph {title, text}.
   *  @param {{ title: string, text: string }} offer
   *  @returns {Graph} */
  add({ title, text }) {
    const body = make("div", { class: "graph-body" });
    const notice = make("p", { class: "graph-notice" }, "Requesting it…");
    const close = make(
      "button",
      {
        type: "button",
        class: "close",
        "aria-label": `Remove graph ${title}`,
        title: "Remove this graph and stop its query",
        onclick: () => this.remove(graph),
      },
      "✕",
    );
    const element = make(
      "article",
      { class: "graph", "aria-label": title },
      make("header", {}, make("h3", { title }, title), close),
      body,
      notice,
      textOf("This graph is the query", text),
    );
    /** @type {Graph} */
    const graph = {
      set: null,
      error: null,
      since: Date.now(),
      notice,
      element,
      chart: new Chart(body),
      followed: null,
    };
    this.place.append(element);
    graph.followed = this.queries.follow(text, {
      changed: (changes) => {
        graph.error = null;
        graph.set?.apply(changes);
      },
      said: (query, error) => {
        graph.error = error || (query?.error ? { message: query.error } : null);
        if (!query || graph.set) return;
        if (partsOf(query.columns).values.length) graph.set = new SeriesSet(query.columns);
        else graph.error = NO_NUMBER;
      },
    });
    this.graphs.add(graph);
    this.changed();
    this.draw();
    return graph;
  }

  /** @param {Graph} graph */
  remove(graph) {
    graph.followed?.close();
    this.graphs.delete(graph);
    graph.element.remove();
    this.changed();
  }

  draw() {
    for (const graph of this.graphs) this.drawOne(graph);
  }

  /** @param {Graph} graph */
  drawOne(graph) {
    const { set, chart } = graph;
    const series = set?.labelled() ?? [];
    const stepped = set !== null && set.parts.time === null;
    // The end is the newest point: sites' clocks, or a recording's, need not be this one's.
    const newest = set?.newest ?? Date.now();
    const end = stepped ? Math.max(newest, Date.now()) : newest;
    chart.draw(series, end - this.seconds * 1000, end, stepped);
    const said = noticeOf(graph, series.length > 0);
    graph.notice.hidden = said === "";
    graph.notice.classList.toggle("bad", graph.error !== null);
    fill(graph.notice, said);
    graph.element.classList.toggle("blank", !series.length);
  }
}

/** What is to be said of a graph, or "".
 *  @param {Graph} graph
 *  @param {boolean} hasSeries */
function noticeOf({ set, error, since }, hasSeries) {
  if (error) return [make("strong", {}, error.message), error.hint && make("span", {}, ` ${error.hint}`)];
  if (set?.left.size) {
    return `${count(set.left.size, "more line")} not drawn: the max is ${MAX_SERIES}. Use a stricter WHERE.`;
  }
  if (hasSeries) return "";
  const silent = Date.now() - since > SILENT_MS;
  return silent ? "No report for this yet." : "Waiting for the first report…";
}

/** The text of a query, folded, with a way to the editor.
 *  @param {string} lead
 *  @param {string} text */
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
