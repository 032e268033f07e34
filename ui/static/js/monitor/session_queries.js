// Queries of a page's own: all of them over one event stream, ended with the page and while nobody sees it.
import { post, request } from "../api.js";
import { whileSeen } from "../while_seen.js";

const AGAIN_MS = 2000;
const GATHER_MS = 60; // queries that start together open the stream once

export class SessionQueries {
  constructor() {
    this.wanted = new Set(); // of Followed: all that are not closed
    this.followed = new Map(); // id of a query -> Followed: those that run
    this.source = null;
    this.resting = true;
    whileSeen(
      () => this.wake(),
      () => this.rest(),
    );
    addEventListener("pagehide", () => this.leave());
    // A page that the browser kept and shows again has lost its queries.
    addEventListener("pageshow", (event) => event.persisted && location.reload());
  }

  /** Start a query and follow it until it is closed; one that ends otherwise is started again.
   *  @param changed called with (changes, snapshot, query)
   *  @param said called with (query, error): its state, or why there is none */
  follow(text, { changed, said }) {
    const followed = {
      text,
      changed,
      said,
      query: null,
      starting: false,
      closed: false,
      close: () => this.close(followed),
    };
    this.wanted.add(followed);
    this.start(followed);
    return followed;
  }

  async start(followed) {
    if (followed.closed || followed.starting || followed.query || this.resting) return;
    followed.starting = true;
    try {
      const results = await post("/api/statements", { text: followed.text, origin: "session" });
      const { query } = results[results.length - 1] || {};
      if (!query) throw { code: "no_query", message: "This is not a query: write a SELECT." };
      if (this.resting) return this.drop(query.id);
      followed.query = query;
    } catch (error) {
      if (followed.closed) return;
      followed.said(null, error);
      if (!error.code || error.code === "server_error") this.again(followed);
      return;
    } finally {
      followed.starting = false;
    }
    if (followed.closed) return this.end(followed);
    this.followed.set(followed.query.id, followed);
    followed.said(followed.query, null);
    this.open();
  }

  again(followed) {
    if (!followed.closed) setTimeout(() => this.start(followed), AGAIN_MS);
  }

  /** Read the queries there are now; each begins with its whole relation. */
  open() {
    clearTimeout(this.opening);
    this.opening = setTimeout(() => {
      this.source?.close();
      this.source = null;
      if (!this.followed.size) return;
      const source = new EventSource(
        `/api/changes?${[...this.followed.keys()].map((id) => `query=${encodeURIComponent(id)}`).join("&")}`,
      );
      this.source = source;
      for (const kind of ["snapshot", "change"])
        source.addEventListener(kind, (event) => this.take(JSON.parse(event.data), kind === "snapshot"));
      source.addEventListener("status", (event) => this.hear(JSON.parse(event.data)));
      source.addEventListener(
        "error",
        () =>
          source === this.source && source.readyState === EventSource.CLOSED && setTimeout(() => this.open(), AGAIN_MS),
      );
    }, GATHER_MS);
  }

  take({ query, changes }, snapshot) {
    const followed = this.followed.get(query);
    if (followed && !followed.closed) followed.changed(changes, snapshot, followed.query);
  }

  hear(state) {
    const followed = this.followed.get(state.query || state.id);
    if (!followed || followed.closed) return;
    if (state.status !== "stopped") {
      followed.query = { ...followed.query, ...state };
      followed.said(followed.query, null);
      return;
    }
    this.followed.delete(state.query);
    followed.query = null;
    followed.said(null, { message: state.error || "The query was stopped; restarting it." });
    this.open();
    this.again(followed);
  }

  close(followed) {
    if (followed.closed) return;
    followed.closed = true;
    this.wanted.delete(followed);
    if (followed.query) this.end(followed);
    this.open();
  }

  end(followed) {
    this.followed.delete(followed.query.id);
    this.drop(followed.query.id);
    followed.query = null;
  }

  drop(id) {
    request("DELETE", `/api/queries/${id}`).catch(() => {}); // it is gone already, or soon: nobody reads it
  }

  rest() {
    this.resting = true;
    clearTimeout(this.opening);
    this.source?.close();
    this.source = null;
    for (const followed of [...this.followed.values()]) this.end(followed);
  }

  wake() {
    this.resting = false;
    for (const followed of this.wanted) this.start(followed);
  }

  leave() {
    this.source?.close();
    for (const [id, followed] of this.followed) {
      followed.closed = true;
      fetch(`/api/queries/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
    }
    this.followed.clear();
  }
}
