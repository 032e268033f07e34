// The queries behind graphs: what can be watched, as StreamSQL over sys_stream.
import { wordsOf } from "./reported.js";
import { isJoin } from "./plan_model.js";

export const quoted = (text) => `'${String(text).replaceAll("'", "''")}'`;

const select = (where) =>
  `SELECT ts, site, entity, property, value\nFROM sys_stream [RANGE 10 SECONDS]\nWHERE ${where}`;

/** The query of the plan's structure. */
export const structureText = (query) =>
  `SELECT site, entity, operator, inputs\nFROM sys_operators\nWHERE query = ${quoted(query)}`;

/** The query of the plan's numbers: the query's own, and those of the sites it runs on. */
export const numbersText = (query, seconds) =>
  `SELECT ts, site, query, entity, kind, property, value\nFROM sys_stream [RANGE ${seconds} SECONDS]\nWHERE query = ${quoted(query)} OR query = ''`;

/** One property of one entity. */
export function propertyGraph({ site, query, kind, entity, title }, property) {
  const own = query ? `query = ${quoted(query)} AND ` : "";
  return {
    title: `${wordsOf(property)}: ${title} at ${site}`,
    text: select(
      `${own}site = ${quoted(site)} AND kind = ${quoted(kind)}\n  AND entity = ${quoted(entity)} AND property = ${quoted(property)}`,
    ),
  };
}

const cut = (line) => (line.length > 48 ? `${line.slice(0, 47)}…` : line);

/** What the dialog offers, for the query that is shown. */
export function offers(query, plan, selected) {
  const found = [];
  const operators = plan.sites.flatMap(({ operators: all }) => [...all.values()]);
  const chosen =
    selected?.kind === "operator" &&
    operators.find(({ site, entity }) => site === selected.site && entity === selected.entity);
  const joins = distinct([...(chosen ? [chosen] : []), ...operators].filter(({ line }) => isJoin(line)));
  if (chosen && isJoin(chosen.line)) {
    found.push({
      group: "Joins",
      title: `Below, above and selectivity at ${chosen.site}: ${cut(chosen.line)}`,
      text: select(
        `query = ${quoted(query)} AND site = ${quoted(chosen.site)}\n  AND kind = 'operator' AND entity = ${quoted(chosen.entity)}\n  AND property IN ('rows_in_per_s', 'rows_out_per_s', 'selectivity')`,
      ),
    });
  }
  for (const { entity, line } of joins.slice(0, 6)) {
    found.push({
      group: "Joins",
      title: `Below, above and selectivity everywhere: ${cut(line)}`,
      text: select(
        `query = ${quoted(query)} AND kind = 'operator' AND entity = ${quoted(entity)}\n  AND property IN ('rows_in_per_s', 'rows_out_per_s', 'selectivity')`,
      ),
    });
  }
  if (chosen) {
    for (const property of ["rows_out_per_s", "state_rows", "us_per_row"]) {
      found.push({
        group: `Operator ${chosen.entity}`,
        title: `${wordsOf(property)} at each site: ${cut(chosen.line)}`,
        text: select(
          `query = ${quoted(query)} AND kind = 'operator' AND entity = ${quoted(chosen.entity)}\n  AND property = ${quoted(property)}`,
        ),
      });
    }
  }
  const bySite = (property) => select(`kind = 'site' AND property = ${quoted(property)}`);
  if (query) {
    found.push({
      group: "This query",
      title: "Rows kept by its operators",
      text: select(`query = ${quoted(query)} AND kind = 'operator' AND property = 'state_rows' AND value > 0.0`),
    });
    found.push({
      group: "This query",
      title: "Waiting rows in its queues",
      text: select(`query = ${quoted(query)} AND kind = 'queue' AND property = 'rows'`),
    });
  }
  found.push({
    group: "Sites",
    title: "Waiting rows between operators",
    text: select("kind = 'site' AND property IN ('queued_rows', 'queued_rows_peak')"),
  });
  found.push({ group: "Sites", title: "Memory of each site's process", text: bySite("memory_mb") });
  found.push({ group: "Sites", title: "Duration of a step (latency)", text: bySite("step_ms") });
  found.push({
    group: "Sites",
    title: "Events per second, mean of 30 seconds",
    text: "SELECT site, AVG(value) AS events_per_s\nFROM sys_stream [RANGE 30 SECONDS]\nWHERE kind = 'site' AND property = 'events_per_s'\nGROUP BY site",
  });
  found.push({
    group: "Sites",
    title: "Lag of the watermarks of sources",
    text: select("kind = 'source' AND property = 'watermark_lag_s'"),
  });
  found.push({
    group: "Own",
    title: "Your own query",
    text: select("kind = 'site' AND property = 'steps'"),
    own: true,
  });
  return found;
}

function distinct(operators) {
  return [...new Map(operators.map((operator) => [operator.entity, operator])).values()];
}
