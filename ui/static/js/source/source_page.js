// New source: listen to an endpoint or browse it, look at payloads, take a proposal, see its rows while typing, save.
import { mount } from "/static/vendor/editor.js";
import { count, fill, get, make, post, problemOf } from "../api.js";
import { byId } from "../elements.js";
import { showProblem } from "../problem_box.js";
import { againWhileSeen } from "../while_seen.js";
import { showDevices } from "./devices.js";
import { EndpointChoice, shows } from "./endpoints.js";
import { chosenOf, showOffers } from "./offers.js";
import { PayloadList, showRows } from "./payload_list.js";
import { FollowedTrial } from "./trial.js";

/** @import { Diagnosis, Problem, Proposal } from "../payloads.d.ts" */
/** @import { Asked } from "./trial.js" */

const TYPED_MS = 250; // after the last key, rows are made anew
const MOST_SECONDS = 30; // of a trial
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** @type {FollowedTrial | null} */
let trial = null; // the one whose payloads are shown
let proposed = ""; // the statement that was put into the editor and not changed since
let proposing = false;
/** @type {string | undefined} */
let proposeAgain; // the record that was chosen from while a proposal was made
let stored = ""; // the statement that was saved last
let seenSamples = 0; // how many payloads the proposals were made of
let ticket = 0; // of the newest mapping: older answers are dropped
/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

const payloads = new PayloadList(byId("payloads"), byId("no-payloads"));
const options = byId("options", HTMLInputElement);
const seconds = byId("seconds", HTMLInputElement);
const endpoints = new EndpointChoice(byId("endpoint", HTMLSelectElement), choose);
const editor = mount(byId("editor"), {
  doc: sessionStorage.getItem("pando.source") ?? "",
  hint: "CREATE SOURCE … WITH (connector = 'mqtt', endpoint = '…', topic = '…')",
  onRun: tryAtGateway,
  complete: (text, offset) => post("/api/complete", { text, offset }),
  validate: async (text) => {
    sessionStorage.setItem("pando.source", text);
    clearTimeout(typing);
    typing = setTimeout(map, TYPED_MS);
    if (text !== stored) byId("saved").replaceChildren();
    return diagnoses(text);
  },
});

/** @param {string} text
 *  @returns {Promise<Diagnosis[]>} */
async function diagnoses(text) {
  const answer = await post("/api/validate", { text }).catch(() => null);
  return answer?.diagnoses ?? [];
}

/** @param {Problem | null} error
 *  @param {boolean} [warning] */
const problem = (error, warning = false) => showProblem(byId("problem"), error, warning);

/** Make the form fit the endpoint that was chosen. */
function choose() {
  const choice = endpoints.chosen;
  const isBroker = choice?.connector === "mqtt";
  byId("options-label").textContent = isBroker ? "Topic" : "Options";
  options.placeholder = isBroker ? "tele/#" : choice?.browses ? "below = …" : "path = /status.json, interval = 2 s";
  options.disabled = !shows(choice);
  byId("listen").textContent = choice?.browses ? "Browse" : "Listen";
  byId("listen", HTMLButtonElement).disabled = !shows(choice);
  byId("discover", HTMLButtonElement).disabled = !isBroker;
  if (choice && !shows(choice)) {
    say(
      `Connector ${choice.connector} reads the addresses in columns, and its devices cannot list them: ` +
        "write the statement with the addresses in the device's manual, then try it at the gateway.",
    );
  }
}

/** What the connector is told: a topic, or `name = value, …`.
 *  @returns {Record<string, string>} */
function written() {
  const text = options.value.trim();
  if (endpoints.chosen?.connector === "mqtt") return { topic: text || "#" };
  const pairs = text.split(",").map((part) => part.split("="));
  return Object.fromEntries(
    pairs.filter(([name]) => name.trim()).map(([name, ...rest]) => [name.trim(), rest.join("=").trim()]),
  );
}

/** How long a trial takes.
 *  @returns {number} */
function chosenSeconds() {
  const chosen = seconds.valueAsNumber;
  const fitting = Number.isNaN(chosen) ? MOST_SECONDS : Math.min(Math.max(chosen, 1), MOST_SECONDS);
  seconds.value = String(fitting);
  return fitting;
}

/** @param {string} text
 *  @param {boolean} [busy] */
function say(text, busy = false) {
  byId("state").textContent = text;
  byId("state").classList.toggle("busy", busy);
  byId("stop").hidden = !busy;
}

