// A display on a screen of its own.
import { Answers } from "./answers.js";
import { make } from "./api.js";

const byId = (id) => document.getElementById(id);
const name = document.body.dataset.display;
const answers = new Answers(byId("answers"));

const source = new EventSource(`/api/displays/events?name=${encodeURIComponent(name)}`);
source.addEventListener("display", (event) => {
  const display = JSON.parse(event.data);
  byId("title").textContent = display.title;
  byId("lost").hidden = true;
  answers.show(display);
});
source.addEventListener("gone", () => byId("answers").replaceChildren(make("p", { class: "empty" }, "This display was dropped.")));
source.addEventListener("open", () => (byId("lost").hidden = true));
source.addEventListener("error", () => (byId("lost").hidden = false));
