// The changes of a query as a list, the newest first.
import { make } from "./api.js";

/** @import { Change } from "./payloads.d.ts" */

const MAX_CHANGES = 500;

/** Put changes in front of those that are listed; the oldest make room.
 *  @param {Element} log
 *  @param {Change[]} changes */
export function logChanges(log, changes) {
  for (const change of changes.slice(-MAX_CHANGES)) {
    const values = Object.values(change.row)
      .map((value) => (value === null ? "NULL" : value))
      .join("  ");
    log.prepend(
      make(
        "li",
        { class: change.diff > 0 ? "plus" : "minus" },
        make("time", {}, change.ts.slice(11, 23)),
        `${change.diff > 0 ? "+" : "-"} ${values}`,
      ),
    );
  }
  while (log.children.length > MAX_CHANGES) log.lastElementChild?.remove();
}