/** Begin a trial in place of the one that is shown.
 *  @param {Asked} asked
 *  @param {(followed: FollowedTrial) => void} ended */
async function begin(asked, ended) {
  await trial?.leave();
  problem(null);
  payloads.clear();
  byId("facts").textContent = "";
  if (!asked.text) showProposals([]);
  byId("offers").replaceChildren();
  byId("no-offers").hidden = false;
  seenSamples = 0;
  const mine = new FollowedTrial(asked, { heard, ended: (followed) => (over(followed), ended(followed)) });
  trial = mine;
  say(`Asking gateway ${asked.gateway || "…"}`, true);
  await mine.run();
}

/** @param {FollowedTrial} followed */
function heard(followed) {
  const { known, samples } = followed;
  const note = known?.notes.at(-1);
  const what = count(samples.length, known?.browses ? "record" : "payload");
  say(`Gateway ${known?.gateway}: ${what}${note ? ` — ${note}` : ""}`, true);
  if (followed.asked.discover) return;
  payloads.show(samples);
  if (samples.length > seenSamples) {
    map();
    if (!followed.asked.text && !known?.browses) propose();
  }
}

/** @param {FollowedTrial} followed */
function over({ known, samples, problem: found, asked }) {
  const more = known?.dropped ? `, and ${known.dropped} more like these` : "";
  const what = asked.discover ? "announcement" : known?.browses ? "record" : "payload";
  say(`${count(samples.length, what)}${more} from gateway ${known?.gateway ?? asked.gateway}.`);
  if (found) problem(found);
}

async function listen() {
  const choice = endpoints.chosen;
  if (!choice) return;
  const { gateway, endpoint } = choice;
  tab(choice.browses ? "offers" : "payloads");
  await begin({ gateway, endpoint, options: written(), seconds: chosenSeconds() }, (followed) => {
    const offers = followed.known?.offers ?? [];
    byId("no-offers").hidden = offers.length > 0;
    showOffers(byId("offers"), offers, (record) => void propose(record));
    void propose();
  });
}

async function tryAtGateway() {
  const text = editor.text().trim().replace(/;\s*$/, "");
  if (!text) return problem({ message: "There is no statement.", hint: "Listen to an endpoint, or write one." });
  // The gateway that is chosen, if the statement is about its endpoint.
  const choice = endpoints.chosen;
  const gateway = choice && text.includes(`'${choice.endpoint}'`) ? choice.gateway : "";
  tab("payloads");
  await begin({ gateway, text, seconds: chosenSeconds() }, map);
}

async function discover() {
  const choice = endpoints.chosen;
  if (!choice) return;
  const { gateway, endpoint } = choice;
  tab("devices");
  byId("devices").replaceChildren();
  byId("no-devices").hidden = false;
  await begin({ gateway, endpoint, discover: true, seconds: chosenSeconds() }, announce);
}

/** Show the devices that have announced themselves.
 *  @param {FollowedTrial} followed */
async function announce(followed) {
  if (followed.problem) return;
  const found = await post(`/api/sources/trials/${followed.id}/proposals`, { zone }).catch(refused);
  if (!found || followed !== trial) return;
  byId("no-devices").hidden = found.length > 0;
  byId("no-devices").textContent =
    "No device has announced itself. Sparkplug nodes are found when they publish: listen longer.";
  showDevices(byId("devices"), found, { edit: take, adopted: saved });
}

/** @param {unknown} error
 *  @returns {null} */
function refused(error) {
  problem(problemOf(error));
  return null;
}

/** Propose statements for what has come, or for what is chosen of what is offered.
 *  @param {string} [record] whose statement is to stand in the editor; else the first one */
async function propose(record) {
  if (!trial || !trial.samples.length) return;
  if (proposing) {
    proposeAgain = record;
    return;
  }
  const mine = trial;
  proposing = true;
  seenSamples = mine.samples.length;
  const chosen = mine.known?.offers.length ? chosenOf(byId("offers")) : null;
  const found = await post(`/api/sources/trials/${mine.id}/proposals`, { zone, chosen }).catch(() => null);
  proposing = false;
  if (found && mine === trial) offerStatements(found, record);
  const again = proposeAgain;
  proposeAgain = undefined;
  if (again !== undefined) void propose(again);
}

/** Show what is proposed; put one statement into the editor, unless somebody has written another.
 *  @param {Proposal[]} found
 *  @param {string} [record] */
