// What belongs to operators: their queues, synopses and stores, as sites report them.

/** @import { RunningSite } from "./plan_model.js" */
/** @import { Reported, Reporter } from "./reported.js" */

/** Queues, synopses and stores of an operator, as they are reported.
 *  @param {Reported} reported
 *  @param {string} site
 *  @param {string} entity */
export function belongings(reported, site, entity) {
  const queues = reported.of(site, "queue").filter((found) => found.entity.startsWith(`${entity}-`));
  const synopses = reported
    .of(site, "synopsis")
    .filter((found) => found.entity === entity || found.entity.startsWith(`${entity}.`));
  return { queues, synopses };
}

/** The store that a synopsis is a stub of, or null.
 *  @param {Reporter} synopsis */
export function storeOf({ values }) {
  const store = values.get("store");
  return store && values.get("shared")?.value ? `s${store.value}` : null;
}

/** The stores of which a site's synopses are stubs.
 *  @param {RunningSite} found
 *  @param {Reported} reported */
export function storesOf({ site, operators }, reported) {
  const stores = [...operators.keys()].flatMap((entity) => belongings(reported, site, entity).synopses.map(storeOf));
  return [...new Set(stores.filter((store) => store !== null))].sort();
}

/** What is other when a site's operators are to be drawn anew.
 *  @param {RunningSite} found
 *  @param {Reported} reported */
export const signatureOf = ({ site, operators }, reported) =>
  [...operators.values()].map(({ entity, fragment, explained }) => {
    const { queues, synopses } = belongings(reported, site, entity);
    return [
      explained && Boolean(reported.find(site, "job", fragment)),
      queues.map((queue) => queue.entity),
      synopses.map((synopsis) => [synopsis.entity, storeOf(synopsis)]),
    ];
  });
