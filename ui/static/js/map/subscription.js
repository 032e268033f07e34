// Follow one query's rows while the page is seen, and start it again when it has gone.
import { problemOf } from "../api.js";
import { whileSeen } from "../while_seen.js";

/** @template R
 *  @typedef {{ rows: R[], query: Query | null, error: Problem | null }} Told */
/** @import { Change, Changes, Problem, Query, Status } from "../payloads.d.ts" */

const LOST = { message: "Connection lost: this page shows old data. Reconnecting…" };

/** @template R */
export class QueryRows {
  /** @param {() => Promise<Query | null>} begin starts, or finds, the query and resolves to it
   *  @param {(told: Told<R>) => void} changed called with ({rows, query, error}) after every change */
  constructor(begin, changed) {
    this.begin = begin;
    this.changed = changed;
    /** @type {Map<string, { weight: number, row: R }>} */
    this.rows = new Map();
    /** @type {Query | null} */
    this.query = null;
    this.ticket = 0;
    /** @type {EventSource | null} */
    this.source = null;
    this.closed = false;
    this.resting = true;
    this.end = whileSeen(
      () => this.wake(),
      () => this.rest(),
    );
  }

  /** The query may have ended while nobody read it: it is found, or started, again. */
  wake() {
    this.resting = false;
    this.start();
  }

  rest() {
    this.resting = true;
    this.source?.close();
  }

  get idle() {
    return this.closed || this.resting;
  }

  async start() {
    if (this.idle) return;
    const mine = (this.ticket += 1);
    let query;
    try {
      query = await this.begin();
    } catch (thrown) {
      const error = problemOf(thrown);
      if (mine !== this.ticket) return;
      this.tell(error);
      if (!error.code || error.code === "server_error") this.again();
      return;
    }
    if (this.idle || mine !== this.ticket || !query) return;
    this.query = query;
    this.tell();
    this.source?.close();
    this.source = this.read(query);
  }

  /** @param {Query} query */
  read(query) {
    const source = new EventSource(`/api/queries/${query.id}/changes`);
    const taken = (/** @type {MessageEvent} */ event) => /** @type {Changes<R>} */ (JSON.parse(event.data)).changes;
    source.addEventListener("snapshot", (event) => {
      this.rows.clear();
      this.apply(taken(event));
    });
    source.addEventListener("change", (event) => this.apply(taken(event)));
    source.addEventListener("status", (event) => {
      /** @type {Status} */
      const status = JSON.parse(event.data);
      this.query = { ...query, ...this.query, ...status };
      if (status.status === "stopped") this.restart();
      else this.tell();
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.restart();
      else this.tell(LOST);
    });
    return source;
  }

  /** @param {Change<R>[]} changes */
  apply(changes) {
    for (const { diff, row } of changes) {
      const key = JSON.stringify(row);
      const weight = (this.rows.get(key)?.weight || 0) + diff;
      if (weight === 0) this.rows.delete(key);
      else this.rows.set(key, { weight, row });
    }
    this.tell();
  }

  /** @param {Problem | null} error */
  tell(error = null) {
    if (this.closed) return;
    const rows = [...this.rows.values()].filter(({ weight }) => weight > 0).map(({ row }) => row);
    this.changed({ rows, query: this.query, error });
  }

  restart() {
    this.source?.close();
    this.rows.clear();
    this.again();
  }

  again() {
    if (!this.idle) setTimeout(() => this.start(), 1500);
  }

  close() {
    this.closed = true;
    this.end();
  }
}
