// A display on a screen of its own.
import { Answers } from "./answers.js";
import { make } from "./api.js";
import { eventsWhileSeen } from "./events_while_seen.js";
import { byId } from "./elements.js";

/** @import { Display } from "./payloads.d.ts" */

const name = document.body.dataset.display ?? "";
const answers = new Answers(byId("answers"));

/** @param {Display} display */
function show(display) {
  byId("title").textContent = display.title;
  answers.show(display);
}

function gone() {
  byId("answers").replaceChildren(make("p", { class: "empty" }, "This display was dropped."));
}

eventsWhileSeen(
  `/api/displays/events?name=${encodeURIComponent(name)}`,
  { display: show, gone },
  (isLost) => (byId("lost").hidden = !isLost),
);
