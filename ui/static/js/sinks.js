// The sinks on the page of data: where answers go, and what their receivers did not take.
import { fill, get, make, post } from "./api.js";
import { byId } from "./elements.js";
import { againWhileSeen } from "./while_seen.js";

/** @import { Sink } from "./payloads.d.ts" */

const REFRESH_MILLISECONDS = 2000;

/** @param {Sink} sink */
async function retry(sink) {
  try {
    await post(`/api/sinks/${encodeURIComponent(sink.sink)}/retry`, {});
    tell(null);
  } catch (error) {
    tell(/** @type {Error} */ (error));
  }
  await refresh();
}

/** @param {Error | null} error */
function tell(error) {
  byId("sink-problem").hidden = !error;
  if (error) byId("sink-problem").textContent = error.message;
}

/** @param {Sink} sink */
function row(sink) {
  const reasons = sink.dead_letters.map((letter) => `${JSON.stringify(letter.key ?? letter.row)}: ${letter.reason}`);
  return make(
    "tr",
    { class: sink.status },
    make("td", {}, sink.sink),
    make("td", { class: "text" }, sink.to),
    make("td", {}, sink.mode),
    make("td", { title: sink.problem }, sink.problem ? `${sink.status}: ${sink.problem}` : sink.status),
    make("td", { class: "number" }, String(sink.delivered)),
    make("td", { class: "number" }, String(sink.waiting)),
    make("td", { class: "number", title: reasons.slice(-20).join("\n") }, String(sink.dead_letters.length)),
    make(
      "td",
      {},
      sink.dead_letters.length ? make("button", { type: "button", onclick: () => retry(sink) }, "Send again") : "",
    ),
  );
}

async function refresh() {
  const sinks = await get("/api/sinks").catch(() => null);
  if (sinks === null) return; // the console is away: the next look may find it
  byId("sinks-section").hidden = sinks.length === 0;
  fill(byId("sinks"), sinks.map(row));
}

againWhileSeen(refresh, REFRESH_MILLISECONDS);
