// Queries of a page's own: all of them over one event stream, ended with the page and while nobody sees it.
import { post, problemOf, request } from "../api.js";
import { whileSeen } from "../while_seen.js";

/** A query that is followed until it is closed.
 *  @typedef {{ text: string, query: Query | null, starting: boolean, closed: boolean, close: () => void,
 *    changed: (changes: Change<any>[], snapshot: boolean, query: Query | null) => void,
 *    said: (query: Query | null, error: Problem | null) => void }} Followed */
/** @import { Change, Changes, Problem, Query, Status } from "../payloads.d.ts" */

const AGAIN_MS = 2000;
const GATHER_MS = 60; // queries that start together open the stream once

const NO_QUERY = { code: "no_query", message: "This is not a query: write a SELECT." };

export class SessionQueries {
  constructor() {
    /** @type {Set<Followed>} */
    this.wanted = new Set(); // of Followed: all that are not closed
    /** @type {Map<string, Followed>} */
    this.followed = new Map(); // id of a query -> Followed: those that run
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.opening = undefined;
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
   *  @param {string} text
   *  @param {Pick<Followed, "changed" | "said">} told of changes; and of its state, or why there is none
   *  @returns {Followed} */
  follow(text, { changed, said }) {
    /** @type {Followed} */
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

  /** @param {Followed} followed */
  async start(followed) {
    if (followed.closed || followed.starting || followed.query || this.resting) return;
    followed.starting = true;
    let query;
    try {
      const results = await post("/api/statements", { text: followed.text, origin: "session" });
      query = results[results.length - 1]?.query;
    } catch (error) {
      return this.refuse(followed, problemOf(error));
    } finally {
      followed.starting = false;
    }
    if (!query) return this.refuse(followed, NO_QUERY);
    if (this.resting || followed.closed) return this.drop(query.id);
    followed.query = query;
    this.followed.set(query.id, followed);
    followed.said(query, null);
    this.open();
  }

  /** Say why there is no query; what the console could not do now is tried again.
   *  @param {Followed} followed
   *  @param {Problem} error */
  refuse(followed, error) {
    if (followed.closed) return;
    followed.said(null, error);
    if (!error.code || error.code === "server_error") this.again(followed);
  }

  /** @param {Followed} followed */
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
      for (const kind of ["snapshot", "change"]) {
        source.addEventListener(kind, (event) => this.take(JSON.parse(event.data), kind === "snapshot"));
      }
      source.addEventListener("status", (event) => this.hear(JSON.parse(event.data)));
      source.addEventListener(
        "error",
        () =>
          source === this.source && source.readyState === EventSource.CLOSED && setTimeout(() => this.open(), AGAIN_MS),
      );
    }, GATHER_MS);
  }

  /** @param {Changes} news
   *  @param {boolean} snapshot */
  take({ query, changes }, snapshot) {
    const followed = this.followed.get(query);
    if (followed && !followed.closed) followed.changed(changes, snapshot, followed.query);
  }

  /** @param {Status} state */
  hear(state) {
    const id = "query" in state ? state.query : state.id;
    const followed = this.followed.get(id);
    if (!followed || followed.closed) return;
    if (!("query" in state) && state.status !== "stopped") {
      followed.query = { ...followed.query, ...state };
      followed.said(followed.query, null);
      return;
    }
    this.followed.delete(id);
    followed.query = null;
    followed.said(null, { message: state.error || "The query was stopped; restarting it." });
    this.open();
    this.again(followed);
  }

  /** @param {Followed} followed */
  close(followed) {
    if (followed.closed) return;
    followed.closed = true;
    this.wanted.delete(followed);
    this.end(followed);
    this.open();
  }

  /** @param {Followed} followed */
  end(followed) {
    if (!followed.query) return;
    this.followed.delete(followed.query.id);
    this.drop(followed.query.id);
    followed.query = null;
  }

  /** @param {string} id */
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
