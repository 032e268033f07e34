// What a device offers to be read: records of values, of which one chooses those that become columns.
import { fill, make, text } from "../api.js";

/** @import { OfferedRecord, OfferedValue } from "../payloads.d.ts" */

/** Addresses by the name of their record.
 *  @typedef {Record<string, string[]>} Chosen */

/** @param {OfferedValue} value
 *  @param {() => void} changed */
function choice(value, changed) {
  const box = make("input", { type: "checkbox", "data-address": value.address, checked: true, onchange: changed });
  const now = value.sample === null ? "" : ` = ${text(value.sample)}${value.unit ? ` ${value.unit}` : ""}`;
  const kind = [value.type?.toLowerCase(), value.address].filter(Boolean).join(", ");
  return make("label", {}, box, make("b", {}, value.name), now, make("span", { class: "size" }, kind));
}

/** @param {HTMLElement} place
 *  @param {OfferedRecord[]} records
 *  @param {(record: string) => void} changed called with the record of which others are chosen now */
export function showOffers(place, records, changed) {
  fill(
    place,
    records.map((record) => {
      const notify = () => changed(record.name);
      const all = (/** @type {boolean} */ wanted) => {
        for (const box of item.querySelectorAll("input")) box.checked = wanted;
        notify();
      };
      const item = make(
        "li",
        { "data-record": record.name },
        make("p", {}, make("strong", {}, record.name)),
        record.values.map((value) => choice(value, notify)),
        make(
          "div",
          { class: "acts" },
          make("button", { type: "button", onclick: () => all(false) }, "None"),
          make("button", { type: "button", onclick: () => all(true) }, "All"),
        ),
      );
      return item;
    }),
  );
}

/** What is chosen.
 *  @param {HTMLElement} place
 *  @returns {Chosen} */
export function chosenOf(place) {
  /** @type {Chosen} */
  const chosen = {};
  for (const item of place.querySelectorAll("li")) {
    const boxes = [...item.querySelectorAll("input")].filter((box) => box.checked);
    const record = item.dataset.record ?? "";
    chosen[record] = [...(chosen[record] ?? []), ...boxes.map((box) => box.dataset.address ?? "")];
  }
  return chosen;
}
