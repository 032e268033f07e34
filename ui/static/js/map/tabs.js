// Tabs inside a pane.
import { make } from "../api.js";

/** Parts of a pane, of which one is seen.
 *  @param {[title: string, part: HTMLElement][]} parts */
export function tabs(parts) {
  const buttons = parts.map(([title, part], index) =>
    make(
      "button",
      {
        type: "button",
        role: "tab",
        "aria-selected": String(index === 0),
        onclick: (event) => {
          parts.forEach(([, other]) => (other.hidden = other !== part));
          for (const button of buttons) button.setAttribute("aria-selected", String(button === event.target));
        },
      },
      title,
    ),
  );
  parts.forEach(([, part], index) => (part.hidden = index > 0));
  return make(
    "div",
    { class: "tabbed" },
    make("div", { class: "tabs", role: "tablist" }, buttons),
    parts.map(([, part]) => part),
  );
}
