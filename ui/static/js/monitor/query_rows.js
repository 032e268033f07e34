// The rows of a query, kept from its changes.

/** @import { Change } from "../payloads.d.ts" */

/** @template R */
export class QueryRows {
  constructor() {
    /** @type {Map<string, { row: R, weight: number }>} */
    this.held = new Map(); // text of a row -> {row, weight}
  }

  /** @param {Change<R>[]} changes
   *  @param {boolean} snapshot */
  apply(changes, snapshot) {
    if (snapshot) this.held.clear();
    for (const { diff, row } of changes) {
      const key = JSON.stringify(row);
      const weight = (this.held.get(key)?.weight ?? 0) + diff;
      if (weight) this.held.set(key, { row, weight });
      else this.held.delete(key);
    }
  }

  get rows() {
    return [...this.held.values()].filter(({ weight }) => weight > 0).map(({ row }) => row);
  }
}
