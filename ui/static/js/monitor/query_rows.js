// The rows of a query, kept from its changes.

export class QueryRows {
  constructor() {
    this.held = new Map(); // text of a row -> {row, weight}
  }

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
