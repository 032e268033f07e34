// Directions: a place and a wish become a query; its answer becomes a route that moves by itself.
import { make, post } from "../api.js";
import { drawnRoute, mark } from "./plan.js";
import { QueryRows } from "./subscription.js";
import { byId } from "../elements.js";

/** A part of a route on one level, and how it goes on.
 *  @typedef {{ level: number, points: Node[], metres: number, by: string | null, to: number | null }} Leg */
/** @import { Query, RouteRow, EdgeProperties } from "../payloads.d.ts" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { Told } from "./subscription.js" */
/** @import { Node } from "./site.js" */

/** Whether a row has a route.
 *  @param {RouteRow} row
 *  @returns {row is RouteRow & { mid: string, path: string }} */
const isRoute = (row) => row.mid !== null && row.path !== null;

export class Directions {
  /** @param {Plan} plan
   *  @param {LiveLayers} live
   *  @param {(wanted: Choice) => void} choose
   *  @param {() => void} changed */
  constructor(plan, live, choose, changed) {
    this.plan = plan;
    this.live = live;
    this.choose = choose;
    this.changed = changed;
    /** @type {string | null} */
    this.target = null; // machine walked to
    /** @type {{ group: L.LayerGroup, shape: L.Layer }[]} */
    this.drawn = []; // {group, shape}
    this.last = "";
    /** @type {string | null} */
    this.wanted = null; // the place that the address names, until it is there
    /** @type {QueryRows<RouteRow> | null} */
    this.rows = null;
    this.start = byId("route-from", HTMLSelectElement);
    this.software = byId("route-software", HTMLSelectElement);
    this.wheelchair = byId("route-wheelchair", HTMLInputElement);
    const rooms = [...plan.site.spaces.values()].filter((space) => space.point && space.kind !== "outside");
    for (const level of plan.site.levels) {
      const options = rooms
        .filter((room) => room.level === level.ordinal)
        .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
      if (options.length) {
        byId("route-from").append(
          make(
            "optgroup",
            { label: level.name },
            options.map((room) =>
              make("option", { value: room.id }, room.name.includes(room.id) ? room.name : `${room.name} (${room.id})`),
            ),
          ),
        );
      }
    }
    for (const id of ["route-from", "route-software", "route-wheelchair"]) {
      byId(id).addEventListener("change", () => this.ask());
    }
    byId("route-form").addEventListener("submit", (event) => event.preventDefault());
    byId("route-clear").addEventListener("click", () => this.end());
    const given = new URLSearchParams(location.search);
    const [from, software] = [given.get("from"), given.get("software")];
    if (from && software) {
      this.software.value = software;
      this.wanted = from;
      this.from(from);
    }
  }

  /** Start from a room or badge.
   *  @param {string} place */
  from(place) {
    this.start.value = place;
    if (this.start.value === place) this.wanted = null;
    this.ask();
  }

  /** Whether somebody has said what for, but not from where. */
  get asks() {
    return Boolean(this.software.value) && !this.start.value;
  }

