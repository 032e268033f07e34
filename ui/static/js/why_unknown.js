// Why nobody can tell whether a row of an alarm still holds.
import { moment } from "./api.js";

/** @import { Alarm } from "./payloads.d.ts" */

/** @param {Pick<Alarm, "away" | "unsettled_since">} alarm */
export function whyUnknown({ away, unsettled_since: since }) {
  if (away.length) return `unknown: ${away.join(", ")} ${away.length === 1 ? "is" : "are"} offline`;
  return since ? `unknown: its query has not settled since ${moment(since)}` : "unknown";
}
