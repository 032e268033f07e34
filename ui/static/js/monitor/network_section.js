// The section with the network of shared computations: asks for it while it is open and seen.
import { count, fill, get, make, problemOf } from "../api.js";
import { byId } from "../elements.js";
import { againWhileSeen } from "../while_seen.js";
import { NetworkDetails, queriesText } from "./network_details.js";
import { NetworkDrawing, classOfKind, signOfKind } from "./network_drawing.js";

/** @import { Problem, SharedNetwork } from "../payloads.d.ts" */
/** @import { Chosen } from "./network_drawing.js" */

const NEWS_MS = 3000;
const MOST = 400; // nodes that are asked for

export class NetworkSection {
  /** @param {(query: string) => void} plan shows the plan of a query */
  constructor(plan) {
    this.place = byId("network", HTMLDetailsElement);
    /** @type {SharedNetwork | null} */
    this.network = null;
    /** @type {Problem | null} */
    this.trouble = null;
    /** @type {Chosen | null} */
    this.chosen = null;
    /** @type {(() => void) | null} */
    this.rest = null;
    this.drawing = new NetworkDrawing(byId("network-plan", SVGSVGElement), (chosen) => {
      this.chosen = chosen;
      this.details.update(chosen, this.network?.nodes ?? []);
    });
    this.details = new NetworkDetails(byId("network-details"), {
      go: (id) => this.go(id),
      open: (id) => {
        this.drawing.opened.add(id);
        this.drawing.choose(null);
        this.show();
      },
      plan,
    });
    const width = byId("network-width", HTMLSelectElement);
    width.addEventListener("change", () => {
      this.drawing.width = width.value === "bytes" ? "bytes" : "queries";
      this.show();
    });
    const { camera } = this.drawing;
    byId("network-closer").addEventListener("click", () => camera.zoom(0.75));
    byId("network-farther").addEventListener("click", () => camera.zoom(1 / 0.75));
    byId("network-whole").addEventListener("click", () => camera.fit({ all: true }));
    this.place.addEventListener("toggle", () => (this.place.open ? this.open() : this.close()));
    this.place.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.drawing.selected === null) return;
      event.preventDefault(); // the plan above keeps what is chosen there
      this.drawing.choose(null);
    });
    if (location.hash === "#network") {
      this.place.open = true;
      this.place.scrollIntoView();
    }
  }

  open() {
    this.rest ??= againWhileSeen(() => void this.look(), NEWS_MS);
    this.show();
  }

  close() {
    this.rest?.();
    this.rest = null;
  }

  /** Let the queries of a run stand out.
   *  @param {string | null} run */
  of(run) {
    if (run === this.drawing.run) return;
    this.drawing.run = run;
    if (this.place.open) this.show();
  }

  async look() {
    try {
      this.network = await get(`/api/network?most=${MOST}`);
      this.trouble = null;
    } catch (error) {
      this.trouble = problemOf(error);
    }
    this.show();
  }

  /** @param {string} id of a source or node; of one that is drawn with others, these */
  go(id) {
    const within = [...this.drawing.things.values()].find(
      ({ unit, pill }) => unit?.nodes.some(({ node }) => node === id) || pill?.nodes.some(({ node }) => node === id),
    );
    const found = this.drawing.things.has(id) ? id : within?.id;
    if (found === undefined) return;
    this.drawing.choose(found);
    this.drawing.camera.show(this.drawing.places.get(found));
    this.drawing.marks.get(found)?.focus({ preventScroll: true }); // the button that led here is gone
  }

  show() {
    const nodes = this.network?.nodes ?? [];
    if (nodes.length) this.drawing.update(nodes);
    else this.drawing.clear();
    if (this.chosen) this.chosen = this.drawing.things.get(this.chosen.id) ?? null;
    this.details.update(this.chosen, nodes);
    byId("network-plan").classList.toggle("empty-plan", !nodes.length);
    byId("network-facts").textContent = this.facts();
    const box = byId("network-message");
    const words = this.words(nodes.length > 0);
    box.hidden = !words;
    box.className = nodes.length ? "over" : "instead";
    if (words) fill(box, words);
    const kinds = [...new Set(nodes.map(({ kind }) => kind))].sort();
    const legend = byId("network-kinds");
    if (legend.dataset.kinds === kinds.join()) return;
    legend.dataset.kinds = kinds.join();
    fill(
      legend,
      kinds.map((kind) =>
        make("li", {}, make("span", { class: `kind-mark ${classOfKind(kind)}` }, signOfKind(kind)), kind),
      ),
    );
  }

  facts() {
    if (!this.network?.nodes.length) return "";
    const { nodes, queries, hidden, unlisted } = this.network;
    const all = nodes.length + unlisted + hidden;
    return `${count(all, "node")}, ${queriesText(queries)}`;
  }

  /** @param {boolean} drawn */
  words(drawn) {
    if (this.trouble) return [make("strong", {}, this.trouble.message), this.trouble.hint && ` ${this.trouble.hint}`];
    if (!this.network) return "Loading the network…";
    const { hidden, unlisted } = this.network;
    if (!drawn) {
      return hidden
        ? "Queries run, but none that you may read."
        : [
            "No query runs. Start one on ",
            make("a", { href: "/queries" }, "Queries"),
            ", then return to see what it reads.",
          ];
    }
    const said = [
      unlisted && `${count(unlisted, "node")} on which fewer queries rest`,
      hidden && `${count(hidden, "node")} of queries that you may not read`,
    ].filter(Boolean);
    return said.length ? `Not drawn: ${said.join(", and ")}.` : "";
  }
}
