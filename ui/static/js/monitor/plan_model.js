// A query's plan from the rows of sys_operators: sites, their operators, and who feeds whom.

/** An operator at a site: its entity is "f1/3", operator 3 of fragment f1; `fed` is the run that it runs for
 *  in place of the one that is shown.
 *  @typedef {{ site: string, entity: string, fragment: string, number: number, line: string, feeding: string[],
 *    explained: boolean, fed: string, inputs: Operator[], consumers: Operator[], remotes: string[] }} Operator */
/** A site of the plan: `rank` steps from the result; `shape` is equal where sites run the same operators.
 *  @typedef {{ site: string, operators: Map<string, Operator>, roots: Operator[], rank: number,
 *    shape: string }} RunningSite */
/** @typedef {{ from: Operator | null, to: Operator, fragment: string }} Crossing */
/** @typedef {{ sites: RunningSite[], crossings: Crossing[] }} RunningPlan */
/** Sites that are left out because they are like one that is drawn.
 *  @typedef {{ like: string, rank: number, sites: string[] }} Folded */
/** @import { Fed, Fragment, OperatorRow, PlanNode } from "../payloads.d.ts" */

const REMOTE = /RemoteSource\[(\w+)\]/g;

/** {fragment, number} of an operator's entity "f1/3".
 *  @param {string} entity */
function parts(entity) {
  const [fragment, number] = entity.split("/");
  return { fragment, number: Number(number) };
}

/** Sites in the order of the way to the result, that of the result first.
 *  @param {OperatorRow[]} rows
 *  @returns {RunningPlan} */
export function planOf(rows) {
  /** @type {Map<string, RunningSite>} */
  const sites = new Map();
  for (const { site, entity, operator, inputs, explained, fed } of rows) {
    const found = sites.get(site) ?? { site, operators: new Map(), roots: [], rank: 0, shape: "" };
    sites.set(site, found);
    found.operators.set(entity, {
      site,
      entity,
      ...parts(entity),
      line: operator,
      feeding: (inputs || "").split(/\s+/).filter(Boolean),
      explained: Boolean(explained),
      fed: fed ?? "",
      inputs: [],
      consumers: [],
      remotes: [],
    });
  }
  for (const found of sites.values()) connect(found);
  const crossings = crossed([...sites.values()]);
  rank([...sites.values()], crossings);
  const sorted = [...sites.values()].sort(
    (a, b) => a.rank - b.rank || a.site.localeCompare(b.site, "en", { numeric: true }),
  );
  return { sites: sorted, crossings };
}

/** @param {RunningSite} found */
function connect(found) {
  for (const operator of found.operators.values()) {
    operator.inputs = operator.feeding.flatMap((entity) => found.operators.get(entity) ?? []);
    operator.remotes = [...operator.line.matchAll(REMOTE)].map(([, fragment]) => fragment);
  }
  for (const operator of found.operators.values()) for (const input of operator.inputs) input.consumers.push(operator);
  found.roots = [...found.operators.values()]
    .filter(({ consumers }) => !consumers.length)
    .sort((a, b) => a.fragment.localeCompare(b.fragment) || b.number - a.number);
  found.shape = [...found.operators.values()]
    .map(({ entity, line, fed }) => `${entity} ${line} ${fed}`)
    .sort()
    .join("\n");
}

/** Rows like those of sys_operators for fragments of EXPLAIN that a site has said nothing about.
 *  The static engine has no operators of its own to report; other sites may be away. A fragment that other runs
 *  feed is reported as theirs.
 *  @param {OperatorRow[]} rows
 *  @param {Fragment[]} fragments of the plan's JSON form
 *  @param {(site: string) => boolean} silent whether what a site has not said is to be filled in
 *  @param {Record<string, Fed>} feeds by fragment
 *  @returns {OperatorRow[]} */
export function explainedRows(rows, fragments, silent, feeds = {}) {
  const told = new Set(rows.map(({ site, entity }) => `${site} ${parts(entity).fragment}`));
  return fragments.flatMap(({ id, sites, plan }) =>
    sites
      .filter((site) => (id in feeds || silent(site)) && !told.has(`${site} ${id}`))
      .flatMap((site) => {
        /** @type {OperatorRow[]} */
        const made = [];
        /** @param {PlanNode} node
         *  @returns {string} */
        const add = ({ text, inputs }) => {
          const feeding = inputs.map(add);
          const entity = `${id}/${made.length}`;
          made.push({ site, entity, operator: text, inputs: feeding.join(" "), explained: true, fed: feeds[id]?.run });
          return entity;
        };
        add(plan);
        return made;
      }),
  );
}

