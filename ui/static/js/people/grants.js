// Grants: who may read which source, table or view.
import { fill, get, make, moment, post, problemOf } from "../api.js";
import { byId } from "../elements.js";

/** @import { Grant, Grants, Problem } from "../payloads.d.ts" */

/** A name as a statement takes it.
 *  @param {string} name */
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/** @param {Grant} grant */
export const grantee = (grant) => (grant.to === "everybody" ? "everybody" : `${grant.to} ${grant.name}`);

/** @param {Pick<Grant, "to" | "name">} to */
function written({ to, name }) {
  if (to === "everybody") return "EVERYBODY";
  return to === "user" ? `USER '${name.replaceAll("'", "''")}'` : `ROLE ${quoted(name)}`;
}

/** Show all grants, and let administrators grant and revoke.
 *  @param {(problem: Problem | null) => void} say
 *  @returns {() => Promise<void>} shows them anew */
export function grantTable(say) {
  const kind = byId("grant-kind", HTMLSelectElement);
  const relation = byId("grant-relation", HTMLInputElement);
  const to = byId("grant-to", HTMLSelectElement);
  const name = byId("grant-name", HTMLInputElement);

  /** @param {string} text */
  async function run(text) {
    try {
      await post("/api/statements", { text });
      say(null);
    } catch (thrown) {
      say(problemOf(thrown));
    }
    await refresh();
  }

  /** @param {Grant} grant */
  function row(grant) {
    const right = `SELECT ON ${grant.kind.toUpperCase()} ${quoted(grant.relation)}`;
    const revoke = () => run(`REVOKE ${right} FROM ${written(grant)}`);
    return make(
      "tr",
      {},
      make("td", {}, grant.kind),
      make("td", {}, grant.relation),
      make("td", {}, grantee(grant)),
      make("td", {}, grant.by),
      make("td", {}, make("time", { datetime: grant.since, title: grant.since }, moment(grant.since))),
      make("td", { class: "deeds" }, make("button", { type: "button", class: "danger", onclick: revoke }, "Revoke")),
    );
  }

  async function refresh() {
    const { grants } = await get("/api/grants");
    fill(byId("grants"), grants.map(row));
    byId("no-grants").hidden = grants.length > 0;
  }

  to.addEventListener("change", () => {
    name.disabled = to.value === "everybody";
  });
  byId("grant-form", HTMLFormElement).addEventListener("submit", async (event) => {
    event.preventDefault();
    const right = `SELECT ON ${kind.value.toUpperCase()} ${quoted(relation.value.trim().toLowerCase())}`;
    await run(`GRANT ${right} TO ${written({ to: to.value, name: name.value.trim() })}`);
  });
  return refresh;
}

/** A sentence about who may read a relation.
 *  @param {Grants} known
 *  @param {string} relation */
export function readers(known, relation) {
  const key = relation.toLowerCase();
  const granted = known.grants.filter((grant) => grant.relation === key).map(grantee);
  const maker = known.makers[key];
  const made = maker ? `Made by ${maker}. ` : "";
  return `${made}Read by ${[...granted, "operators and administrators"].join(", ")}.`;
}
