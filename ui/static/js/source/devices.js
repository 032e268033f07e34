// Devices that have announced themselves, each kind with the statement that one click creates.
import { count, fill, make, post, problemOf } from "../api.js";

/** @import { Proposal } from "../payloads.d.ts" */

/** @typedef {{ edit: (text: string) => void, adopted: (name: string) => void }} Acts */

/** @param {Proposal} proposal
 *  @param {Acts} acts */
function kind(proposal, acts) {
  const said = make("p", { class: "quiet-line", role: "status" });
  const adopt = make("button", { type: "button", class: "primary", onclick: () => create() }, "Adopt");
  const edit = make("button", { type: "button", onclick: () => acts.edit(proposal.text) }, "Edit");

  async function create() {
    adopt.disabled = true;
    try {
      await post("/api/statements", { text: proposal.text });
      adopt.textContent = "Adopted";
      acts.adopted(proposal.name);
    } catch (error) {
      const { message, hint } = problemOf(error);
      said.textContent = [message, hint].filter(Boolean).join(" ");
      adopt.disabled = false;
    }
  }

  const columns = proposal.columns.map(({ name }) => name).join(", ");
  const devices = proposal.topics.join(", ");
  return make(
    "li",
    { "data-source": proposal.name },
    make("p", {}, make("strong", {}, proposal.name), ` ${proposal.title}`),
    make("p", { class: "quiet-line" }, `${count(proposal.samples, "device")}: ${devices}`),
    make("code", {}, columns),
    said,
    make("div", { class: "acts" }, edit, adopt),
  );
}

/** @param {HTMLElement} place
 *  @param {Proposal[]} proposals
 *  @param {Acts} acts */
export function showDevices(place, proposals, acts) {
  fill(
    place,
    proposals.map((proposal) => kind(proposal, acts)),
  );
}