/** From the last operator of a fragment, wherever it runs, to those that read it.
 *  @param {RunningSite[]} sites
 *  @returns {Crossing[]} */
function crossed(sites) {
  /** @type {Map<string, Operator[]>} */
  const last = new Map(); // fragment -> operators
  for (const { roots } of sites) {
    for (const root of roots) last.set(root.fragment, [...(last.get(root.fragment) || []), root]);
  }
  const readers = sites.flatMap(({ operators }) => [...operators.values()]).filter(({ remotes }) => remotes.length);
  return readers.flatMap((to) =>
    to.remotes.flatMap((fragment) => {
      const producers = (last.get(fragment) || []).filter(({ fragment: own }) => own !== to.fragment);
      /** @type {(Operator | null)[]} */
      const ends = producers.length ? producers : [null];
      return ends.map((from) => ({ from, to, fragment }));
    }),
  );
}

/** How far each site's nearest fragment is from the result; cycles end at the number of sites.
 *  @param {RunningSite[]} sites
 *  @param {Crossing[]} crossings */
function rank(sites, crossings) {
  const depth = new Map();
  const begin = sites.flatMap(({ roots }) => roots).filter((root) => !crossings.some(({ from }) => from === root));
  let reached = new Set(begin.map(({ fragment }) => fragment));
  for (let level = 0; reached.size && level <= sites.length + crossings.length; level += 1) {
    /** @type {Set<string>} */
    const next = new Set();
    for (const fragment of reached) if (!depth.has(fragment)) depth.set(fragment, level);
    for (const { from, to } of crossings) {
      if (from && reached.has(to.fragment) && !depth.has(from.fragment)) next.add(from.fragment);
    }
    reached = next;
  }
  for (const found of sites) found.rank = Math.min(...found.roots.map(({ fragment }) => depth.get(fragment) ?? 0));
}

/** The sites to draw, and those left out because another with the same operators is drawn.
 *  @param {RunningSite[]} sites
 *  @param {Set<string>} wanted names of sites to draw in any case
 *  @param {number} most
 *  @returns {{ drawn: RunningSite[], folded: Folded[] }} */
export function grouped(sites, wanted, most = 3) {
  /** @type {Map<string, RunningSite[]>} */
  const groups = new Map();
  for (const found of sites) groups.set(found.shape, [...(groups.get(found.shape) || []), found]);
  /** @type {Set<RunningSite>} */
  const drawn = new Set();
  /** @type {Folded[]} */
  const folded = [];
  for (const group of groups.values()) {
    const chosen = group.filter((found, index) => group.length <= most + 1 || index < most || wanted.has(found.site));
    chosen.forEach((found) => drawn.add(found));
    const rest = group.filter((found) => !drawn.has(found));
    if (rest.length) folded.push({ like: group[0].site, rank: group[0].rank, sites: rest.map(({ site }) => site) });
  }
  return { drawn: sites.filter((found) => drawn.has(found)), folded };
}

/** @type {[RegExp, string][]} */
const ICONS = [
  [/^Window|^Bounds of|^Rows younger/, "⊞"],
  [/^(Multi|Inner|Left|Right|Full|Cross|Band|Theta|AsOf)?\w*Join/, "⋈"],
  [/^Filter|^Having/, "σ"],
  [/^Project/, "π"],
  [/Aggregat|^Group/, "Σ"],
  [/^Fixpoint|^Recurs/, "↻"],
  [/^Union/, "∪"],
  [/^Intersect/, "∩"],
  [/^Except/, "−"],
  [/^Distinct/, "δ"],
  [/^Materialize/, "▣"],
  [/^RemoteSource/, "⇡"],
  [/^Scan/, "◉"],
  [/^Top|^Limit|^Sort/, "⇅"],
  [/Stream/, "≋"],
];

/** The sign of an operator.
 *  @param {string} line */
export const signOf = (line) => ICONS.find(([pattern]) => pattern.test(line))?.[1] ?? "○";

/** Whether an operator is a join, which has a selectivity worth watching.
 *  @param {string} line */
export const isJoin = (line) => /^\w*Join/.test(line);

/** Whether it keeps a window.
 *  @param {string} line */
export const hasWindow = (line) => /\[(RANGE|ROWS|NOW|PARTITION|SESSION)\b|^Window|^Rows younger/i.test(line);
