// The sinks on the page of data: where answers go, and the messages that their receivers have refused.
import { count, fill, get, make, moment, post } from "./api.js";
import { byId, focusedIn, focusOn } from "./elements.js";
import { againWhileSeen } from "./while_seen.js";

/** @import { DeadLetter, Row, Sink } from "./payloads.d.ts" */

const REFRESH_MILLISECONDS = 2000;
const COLUMNS = 9;

const body = byId("sinks");
const dialog = byId("sink-ask", HTMLDialogElement);
/** @type {Set<string>} */
const opened = new Set(); // sinks whose dead letters are shown
/** @type {(() => Promise<unknown>) | null} */
let asked = null; // what the dialog asks about

/** @param {Error | null} error */
function tell(error) {
  byId("sink-problem").hidden = !error;
  if (error) byId("sink-problem").textContent = error.message;
}

/** Do something, say what went wrong, and look again.
 *  @param {() => Promise<unknown>} deed */
async function act(deed) {
  try {
    await deed();
    tell(null);
  } catch (error) {
    tell(/** @type {Error} */ (error));
  }
  await refresh();
}

/** @param {string} title
 *  @param {string} text
 *  @param {string} really
 *  @param {() => Promise<unknown>} deed */
function ask(title, text, really, deed) {
  byId("sink-ask-title").textContent = title;
  byId("sink-ask-text").textContent = text;
  byId("sink-ask-really").textContent = really;
  asked = deed;
  dialog.showModal();
  byId("sink-ask-keep").focus();
}

/** @param {Sink} sink */
function drop(sink) {
  const text =
    sink.connector === "mqtt" && sink.mode === "upsert"
      ? "Its query stops, and its retained messages on the broker are emptied."
      : "Its query stops, and messages that wait are not sent.";
  ask(`Drop sink ${sink.sink}?`, text, "Drop", async () => {
    const [result] = await post("/api/statements", { text: `DROP SINK "${sink.sink.replaceAll('"', '""')}"` });
    if (result?.warnings.length) throw new Error(result.warnings.join("\n"));
  });
}

/** @param {Sink} sink */
function discard(sink) {
  ask(
    `Discard ${count(sink.dead_letters.length, "dead letter")} of ${sink.sink}?`,
    "The receiver never gets these messages.",
    "Discard",
    () => post(`/api/sinks/${encodeURIComponent(sink.sink)}/discard`, {}),
  );
}

/** @param {string} name
 *  @param {string} label
 *  @param {() => unknown} onclick
 *  @param {Record<string, string | boolean>} more */
function button(name, label, onclick, more = {}) {
  return make("button", { type: "button", "data-focus": `${label} ${name}`, onclick, ...more }, label);
}

/** @param {Sink} sink */
function toggle(sink) {
  if (!opened.delete(sink.sink)) opened.add(sink.sink);
  refresh();
}

/** @param {Sink} sink */
function row(sink) {
  const { sink: name, dead_letters: dead } = sink;
  const isOpen = dead.length > 0 && opened.has(name);
  const more = {
    "aria-expanded": String(isOpen),
    "aria-label": `Dead letters of ${name}`,
    "data-focus": `dead ${name}`,
  };
  const counted = dead.length ? button(name, String(dead.length), () => toggle(sink), more) : "0";
  return make(
    "tr",
    { class: sink.status },
    make("td", {}, name),
    make("td", { class: "text" }, sink.to),
    make("td", {}, sink.mode),
    make("td", {}, sink.problem ? `${sink.status}: ${sink.problem}` : sink.status),
    make("td", { class: "number" }, String(sink.delivered)),
    make("td", { class: "number" }, String(sink.waiting)),
    make("td", { class: "number" }, String(sink.dropped)),
    make("td", { class: "number" }, counted),
    make(
      "td",
      {},
      button(name, "Drop…", () => drop(sink), { class: "danger", "aria-label": `Drop ${name}` }),
    ),
  );
}

/** @param {Row | null} values */
const text = (values) => (values ? JSON.stringify(values) : "");

/** @param {DeadLetter} letter */
function letterRow(letter) {
  const what = letter.row ? text(letter.row) : `${text(letter.key)}: has no row any more`;
  return make(
    "tr",
    {},
    make("td", {}, what),
    make("td", {}, letter.reason),
    make("td", { class: "number" }, String(letter.tries)),
    make("td", { class: "tight", title: letter.given_up }, moment(letter.given_up)),
  );
}

/** @param {Sink} sink */
function letters(sink) {
  if (!sink.dead_letters.length || !opened.has(sink.sink)) return null;
  const again = () => act(() => post(`/api/sinks/${encodeURIComponent(sink.sink)}/retry`, {}));
  const head = ["Message", "Reason", "Tries", "Given up at"].map((label) =>
    make("th", { class: label === "Tries" && "number" }, label),
  );
  return make(
    "tr",
    { class: "dead-letters" },
    make(
      "td",
      { colspan: COLUMNS },
      make(
        "table",
        { class: "rows small", "aria-label": `Dead letters of ${sink.sink}` },
        make("thead", {}, make("tr", {}, head)),
        make("tbody", {}, sink.dead_letters.map(letterRow)),
      ),
      make(
        "div",
        { class: "buttons" },
        button(sink.sink, "Discard…", () => discard(sink)),
        button(sink.sink, "Send again", again),
      ),
    ),
  );
}

async function refresh() {
  const sinks = await get("/api/sinks").catch(() => null);
  if (sinks === null) return; // the console is away: the next look may find it
  byId("sinks-section").hidden = sinks.length === 0 && byId("sink-problem").hidden;
  const focused = focusedIn(body)?.dataset.focus;
  fill(
    body,
    sinks.flatMap((sink) => [row(sink), letters(sink)]),
  );
  if (focused) focusOn(body, `[data-focus="${CSS.escape(focused)}"]`);
}

byId("sink-ask-keep").addEventListener("click", () => dialog.close());
byId("sink-ask-really").addEventListener("click", () => {
  dialog.close();
  if (asked) act(asked);
});

againWhileSeen(refresh, REFRESH_MILLISECONDS);
