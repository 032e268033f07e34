// Follow one query's rows while the page is seen, and start it again when it has gone.
import { whileSeen } from "../while_seen.js";

const LOST = { message: "Connection lost: this page shows old data. Reconnecting…" };

export class QueryRows {
  /** @param begin starts, or finds, the query and resolves to it
   *  @param changed called with ({rows, query, error}) after every change */
  constructor(begin, changed) {
    this.begin = begin;
    this.changed = changed;
    this.rows = new Map();
    this.query = null;
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
    const mine = (this.ticket = (this.ticket ?? 0) + 1);
    let query;
    try {
      query = await this.begin();
    } catch (error) {
      if (mine !== this.ticket) return;
      this.tell(error);
      if (!error.code || error.code === "server_error") this.again();
      return;
    }
    if (this.idle || mine !== this.ticket) return;
    this.query = query;
    this.tell();
    this.source?.close();
    this.source = new EventSource(`/api/queries/${this.query.id}/changes`);
    this.source.addEventListener("snapshot", (event) => {
      this.rows.clear();
      this.apply(JSON.parse(event.data).changes);
    });
    this.source.addEventListener("change", (event) => this.apply(JSON.parse(event.data).changes));
    this.source.addEventListener("status", (event) => {
      this.query = { ...this.query, ...JSON.parse(event.data) };
      if (this.query.status === "stopped") this.restart();
      else this.tell();
    });
    this.source.addEventListener("error", () => {
      if (this.source.readyState === EventSource.CLOSED) this.restart();
      else this.tell(LOST);
    });
  }

  apply(changes) {
    for (const { diff, row } of changes) {
      const key = JSON.stringify(row);
      const weight = (this.rows.get(key)?.weight || 0) + diff;
      if (weight === 0) this.rows.delete(key);
      else this.rows.set(key, { weight, row });
    }
    this.tell();
  }

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
