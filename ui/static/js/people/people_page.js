// The page of people: accounts and API tokens of everybody, for administrators.
import { fill, get, make, post, problemOf, request } from "../api.js";
import { byId } from "../elements.js";
import { grantTable } from "./grants.js";
import { time, tokenTable } from "./tokens.js";

/** @import { Account, Problem } from "../payloads.d.ts" */

const ROLES = ["viewer", "analyst", "operator", "administrator"];

/** @param {Problem | null} problem */
function say(problem) {
  byId("people-problem").hidden = !problem;
  if (problem) byId("people-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
}

/** @param {Account} account */
const path = (account) => `/api/accounts/${encodeURIComponent(account.name)}`;

/** @param {() => Promise<unknown>} action */
async function attempt(action) {
  try {
    await action();
    say(null);
  } catch (thrown) {
    say(problemOf(thrown));
  }
  await refresh().catch((thrown) => say(problemOf(thrown)));
}

/** Ask before something is done that cannot be undone, or for a password.
 *  @param {string} question
 *  @param {boolean} needsPassword
 *  @returns {Promise<string | null>} the password, or "" where none is needed; null: no */
function ask(question, needsPassword) {
  const dialog = byId("ask", HTMLDialogElement);
  const password = byId("ask-password", HTMLInputElement);
  byId("ask-text").textContent = question;
  byId("ask-password-label").hidden = !needsPassword;
  password.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    byId("ask-yes").onclick = () => {
      dialog.close();
      resolve(needsPassword ? password.value : "");
    };
    byId("ask-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(null);
  });
}

/** @param {Account} account */
function roleChoice(account) {
  const choice = make("select", { "aria-label": `Role of ${account.name}` });
  choice.append(...ROLES.map((role) => make("option", { selected: role === account.role }, role)));
  choice.addEventListener("change", () => attempt(() => request("PATCH", path(account), { role: choice.value })));
  return choice;
}

/** @param {Account} account */
async function setPassword(account) {
  const password = await ask(`A new password for ${account.name}; its sessions end.`, true);
  if (password !== null) await attempt(() => request("PATCH", path(account), { password }));
}

/** @param {Account} account */
async function remove(account) {
  const yes = await ask(`Remove ${account.name}, with all sessions and tokens?`, false);
  if (yes !== null) await attempt(() => request("DELETE", path(account)));
}

/** @param {Account} account */
function row(account) {
  const turn = () => attempt(() => request("PATCH", path(account), { disabled: !account.disabled }));
  return make(
    "tr",
    { class: account.disabled ? "outdated" : null },
    make("td", {}, account.name, account.disabled && make("span", { class: "badge" }, "disabled")),
    make("td", {}, roleChoice(account)),
    make("td", {}, account.provider ?? "password"),
    make("td", {}, time(account.last_sign_in)),
    make(
      "td",
      { class: "deeds" },
      !account.provider && make("button", { type: "button", onclick: () => setPassword(account) }, "Set password"),
      make("button", { type: "button", onclick: turn }, account.disabled ? "Enable" : "Disable"),
      make("button", { type: "button", class: "danger", onclick: () => remove(account) }, "Remove"),
    ),
  );
}

const showTokens = tokenTable("/api/tokens", true, say);
const showGrants = grantTable(say);

async function refresh() {
  const [accounts, tokens] = await Promise.all([get("/api/accounts"), get("/api/tokens")]);
  fill(byId("accounts"), accounts.map(row));
  byId("nobody").hidden = accounts.length > 0;
  byId("tokens-section").hidden = accounts.length === 0;
  if (!accounts.length) byId("account-role", HTMLSelectElement).value = "administrator";
  const owners = byId("token-account", HTMLSelectElement);
  const chosen = owners.value;
  fill(
    owners,
    accounts.map((account) => make("option", { selected: account.name === chosen }, account.name)),
  );
  showTokens(tokens);
  await showGrants();
}

byId("account-form", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("account-name", HTMLInputElement).value;
  const password = byId("account-password", HTMLInputElement).value;
  const role = byId("account-role", HTMLSelectElement).value;
  attempt(async () => {
    await post("/api/accounts", { name, password, role });
    byId("account-form", HTMLFormElement).reset();
  });
});

await refresh().catch((thrown) => say(problemOf(thrown)));
