// The queries behind graphs: what can be watched, as StreamSQL over sys_stream.
import { wordsOf } from "./reported.js";
import { isJoin } from "./plan_model.js";

/** A graph to choose: a title and the text of its query.
 *  @typedef {{ group: string, title: string, text: string, own?: boolean }} Offer */
/** @import { Operator, RunningPlan } from "./plan_model.js" */
/** @import { Entity } from "./reported.js" */

/** @param {string} text */
export const quoted = (text) => `'${String(text).replaceAll("'", "''")}'`;

/** @param {string} where */
const select = (where) =>
  `SELECT ts, site, entity, property, value\nFROM sys_stream [RANGE 10 SECONDS]\nWHERE ${where}`;

/** The query of the plan's structure.
 *  @param {string} query the name under which sites run it */
export const structureText = (query) =>
  `SELECT site, entity, operator, inputs\nFROM sys_operators\nWHERE query = ${quoted(query)}`;

/** The query of the plan's numbers: the query's own, and those of the sites it runs on.
 *  @param {string} query the name under which sites run it
 *  @param {number} seconds */
export const numbersText = (query, seconds) =>
  `SELECT ts, site, query, entity, kind, property, value\nFROM sys_stream [RANGE ${seconds} SECONDS]\n` +
  `WHERE query = ${quoted(query)} OR query = ''`;

/** One property of one entity.
 *  @param {Entity & { query?: string, title: string }} entity
 *  @param {string} property */
export function propertyGraph({ site, query, kind, entity, title }, property) {
  const own = query ? `query = ${quoted(query)} AND ` : "";
  return {
    title: `${wordsOf(property)}: ${title} at ${site}`,
    text: select(
      `${own}site = ${quoted(site)} AND kind = ${quoted(kind)}\n` +
        `  AND entity = ${quoted(entity)} AND property = ${quoted(property)}`,
    ),
  };
}

/** @param {string} line */
const cut = (line) => (line.length > 48 ? `${line.slice(0, 47)}…` : line);

/** What the dialog offers, for the query that is shown.
 *  @param {string} query
 *  @param {RunningPlan} plan
 *  @param {Entity | null} selected
 *  @returns {Offer[]} */
export function offers(query, plan, selected) {
  const operators = plan.sites.flatMap(({ operators: all }) => [...all.values()]);
  const chosen =
    selected?.kind === "operator"
      ? operators.find(({ site, entity }) => site === selected.site && entity === selected.entity)
      : undefined;
  return [
    ...joinOffers(query, operators, chosen),
    ...(chosen ? operatorOffers(query, chosen) : []),
    ...(query ? queryOffers(query) : []),
    ...SITE_OFFERS,
    { group: "Own", title: "Your own query", text: select("kind = 'site' AND property = 'steps'"), own: true },
  ];
}

/** @param {string} query
 *  @param {Operator[]} operators
 *  @param {Operator} [chosen]
 *  @returns {Offer[]} */
function joinOffers(query, operators, chosen) {
  /** @type {Offer[]} */
  const found = [];
  const flows = "  AND property IN ('rows_in_per_s', 'rows_out_per_s', 'selectivity')";
  if (chosen && isJoin(chosen.line)) {
    const where = `query = ${quoted(query)} AND site = ${quoted(chosen.site)}\n`;
    found.push({
      group: "Joins",
      title: `Below, above and selectivity at ${chosen.site}: ${cut(chosen.line)}`,
      text: select(`${where}  AND kind = 'operator' AND entity = ${quoted(chosen.entity)}\n${flows}`),
    });
  }
  const joins = distinct([...(chosen ? [chosen] : []), ...operators].filter(({ line }) => isJoin(line)));
  for (const { entity, line } of joins.slice(0, 6)) {
    const where = `query = ${quoted(query)} AND kind = 'operator' AND entity = ${quoted(entity)}\n`;
    found.push({
      group: "Joins",
      title: `Below, above and selectivity everywhere: ${cut(line)}`,
      text: select(where + flows),
    });
  }
  return found;
}

/** @param {string} query
 *  @param {Operator} operator
 *  @returns {Offer[]} */
function operatorOffers(query, { entity, line }) {
  const where = `query = ${quoted(query)} AND kind = 'operator' AND entity = ${quoted(entity)}\n`;
  return ["rows_out_per_s", "state_rows", "us_per_row"].map((property) => ({
    group: `Operator ${entity}`,
    title: `${wordsOf(property)} at each site: ${cut(line)}`,
    text: select(`${where}  AND property = ${quoted(property)}`),
  }));
}

/** @param {string} query
 *  @returns {Offer[]} */
function queryOffers(query) {
  const own = `query = ${quoted(query)}`;
  const group = "This query";
  return [
    {
      group,
      title: "Rows kept by its operators",
      text: select(`${own} AND kind = 'operator' AND property = 'state_rows' AND value > 0.0`),
    },
    { group, title: "Waiting rows in its queues", text: select(`${own} AND kind = 'queue' AND property = 'rows'`) },
  ];
}

/** @param {string} property */
const bySite = (property) => select(`kind = 'site' AND property = ${quoted(property)}`);

const SITE_OFFERS = [
  {
    title: "Waiting rows between operators",
    text: select("kind = 'site' AND property IN ('queued_rows', 'queued_rows_peak')"),
  },
  { title: "Memory of each site's process", text: bySite("memory_mb") },
  { title: "Duration of a step (latency)", text: bySite("step_ms") },
  {
    title: "Events per second, mean of 30 seconds",
    text:
      "SELECT site, AVG(value) AS events_per_s\nFROM sys_stream [RANGE 30 SECONDS]\n" +
      "WHERE kind = 'site' AND property = 'events_per_s'\nGROUP BY site",
  },
  {
    title: "Lag of the watermarks of sources",
    text: select("kind = 'source' AND property = 'watermark_lag_s'"),
  },
].map((offer) => ({ group: "Sites", ...offer }));

/** @param {Operator[]} operators */
function distinct(operators) {
  return [...new Map(operators.map((operator) => [operator.entity, operator])).values()];
}
