// Directions: a place and a wish become a query; its answer becomes a route that moves by itself.
import { make, post } from "../api.js";
import { mark } from "./plan.js";
import { QueryRows } from "./subscription.js";

const byId = (id) => document.getElementById(id);

export class Directions {
  constructor(plan, live, choose, changed) {
    this.plan = plan;
    this.live = live;
    this.choose = choose;
    this.changed = changed;
    this.target = null; // machine walked to
    this.drawn = []; // {group, shape}
    this.last = "";
    if (!byId("route-form")) return;
    const rooms = [...plan.site.spaces.values()].filter((space) => space.point && space.kind !== "outside");
    for (const level of plan.site.levels) {
      const options = rooms
        .filter((room) => room.level === level.ordinal)
        .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
      if (options.length)
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
    for (const id of ["route-from", "route-software", "route-wheelchair"])
      byId(id).addEventListener("change", () => this.ask());
    byId("route-form").addEventListener("submit", (event) => event.preventDefault());
    byId("route-clear").addEventListener("click", () => this.end());
    const given = new URLSearchParams(location.search);
    if (given.get("from") && given.get("software")) {
      byId("route-software").value = given.get("software");
      this.wanted = given.get("from");
      this.from(this.wanted);
    }
  }

  /** Start from a room or badge. */
  from(place) {
    byId("route-from").value = place;
    if (byId("route-from").value === place) this.wanted = null;
    this.ask();
  }

  updateBadges() {
    const group = byId("badges");
    if (!group) return;
    const tags = [...this.live.rows("visitors").keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const known = [...group.children].map((option) => option.value);
    // A badge that is out of reach for a moment stays: somebody may have chosen it.
    for (const tag of tags) if (!known.includes(tag)) group.append(make("option", { value: tag }, tag));
    if (this.wanted && tags.includes(this.wanted)) this.from(this.wanted);
  }

  ask() {
    const [from, software] = [byId("route-from").value, byId("route-software").value];
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
    const wish = { from, software, wheelchair: byId("route-wheelchair").checked };
    this.rows = new QueryRows(
      () => post("/api/route", wish),
      (answer) => this.show(answer, from, software),
    );
  }

  end() {
    this.rows?.close();
    byId("route-form").reset();
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

  show({ rows, query, error }, from, software) {
    const say = (...text) => {
      this.clear();
      this.last = "";
      byId("route-answer").replaceChildren(make("p", { class: "quiet" }, ...text));
      this.changed();
    };
    if (error) return say(error.message, error.hint ? ` ${error.hint}` : "");
    const row = rows.find((candidate) => candidate.mid !== null && candidate.path !== null);
    if (row) return this.draw(row, from);
    if (query?.error) return say(query.error);
    const waiting = query?.waiting_for || [];
    if (waiting.includes("static"))
      return say("Spark is warming up. The route appears as soon as the tables are ready.");
    if (query?.status === "starting" || waiting.length)
      return say(`Computing the route… ${waiting.length ? `(waiting for ${waiting.join(", ")})` : ""}`);
    const wheelchair = byId("route-wheelchair").checked;
    if (!this.reaches(from, software, wheelchair))
      return say(
        wheelchair && this.reaches(from, software, false)
          ? `No route without steps leads from here to a machine with ${software}.`
          : `No route leads from here to a machine with ${software}: the plan does not connect this place to one.`,
      );
    return say(`No reachable machine with ${software} is free now. The route appears as soon as one is free.`);
  }

  /** Whether the plan has any way from a room or badge to a machine with a package, free or not. */
  reaches(from, software, wheelchair) {
    const { spaces, sensors, machines, edges } = this.plan.site;
    const heardIn = sensors.get(this.live.rows("visitors").get(from)?.detector)?.room;
    const start = spaces.get(from)?.point ?? spaces.get(heardIn)?.point;
    if (!start) return true; // a badge that nobody hears now
    const goals = new Set(
      [...machines.values()].filter((machine) => machine.software.includes(software)).map((machine) => machine.point),
    );
    const next = new Map();
    for (const [ends, edge] of edges) {
      if (wheelchair && !edge.wheelchair) continue;
      const [src, dst] = ends.split(">");
      if (next.has(src)) next.get(src).push(dst);
      else next.set(src, [dst]);
    }
    const reached = new Set([start]);
    for (const point of reached) {
      if (goals.has(point)) return true;
      for (const other of next.get(point) || []) reached.add(other);
    }
    return false;
  }

  draw(row, from) {
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
      .filter(Boolean);
    const legs = this.legs(points);
    for (const leg of legs) this.drawLeg(leg);
    if (points.length) {
      this.put(
        points[0].level,
        mark(points[0].at, "route-start", { size: 18, label: "start", interactive: false, z: 900 }),
      );
      const machine = this.plan.site.machines.get(row.mid);
      if (machine)
        this.put(
          machine.level,
          mark(machine.at, "route-end", { size: 26, label: row.mid, interactive: false, z: 700 }),
        );
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

  /** Cut a path where it changes level: [{level, points, metres, by, to}]. */
  legs(points) {
    const legs = [];
    let leg = null;
    points.forEach((point, index) => {
      if (!leg) leg = { level: point.level, points: [], metres: 0, by: null, to: null };
      leg.points.push(point);
      const next = points[index + 1];
      if (!next) return;
      const edge = this.plan.site.edges.get(`${point.id}>${next.id}`);
      if (next.level === point.level) {
        leg.metres += edge?.distance || 0;
      } else {
        Object.assign(leg, { by: edge?.kind || "stairs", to: next.level });
        legs.push(leg);
        leg = null;
      }
    });
    if (leg) legs.push(leg);
    return legs;
  }

  drawLeg(leg) {
    const places = leg.points.map((point) => point.at);
    if (places.length > 1)
      this.put(
        leg.level,
        L.polyline.antPath(places, {
          color: "#0b6fd6",
          pulseColor: "#ffffff",
          weight: 5,
          opacity: 0.9,
          delay: 900,
          dashArray: [10, 22],
          interactive: false,
          className: "route",
        }),
      );
    if (leg.to !== null) {
      const arrow = leg.to > leg.level ? "▲" : "▼";
      this.put(
        leg.level,
        mark(places[places.length - 1], "route-change", {
          size: 24,
          text: arrow,
          label: `${leg.by} to ${this.plan.levelName(leg.to)}`,
          z: 900,
        }).on("click", () => this.plan.show(leg.to)),
      );
    }
  }

  put(level, shape) {
    const group = this.plan.group(level, "route");
    group.addLayer(shape);
    this.drawn.push({ group, shape });
  }

  steps(legs) {
    const steps = [];
    for (const leg of legs) {
      const through = [
        ...new Set(
          leg.points
            .map((point) => this.plan.site.spaces.get(point.room))
            .filter((space) => space?.kind === "corridor")
            .map((space) => space.name),
        ),
      ];
      if (leg.metres > 0.5)
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
      if (leg.to !== null)
        steps.push(
          make(
            "li",
            {},
            `${leg.by === "lift" ? "Take the lift" : `Take the ${leg.by}`} to ${this.plan.levelName(leg.to)}`,
          ),
        );
    }
    return steps.length ? steps : [make("li", {}, "You have arrived")];
  }
}