function offerStatements(found, record) {
  showProposals(found);
  const current = editor.text();
  const wanted = found.find((each) => each.title === record) ?? found[0];
  if (wanted && (!current.trim() || current === proposed)) take(wanted.text);
}

/** @param {Proposal[]} found */
function showProposals(found) {
  byId("proposals").hidden = found.length === 0;
  fill(
    byId("proposals"),
    found.map((proposal) =>
      make(
        "button",
        {
          type: "button",
          title: proposal.title,
          "data-text": proposal.text,
          "aria-pressed": String(proposal.text === proposed),
          onclick: () => take(proposal.text),
        },
        `${proposal.name} · ${count(proposal.samples, "payload")}`,
      ),
    ),
  );
}

/** Put a proposed statement into the editor.
 *  @param {string} text */
function take(text) {
  proposed = text;
  editor.setText(text);
  for (const button of byId("proposals").children) {
    if (button instanceof HTMLElement) button.setAttribute("aria-pressed", String(button.dataset.text === text));
  }
  map();
}

/** Show what the statement makes of the payloads. */
async function map() {
  const text = editor.text().trim();
  if (!trial?.id || !trial.samples.length || trial.asked.discover || !text) return;
  const mine = (ticket += 1);
  const [id, body] = [trial.id, { trial: trial.id, text: text.replace(/;\s*$/, "") }];
  try {
    const mapped = await post("/api/sources/try", body);
    if (mine !== ticket || id !== trial?.id) return;
    problem(null);
    payloads.explain(mapped.samples);
    const rows = showRows(byId("rows", HTMLTableElement), byId("no-rows"), mapped);
    const bad = mapped.samples.filter((sample) => sample.problems.length).length;
    byId("facts").textContent = `${count(rows, "row")}${bad ? `, ${count(bad, "payload")} with problems` : ""}`;
  } catch (error) {
    if (mine !== ticket) return;
    payloads.explain([]);
    byId("facts").textContent = "";
    problem(problemOf(error));
  }
}

async function save() {
  const button = byId("save", HTMLButtonElement);
  button.disabled = true;
  const text = editor.text();
  try {
    const results = await post("/api/statements", { text });
    const warnings = results.flatMap((result) => result.warnings);
    problem(warnings.length ? { message: warnings.join("\n") } : null, true);
    stored = text;
    saved(/SOURCE\s+("?)([^\s("]+)\1/i.exec(text)?.[2] ?? "");
  } catch (error) {
    problem(problemOf(error));
  } finally {
    button.disabled = false;
  }
}

/** Say that a source is there, with the way to its rows.
 *  @param {string} name */
function saved(name) {
  const query = () => sessionStorage.setItem("pando.query", `SELECT * FROM ${name}`);
  fill(byId("saved"), [`Source ${name} is there. `, make("a", { href: "/queries", onclick: query }, "Query its rows")]);
}

/** @type {NodeListOf<HTMLButtonElement>} */
const tabs = document.querySelectorAll(".tabs button");
/** @type {NodeListOf<HTMLElement>} */
const panels = document.querySelectorAll(".panel");

/** @param {string} name */
function tab(name) {
  for (const button of tabs) button.setAttribute("aria-selected", String(button.dataset.tab === name));
  for (const panel of panels) panel.hidden = panel.dataset.panel !== name;
}

byId("listening").addEventListener("submit", (event) => (event.preventDefault(), listen()));
byId("discover").addEventListener("click", discover);
byId("stop").addEventListener("click", () => trial?.stop());
byId("try").addEventListener("click", tryAtGateway);
byId("save").addEventListener("click", save);
for (const button of tabs) button.addEventListener("click", () => tab(button.dataset.tab ?? ""));
addEventListener("pagehide", () => trial?.leave());
options.value = sessionStorage.getItem("pando.listening") ?? "";
seconds.value = sessionStorage.getItem("pando.listening.seconds") ?? seconds.value;
seconds.addEventListener("change", () => sessionStorage.setItem("pando.listening.seconds", String(chosenSeconds())));
options.addEventListener("change", () => sessionStorage.setItem("pando.listening", options.value));
get("/api/definitions")
  .then((all) => editor.setSchema(Object.fromEntries(all.map((d) => [d.name, d.columns.map((c) => c.name)]))))
  .catch(() => null);
againWhileSeen(() => endpoints.look(), 5000);
