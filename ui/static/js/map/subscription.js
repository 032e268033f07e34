// Follow one query's rows, and start it again when it has gone.
import { get } from "../api.js";

export class QueryRows {
  /** @param address path that starts, or finds, the query and answers with it; or a function that does
   *  @param changed called with ({rows, query, error}) after every change */
  constructor(address, changed) {
    this.address = address;
    this.changed = changed;
    this.rows = new Map();
    this.query = null;
    this.closed = false;
    this.start();
  }

  async start() {
    if (this.closed) return;
    try {
      this.query = await (typeof this.address === "function" ? this.address() : get(this.address));
    } catch (error) {
      this.tell(error);
      if (!error.code || error.code === "server_error") this.again();
      return;
    }
    if (this.closed) return;
    this.tell();
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
    this.source.addEventListener("error", () => this.source.readyState === EventSource.CLOSED && this.restart());
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
    if (!this.closed) setTimeout(() => this.start(), 1500);
  }

  close() {
    this.closed = true;
    this.source?.close();
  }
}