  updateBadges() {
    const group = byId("badges", HTMLOptGroupElement);
    const tags = [...this.live.rows("visitors").keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const known = [...group.querySelectorAll("option")].map((option) => option.value);
    // A badge that is out of reach for a moment stays: somebody may have chosen it.
    for (const tag of tags) if (!known.includes(tag)) group.append(make("option", { value: tag }, tag));
    if (this.wanted && tags.includes(this.wanted)) this.from(this.wanted);
  }

  ask() {
    const [from, software] = [this.start.value, this.software.value];
    this.rows?.close();
    this.last = "";
    this.clear();
    byId("route-clear").hidden = !(from || software);
    if (!from || !software) {
      byId("route-answer").replaceChildren(
        ...(software && !from ? [make("p", { class: "quiet" }, "Now click the room where you are.")] : []),
      );
      this.changed();
      return;
    }
    byId("route-answer").replaceChildren(make("p", { class: "quiet" }, "Computing the route…"));
    const wish = { from, software, wheelchair: this.wheelchair.checked };
    this.rows = new QueryRows(
      () => post("/api/route", wish),
      (answer) => this.show(answer, from, software),
    );
  }

  end() {
    this.rows?.close();
    byId("route-form", HTMLFormElement).reset();
    byId("route-answer").replaceChildren();
    byId("route-clear").hidden = true;
    this.clear();
    this.changed();
  }

  clear() {
    for (const { group, shape } of this.drawn) group.removeLayer(shape);
    this.drawn = [];
    this.target = null;
  }

  /** @param {Told<RouteRow>} told
   *  @param {string} from
   *  @param {string} software */
  show({ rows, query, error }, from, software) {
    const row = error ? null : rows.find(isRoute);
    if (row) {
      this.draw(row);
      return;
    }
    this.clear();
    this.last = "";
    const text = error
      ? `${error.message}${error.hint ? ` ${error.hint}` : ""}`
      : query?.error || this.waitingFor(query) || this.noWay(from, software);
    byId("route-answer").replaceChildren(make("p", { class: "quiet" }, text));
    this.changed();
  }

  /** Why the query has no answer yet; empty if it has: there is no way now.
   *  @param {Query | null} query */
  waitingFor(query) {
    const waiting = query?.waiting_for || [];
    if (waiting.includes("static")) return "Spark is warming up. The route appears as soon as the tables are ready.";
    if (waiting.length) return `Computing the route… (waiting for ${waiting.join(", ")})`;
    return query?.status === "starting" ? "Computing the route… " : "";
  }

  /** @param {string} from
   *  @param {string} software */
  noWay(from, software) {
    const wheelchair = this.wheelchair.checked;
    if (this.reaches(from, software, wheelchair)) {
      return `No reachable machine with ${software} is free now. The route appears as soon as one is free.`;
    }
    return wheelchair && this.reaches(from, software, false)
      ? `No route without steps leads from here to a machine with ${software}.`
      : `No route leads from here to a machine with ${software}: the plan does not connect this place to one.`;
  }

  /** Whether the plan has any way from a room or badge to a machine with a package, free or not.
   *  @param {string} from
   *  @param {string} software
   *  @param {boolean} wheelchair */
  reaches(from, software, wheelchair) {
    const start = this.pointOf(from);
    if (!start) return true; // a badge that nobody hears now
    const machines = [...this.plan.site.machines.values()];
    const goals = new Set(machines.filter((found) => found.software.includes(software)).map(({ point }) => point));
    const reached = new Set([start]);
    const next = this.waysOn(wheelchair);
    for (const point of reached) {
      if (goals.has(point)) return true;
      for (const other of next.get(point) || []) reached.add(other);
    }
    return false;
  }

  /** The point of a room, or of the room where a badge is heard.
   *  @param {string} place */
  pointOf(place) {
    const { spaces, sensors } = this.plan.site;
    const detector = this.live.rows("visitors").get(place)?.detector ?? "";
    const heardIn = sensors.get(detector)?.room ?? "";
    return spaces.get(place)?.point ?? spaces.get(heardIn)?.point;
  }

  /** The points next to each point.
   *  @param {boolean} wheelchair
   *  @returns {Map<string, string[]>} */
  waysOn(wheelchair) {
    const next = new Map();
    for (const [ends, edge] of this.plan.site.edges) {
      if (wheelchair && !edge.wheelchair) continue;
      const [src, dst] = ends.split(">");
      const others = next.get(src);
      if (others) others.push(dst);
      else next.set(src, [dst]);
    }
    return next;
  }

  /** @param {RouteRow & { mid: string, path: string }} row */
  draw(row) {
    const text = JSON.stringify(row);
    if (text === this.last) return;
    const moved = this.last && JSON.parse(this.last).mid !== row.mid;
    const first = !this.last;
    this.last = text;
    this.clear();
    this.target = row.mid;
    const points = row.path
      .split(">")
      .map((id) => this.plan.site.points.get(id))
      .filter((point) => point !== undefined);
    const legs = this.legs(points);
    for (const leg of legs) this.drawLeg(leg);
    if (points.length) {
      this.put(
        points[0].level,
        mark(points[0].at, "route-start", { size: 18, label: "start", interactive: false, z: 900 }),
      );
      const machine = this.plan.site.machines.get(row.mid);
      if (machine) {
        this.put(
          machine.level,
          mark(machine.at, "route-end", { size: 26, label: row.mid, interactive: false, z: 700 }),
        );
      }
      if (first) this.plan.show(points[0].level);
    }
    const machine = this.plan.site.machines.get(row.mid);
    const room = machine && this.plan.site.spaces.get(machine.room);
    byId("route-answer").replaceChildren(
      make(
        "p",
        { class: `found${moved ? " moved" : ""}` },
        make("strong", {}, `${Math.round(row.distance)} m`),
        " to ",
        make(
          "button",
          { type: "button", class: "link-button", onclick: () => this.choose({ machine: row.mid }) },
          row.mid,
        ),
      ),
      make(
        "p",
        { class: "quiet small" },
        room ? `${room.name}, ${this.plan.levelName(room.level)}` : "",
        moved ? " · new target: the previous machine is no longer free" : "",
      ),
      make("ol", { class: "steps" }, this.steps(legs)),
    );
    this.changed();
  }

  /** Cut a path where it changes level: [{level, points, metres, by, to}].
   *  @param {Node[]} points */
  legs(points) {
    /** @type {Leg[]} */
    const legs = [];
    /** @type {Leg | null} */
    let leg = null;
    for (const [index, point] of points.entries()) {
      leg ??= { level: point.level, points: [], metres: 0, by: null, to: null };
      leg.points.push(point);
      const next = points[index + 1];
      if (!next) break;
      const edge = this.plan.site.edges.get(`${point.id}>${next.id}`);
      if (next.level === point.level) {
        leg.metres += edge?.distance || 0;
      } else {
        legs.push({ ...leg, by: edge?.kind || "stairs", to: next.level });
        leg = null;
      }
    }
    if (leg) legs.push(leg);
    return legs;
  }

  /** @param {Leg} leg */
  drawLeg(leg) {
    const places = leg.points.map((point) => point.at);
    if (places.length > 1) {
      this.put(leg.level, drawnRoute(places));
    }
    const { to } = leg;
    if (to !== null) {
      const arrow = to > leg.level ? "▲" : "▼";
      this.put(
        leg.level,
        mark(places[places.length - 1], "route-change", {
          size: 24,
          text: arrow,
          label: `${leg.by} to ${this.plan.levelName(to)}`,
          z: 900,
        }).on("click", () => this.plan.show(to)),
      );
    }
  }

  /** @param {number} level
   *  @param {L.Layer} shape */
  put(level, shape) {
    const group = this.plan.group(level, "route");
    group.addLayer(shape);
    this.drawn.push({ group, shape });
  }

  /** @param {Leg[]} legs */
  steps(legs) {
    const steps = [];
    for (const leg of legs) {
      const corridors = leg.points
        .map(({ room }) => this.plan.site.spaces.get(room ?? ""))
        .filter((space) => space?.kind === "corridor");
      const through = [...new Set(corridors.map((space) => space?.name))];
      if (leg.metres > 0.5) {
        steps.push(
          make(
            "li",
            {},
            make(
              "button",
              { type: "button", class: "link-button", onclick: () => this.plan.show(leg.level) },
              this.plan.levelName(leg.level),
            ),
            `: walk ${Math.round(leg.metres)} m${through.length ? ` by ${through.join(", ")}` : ""}`,
          ),
        );
      }
      if (leg.to !== null) {
        steps.push(
          make(
            "li",
            {},
            `${leg.by === "lift" ? "Take the lift" : `Take the ${leg.by}`} to ${this.plan.levelName(leg.to)}`,
          ),
        );
      }
    }
    return steps.length ? steps : [make("li", {}, "You have arrived")];
  }
}
