// The form and the table of API tokens, on the pages Account and People.
import { fill, make, moment, post, problemOf, request } from "../api.js";
import { byId } from "../elements.js";

/** @import { ApiToken, Problem } from "../payloads.d.ts" */

/** @param {string | null} iso */
export const time = (iso) => (iso ? make("time", { datetime: iso, title: iso }, moment(iso)) : "never");

/** @param {string} id */
const typed = (id) => byId(id, HTMLInputElement).value.trim();

/** @param {string} id */
const chosen = (id) => byId(id, HTMLSelectElement).value;

/** Show tokens, and let them be made and revoked.
 *  @param {string} path where the tokens are
 *  @param {boolean} isOfAll whether they are those of all accounts
 *  @param {(problem: Problem | null) => void} say
 *  @returns {(tokens: ApiToken[]) => void} shows tokens
 */
export function tokenTable(path, isOfAll, say) {
  /** @param {() => Promise<unknown>} action */
  async function attempt(action) {
    try {
      await action();
      say(null);
    } catch (thrown) {
      say(problemOf(thrown));
    }
    await refresh();
  }

  /** @param {ApiToken} token */
  const row = (token) =>
    make(
      "tr",
      {},
      isOfAll && make("td", {}, token.account),
      make("td", {}, token.label),
      make("td", {}, token.role),
      make("td", {}, token.sources ? token.sources.join(", ") : "all of the account"),
      make("td", {}, time(token.created)),
      make("td", {}, time(token.last_used)),
      make("td", {}, time(token.expires)),
      make("td", {}, make("button", { type: "button", class: "danger", onclick: () => revoke(token) }, "Revoke")),
    );

  /** @param {ApiToken} token */
  const revoke = (token) => attempt(() => request("DELETE", `${path}/${encodeURIComponent(token.id)}`));

  /** @param {ApiToken[]} tokens */
  function show(tokens) {
    fill(byId("tokens"), tokens.map(row));
    byId("no-tokens").hidden = tokens.length > 0;
  }

  async function refresh() {
    show(/** @type {ApiToken[]} */ (await request("GET", path)));
  }

  byId("token-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const sources = typed("token-sources")
      .split(",")
      .map((name) => name.trim());
    const days = typed("token-days");
    const wanted = {
      label: typed("token-label"),
      role: chosen("token-role") || null,
      days: days ? Number(days) : null,
      sources: sources.some(Boolean) ? sources.filter(Boolean) : null,
      ...(isOfAll ? { account: chosen("token-account") } : {}),
    };
    attempt(async () => {
      const made = /** @type {ApiToken & { secret: string }} */ (await post(path, wanted));
      byId("token-secret").textContent = made.secret;
      byId("token-made").hidden = false;
      byId("token-form", HTMLFormElement).reset();
    });
  });
  return show;
}
