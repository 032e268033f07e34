// Gateways that administrators enrol, on the page of gateways.
import { fill, get, make, moment, problemOf, request } from "./api.js";
import { byId, focusOn } from "./elements.js";
import { againWhileSeen } from "./while_seen.js";

/** @import { Enrolment, ProvisionedGateway } from "./payloads.d.ts" */

const BADGES = { provisioned: "starting", joined: "live", revoked: "failed" };

const asking = byId("enrolment-question", HTMLDialogElement);
const showing = byId("enrolment-token", HTMLDialogElement);
const renaming = byId("enrolment-rename", HTMLDialogElement);
const newName = byId("enrolment-new-name", HTMLInputElement);
const wanted = byId("enrolment-name", HTMLInputElement);
const hours = byId("enrolment-hours", HTMLSelectElement);
/** @type {(() => Promise<unknown>) | null} */
let agreed = null; // what is done if the question is answered with yes
let renamed = "";
let administers = false; // operators only look

/** @param {string} name */
const path = (name) => `/api/fleet/${encodeURIComponent(name)}`;

/** @param {unknown} thrown */
function complain(thrown) {
  const box = byId("enrolment-problem");
  const problem = thrown === null ? null : problemOf(thrown);
  box.hidden = !problem;
  box.textContent = problem ? [problem.message, problem.hint].filter(Boolean).join("\n") : "";
}

/** Do something, say what went wrong, and look again.
 *  @param {() => Promise<unknown>} work */
async function attempt(work) {
  complain(null);
  await work().catch(complain);
  await look();
}

/** @param {string} title
 *  @param {string} words
 *  @param {string} button
 *  @param {() => Promise<unknown>} work */
function ask(title, words, button, work) {
  byId("enrolment-title").textContent = title;
  byId("enrolment-words").textContent = words;
  byId("enrolment-yes").textContent = button;
  agreed = work;
  asking.showModal();
  byId("enrolment-no").focus();
}

/** @param {string} name
 *  @param {number} [good]  hours for which the token is good */
async function provision(name, good = Number(hours.value)) {
  const made = /** @type {ProvisionedGateway} */ (await request("POST", "/api/fleet", { name, hours: good }));
  byId("token-title").textContent = `Token of ${made.name}`;
  byId("token-until").textContent = moment(made.until);
  byId("token-command").textContent = `python -m gateway.join ${location.origin} ${made.token}`;
  byId("token-copied").textContent = "";
  showing.showModal();
  byId("token-copy").focus();
}

/** @param {string} label
 *  @param {string} name
 *  @param {() => void} work
 *  @param {string} [kind] */
const action = (label, name, work, kind) =>
  make(
    "button",
    { type: "button", class: kind, "aria-label": `${label.replace("…", "")} ${name}`, onclick: work },
    label,
  );

/** @param {Enrolment} enrolment */
function actions({ name, state }) {
  const revoke = () =>
    ask(
      `Revoke gateway ${name}?`,
      "The broker cuts it off and refuses it. Its rows leave every result. It can be provisioned again.",
      "Revoke",
      () => request("POST", `${path(name)}/revoke`),
    );
  const retire = () =>
    ask(
      `Retire gateway ${name}?`,
      "Its account and its rights are removed, and so is all that is known of it. This cannot be undone.",
      "Retire",
      () => request("DELETE", path(name)),
    );
  const rotate = () => attempt(() => request("POST", `${path(name)}/rotate`));
  const again = () => attempt(() => provision(name));
  return state === "joined"
    ? [
        action("Rotate", name, rotate),
        action("Rename…", name, () => rename(name)),
        action("Revoke…", name, revoke, "danger"),
        action("Retire…", name, retire, "danger"),
      ]
    : [action("New token", name, again), action("Retire…", name, retire, "danger")];
}

/** @param {string} name */
function rename(name) {
  renamed = name;
  newName.value = name;
  byId("rename-title").textContent = `Rename gateway ${name}`;
  renaming.showModal();
  newName.select();
}

/** @param {string | null} time */
const when = (time) => (time ? moment(time) : "");

/** @param {Enrolment} enrolment */
function row(enrolment) {
  const note =
    enrolment.state === "revoked"
      ? `revoked ${when(enrolment.revoked)}`
      : enrolment.token_until
        ? `token good until ${when(enrolment.token_until)}`
        : enrolment.rotated
          ? `new credentials ${when(enrolment.rotated)}`
          : "";
  return make(
    "tr",
    {},
    make("td", { class: "tight" }, make("strong", {}, enrolment.name)),
    make("td", {}, make("span", { class: `badge ${BADGES[enrolment.state]}` }, enrolment.state)),
    make("td", { class: "tight" }, when(enrolment.joined)),
    make("td", { class: "tight" }, enrolment.address),
    make("td", { class: "tight" }, when(enrolment.valid_until)),
    make("td", {}, note),
    make("td", { class: "tight acts" }, administers ? actions(enrolment) : []),
  );
}

async function look() {
  const found = await get("/api/fleet").catch((error) => (problemOf(error).lost ? null : undefined));
  if (found === null) return; // the line at the top says that the console does not answer
  byId("enrolments").hidden = !found; // analysts do not see enrolments
  if (!found || asking.open) return;
  const focused = document.activeElement?.getAttribute("aria-label");
  fill(
    byId("enrolled"),
    found.length
      ? found.map(row)
      : make("tr", {}, make("td", { colspan: 7, class: "empty" }, "No gateway was enrolled by token yet.")),
  );
  if (focused) focusOn(byId("enrolled"), `[aria-label="${CSS.escape(focused)}"]`);
}

byId("enrolment-form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    await provision(wanted.value.trim());
    wanted.value = "";
  });
});
byId("enrolment-no").addEventListener("click", () => asking.close());
byId("enrolment-yes").addEventListener("click", () => {
  asking.close();
  if (agreed) attempt(agreed);
});
byId("rename-form").addEventListener("submit", (event) => {
  event.preventDefault();
  renaming.close();
  attempt(() => request("POST", `${path(renamed)}/rename`, { name: newName.value.trim() }));
});
byId("rename-no").addEventListener("click", () => renaming.close());
byId("token-copy").addEventListener("click", async () => {
  const told = byId("token-copied");
  try {
    await navigator.clipboard.writeText(byId("token-command").textContent ?? "");
    told.textContent = "Copied.";
  } catch {
    told.textContent = "Select the text and copy it.";
  }
});
byId("token-done").addEventListener("click", () => showing.close());
showing.addEventListener("close", () => {
  byId("token-command").textContent = ""; // nobody reads it from the page later
});

const me = await get("/api/me").catch(() => null);
administers = Boolean(me && (!me.accounts || me.role === "administrator"));
byId("enrolment-form").hidden = !administers;
againWhileSeen(look, 2000);
