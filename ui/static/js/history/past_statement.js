// The statement of a trial: what is tried, over which interval, and how fast.

const DAY = 24 * 3_600_000;

/** @typedef {{ interval: string, from: string, to: string, speed: string }} When */

/** @param {string} message
 *  @param {string} hint */
const refusal = (message, hint) => Object.assign(new Error(message), { hint });

/** The interval as StreamSQL.
 *  @param {When} when
 *  @param {Date} now
 *  @returns {string} */
export function between({ interval, from, to }, now) {
  if (interval === "hour") return "NOW - INTERVAL '1 hour' AND NOW";
  if (interval === "week") return "NOW - INTERVAL '7 days' AND NOW";
  if (interval === "yesterday") {
    const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
    const before = new Date(midnight.getTime() - DAY / 2); // days of summer time have 23 or 25 hours
    return quoted(new Date(before.getFullYear(), before.getMonth(), before.getDate()), midnight);
  }
  const [since, until] = [new Date(from), new Date(to)];
  const wrong = [since, until].some((each) => Number.isNaN(each.getTime()));
  if (wrong) throw refusal("The interval has no begin or no end.", "Fill in From and To.");
  if (since >= until) throw refusal("The interval ends before it begins.", "Choose a To after From.");
  return quoted(since, until);
}

/** @param {Date} since
 *  @param {Date} until */
const quoted = (since, until) => `'${since.toISOString()}' AND '${until.toISOString()}'`;

/** The statement; what is tried stands on lines of its own, the first of them the second.
 *  @param {string} tried
 *  @param {When} when
 *  @param {Date} now */
export function statement(tried, when, now) {
  if (/^\s*run\b/i.test(tried)) {
    throw refusal("The page itself adds RUN and ON HISTORY.", "Write only what is to be tried.");
  }
  const text = tried.trimEnd().replace(/;$/, "");
  const speed = when.speed ? ` SPEED ${when.speed}` : "";
  return `RUN\n${text}\nON HISTORY BETWEEN ${between(when, now)}${speed}`;
}
