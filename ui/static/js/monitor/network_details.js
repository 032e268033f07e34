// What is known of a chosen part of the network: its computation, where it runs, what rests on it.
import { count, fill, grouped, make, moment } from "../api.js";
import { classOfKind, kindOf, pillName, signOfKind } from "./network_drawing.js";
import { number } from "./reported.js";

/** @import { NetworkNode } from "../payloads.d.ts" */
/** @import { Chosen } from "./network_drawing.js" */
/** @import { Pill, Unit } from "./network_fold.js" */

const MOST = 40; // nodes of several that are alike

/** A number of queries in words.
 *  @param {number} queries */
export const queriesText = (queries) => (queries === 1 ? "1 query" : `${grouped(queries)} queries`);

export class NetworkDetails {
  /** @param {Element} place
   *  @param {{ go: (id: string) => void, open: (id: string) => void, plan: (query: string) => void }} does choose
   *    another part; draw each of some nodes that are one; show the plan of a query */
  constructor(place, does) {
    this.place = place;
    this.does = does;
    this.signature = "";
  }

  /** @param {Chosen | null} chosen
   *  @param {NetworkNode[]} nodes all */
  update(chosen, nodes) {
    const signature = JSON.stringify([chosen, chosen && nodes.length]);
    if (signature === this.signature) return;
    this.signature = signature;
    fill(this.place, this.content(chosen, nodes));
  }

  /** @param {Chosen | null} chosen
   *  @param {NetworkNode[]} nodes */
  content(chosen, nodes) {
    if (!chosen) {
      return make(
        "p",
        { class: "quiet" },
        "Choose a source, a node or queries: what they rest on, and what rests on them, stands out.",
      );
    }
    const { source, unit, pill } = chosen;
    if (source !== undefined) return this.ofSource(source, nodes);
    if (pill) return this.answers(pill);
    if (unit && unit.nodes.length > 1) return this.several(unit);
    return unit ? this.one(unit.nodes[0]) : null;
  }

  /** @param {Pill} pill */
  answers(pill) {
    const { id, nodes } = pill;
    return [
      make("h3", {}, pillName(pill)),
      nodes.length > 1 && make("button", { type: "button", onclick: () => this.does.open(id) }, "Draw each"),
      nodes.slice(0, MOST).map((node) => this.answer(node)),
      nodes.length > MOST && make("p", { class: "quiet" }, `and ${nodes.length - MOST} more nodes`),
    ];
  }

  /** @param {string} source
   *  @param {NetworkNode[]} nodes */
  ofSource(source, nodes) {
    const readers = nodes.filter(({ sources }) => sources.includes(source));
    return [
      make("h3", {}, `Source ${source}`),
      make("p", {}, readers.length === 1 ? "1 node reads it itself." : `${readers.length} nodes read it themselves.`),
      this.links(readers.map(({ node }) => node)),
    ];
  }

  /** @param {Unit} unit */
  several({ id, nodes, resting }) {
    return [
      make("h3", {}, mark(kindOf(nodes)), ` ${nodes.length} nodes that are alike`),
      make(
        "p",
        { class: "quiet" },
        `They read the same, and at most one query rests on each: ${queriesText(resting)} in all.`,
      ),
      make("button", { type: "button", onclick: () => this.does.open(id) }, "Draw each"),
      nodes.slice(0, MOST).map((node) => make("p", { class: "operator-line" }, `${node.node}  ${node.computes}`)),
      nodes.length > MOST && make("p", { class: "quiet" }, `and ${grouped(nodes.length - MOST)} more`),
    ];
  }

  /** A node that gives queries their answer.
   *  @param {NetworkNode} node */
  answer(node) {
    const beyond = node.direct - node.queries.length;
    return [
      make("p", {}, `Node ${node.node}: ${queriesText(node.direct)}`, node.rows === null ? "" : `, ${rowsText(node)}`),
      node.kind !== "rows" && make("p", { class: "operator-line" }, node.computes),
      make(
        "p",
        { class: "related" },
        node.queries.map(({ id, name }) =>
          make("button", { type: "button", title: "Show its plan", onclick: () => this.does.plan(id) }, name || id),
        ),
      ),
      beyond > 0 && make("p", { class: "quiet small" }, `${beyond} more, or of others`),
    ];
  }

  /** @param {NetworkNode} node */
  one(node) {
    const measured = node.bytes_per_second !== null && node.messages_per_second !== null;
    /** @type {[string, string | null][]} */
    const facts = [
      ["rest on it", queriesText(node.resting)],
      ["whose answer it is", node.direct ? queriesText(node.direct) : null],
      ["at", node.sites.join(", ")],
      ["rows", node.rows === null ? null : number(node.rows)],
      [
        "sends",
        measured ? `${number(node.messages_per_second)} messages/s, ${number(node.bytes_per_second)} bytes/s` : null,
      ],
      ["run", `${node.run}, fragment ${node.fragment}`],
      ["started for", node.kept ? "kept for others" : node.owner || "a query that you may not see"],
      ["since", moment(node.since)],
    ];
    return [
      make("h3", {}, mark(node.kind), ` Node ${node.node} `, make("span", { class: "quiet" }, node.kind)),
      make("p", { class: "operator-line" }, node.computes),
      make(
        "table",
        { class: "properties" },
        make(
          "tbody",
          {},
          facts
            .filter(([, value]) => value !== null)
            .map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value))),
        ),
      ),
      node.sources.length + node.reads.length > 0 && make("p", { class: "quiet small" }, "Reads"),
      this.links([...node.sources.map((source) => `source ${source}`), ...node.reads]),
      node.readers.length > 0 && make("p", { class: "quiet small" }, "Read by"),
      this.links(node.readers, node.more_readers),
      node.direct > 0 && this.answer({ ...node, kind: "rows" }), // what it computes is said above
    ];
  }

  /** @param {string[]} ids of sources and nodes
   *  @param {number} unnamed how many there are besides */
  links(ids, unnamed = 0) {
    const beyond = Math.max(ids.length - MOST, 0) + unnamed;
    return (
      ids.length > 0 &&
      make(
        "p",
        { class: "related" },
        ids
          .slice(0, MOST)
          .map((id) =>
            make(
              "button",
              { type: "button", onclick: () => this.does.go(id) },
              id.startsWith("source ") ? id.slice(7) : id,
            ),
          ),
        beyond > 0 && `and ${beyond} more`,
      )
    );
  }
}

/** @param {NetworkNode} node */
const rowsText = ({ rows }) => count(rows ?? 0, "row");

/** @param {string} kind */
const mark = (kind) =>
  make("span", { class: `kind-mark ${classOfKind(kind)}`, "aria-hidden": "true" }, signOfKind(kind));
