// The right pane: a machine, a room, or the whole site.
import { headedTable, make } from "../api.js";
import { byId } from "../elements.js";
import { STATES } from "./desks.js";
import { actions } from "./simulation.js";
import { simulatedWords } from "./site.js";
import { tabs } from "./tabs.js";

/** @typedef {string | number | null | undefined} Fact */
/** @import { Order } from "./simulation.js" */
/** @import { Layer } from "../payloads.d.ts" */
/** @import { Desks } from "./desks.js" */
/** @import { Directions } from "./directions.js" */
/** @import { LiveLayers } from "./layers.js" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { Rooms } from "./rooms.js" */
/** @import { Machine, Sensor, Space } from "./site.js" */

const pane = byId("details");
/** @param {number | null | undefined} share */
const percent = (share) => (share === null || share === undefined ? null : `${Math.round(share * 100)} %`);
/** @param {string} iso */
const time = (iso) => new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

const ROOM_STATES = {
  open: "lights on",
  dark: "lights off",
  reserved: "reserved now",
  stale: "stale: its gateway is offline",
  unknown: "no data yet",
  plain: "no sensors here",
};
const DESK_WORDS = {
  free: "free",
  idle: "idle",
  taken: "in use",
  busy: "in use",
  stale: "stale",
  unknown: "unknown",
};

/** @param {number | null | undefined} value
 *  @param {string} unit */
const withUnit = (value, unit) => (value === null || value === undefined ? null : `${value.toFixed(1)} ${unit}`);

/** @param {Sensor[]} sensors */
function sensorsText(sensors) {
  const simulated = sensors.filter((sensor) => sensor.simulated).length;
  if (simulated === sensors.length) return `${simulated}, simulated`;
  return `${sensors.length}${simulated ? `, ${simulated} of them simulated` : ""}`;
}

export class Details {
  /** @param {{ plan: Plan, live: LiveLayers, rooms: Rooms, desks: Desks, directions?: Directions }} parts
   *  @param {(wanted: Choice) => void} choose */
  constructor({ plan, live, rooms, desks, directions }, choose) {
    this.plan = plan;
    this.live = live;
    this.rooms = rooms;
    this.desks = desks;
    this.directions = directions;
    this.choose = choose;
    this.chosen = {};
    /** @type {(() => void)[]} */
    this.live_parts = []; // functions that bring parts of the pane up to date
    this.show({});
  }

  /** @param {Choice} chosen */
  show(chosen) {
    this.chosen = chosen;
    this.live_parts = [];
    const machine = this.plan.site.machines.get(chosen.machine ?? "");
    const room = this.plan.site.spaces.get(chosen.room ?? "");
    pane.replaceChildren(...(machine ? this.machine(machine) : room ? this.room(room) : this.overview()));
    this.update();
  }

  update() {
    for (const part of this.live_parts) part();
  }

  /** An element whose text follows the streams; hidden text is a dash.
   *  @param {"dd"} tag
   *  @param {() => Fact} value */
  text(tag, value, attributes = {}) {
    const element = make(tag, attributes);
    this.live_parts.push(() => {
      const now = value();
      const shown = now === null || now === undefined || now === "" ? "–" : String(now);
      if (element.textContent !== shown) element.textContent = shown;
    });
    return element;
  }

  /** @param {([string, Fact | (() => Fact)] | null)[]} pairs */
  facts(pairs) {
    return make(
      "dl",
      { class: "facts-list" },
      pairs
        .filter((pair) => pair !== null)
        .map(([name, value]) => [
          make("dt", {}, name),
          typeof value === "function" ? this.text("dd", value) : make("dd", {}, value || "–"),
        ]),
    );
  }

  /** @template {string} S
   *  @param {() => S} state
   *  @param {Record<S, string>} words */
  badge(state, words) {
    const element = make("span", {});
    this.live_parts.push(() => {
      const now = state();
      const wanted = `badge state-${now}`;
      if (element.className !== wanted) {
        element.className = wanted;
        element.textContent = words[now] || now;
      }
    });
    return element;
  }

  close() {
    return make(
      "button",
      { type: "button", class: "close", "aria-label": "Close", onclick: () => this.choose({}) },
      "×",
    );
  }

  /** @param {Machine} machine */
  machine(machine) {
    const load = () => this.live.rows("loads").get(machine.id);
    const watts = () => this.live.rows("energy").get(machine.id)?.watts;
    const room = this.plan.site.spaces.get(machine.room);
    const level = make("span", {});
    const bar = make("span", { class: "meter" }, level);
    this.live_parts.push(() => (level.style.width = `${Math.round((load()?.cpu || 0) * 100)}%`));
    const now = make(
      "div",
      { role: "tabpanel" },
      this.facts([
        ["Host", machine.host],
        ["CPU", machine.cores ? `${machine.cpu}, ${machine.cores} cores` : machine.cpu],
        ["Load", () => percent(load()?.cpu)],
      ]),
      bar,
      this.facts([
        [
          "Busiest task",
          () => {
            const busiest = load();
            return busiest?.task && `${busiest.task} (${percent(busiest.task_cpu)})`;
          },
        ],
        ["Memory used", () => percent(load()?.memory)],
        ["Users", () => load()?.users],
        ["Temperature", () => withUnit(load()?.celsius, "°C")],
        ["Power", () => withUnit(watts(), "W")],
        ["Software", machine.software.join(", ")],
      ]),
    );
    return [
      make("header", {}, make("h2", {}, machine.id), this.close()),
      this.badge(() => this.desks.state(machine), STATES),
      make(
        "p",
        { class: "quiet small" },
        make(
          "button",
          { type: "button", class: "link-button", onclick: () => this.choose({ room: machine.room }) },
          room?.name || machine.room,
        ),
        `, ${this.plan.levelName(machine.level)}`,
        machine.is_host ? " · this computer, with its measured load" : machine.simulated ? " · simulated machine" : "",
      ),
      tabs([
        ["Now", now],
        ["Energy per task", this.energy(machine)],
      ]),
      this.plan.site.sensed.has(`seat:${machine.id}`)
        ? actions("Simulated desk", [
            ["Sit down here", "sit", machine.id],
            ["Stand up", "leave", machine.id],
          ])
        : "",
    ];
  }

  /** Watts of the machine times each task's share of what its processor does.
   *  @param {Machine} machine */
  energy(machine) {
    const body = make("tbody");
    const note = make("p", { class: "quiet small" });
    this.live_parts.push(() => {
      const watts = this.live.rows("energy").get(machine.id)?.watts;
      const tasks = this.shares(machine);
      const rows = tasks
        .sort((a, b) => b.share - a.share)
        .slice(0, 12)
        .map(({ task, share }) =>
          make(
            "tr",
            {},
            make("td", {}, task),
            make("td", { class: "number" }, percent(share)),
            make("td", { class: "number" }, watts === undefined ? "–" : `${(watts * share).toFixed(1)} W`),
          ),
        );
      body.replaceChildren(...rows);
      note.textContent = !rows.length
        ? "No task is reported."
        : watts === undefined
          ? "No power meter reports for this machine, so only shares are shown."
          : `${watts.toFixed(1)} W in all, divided by processor time.`;
    });
    return make(
      "div",
      { role: "tabpanel" },
      headedTable(
        [make("th", {}, "Task"), make("th", { class: "number" }, "Share"), make("th", { class: "number" }, "Power")],
        body,
      ),
      note,
    );
  }

  /** @param {Machine} machine
   *  @returns {{ task: string, share: number }[]} */
  shares(machine) {
    const measured = [...this.live.rows("tasks").values()].filter((row) => row.mid === machine.id);
    if (measured.length) return measured;
    const load = this.live.rows("loads").get(machine.id);
    if (!load || !load.task || !(load.cpu > 0)) return [];
    const share = Math.min(load.task_cpu / load.cpu, 1);
    return [{ task: load.task, share }, ...(share < 0.995 ? [{ task: "all others", share: 1 - share }] : [])];
  }

  /** @param {Space} room */
  room(room) {
    const { site } = this.plan;
    const machines = [...site.machines.values()].filter((machine) => machine.room === room.id);
    const parts = [
      make("header", {}, make("h2", {}, room.name), this.close()),
      this.badge(() => this.rooms.state(room), ROOM_STATES),
      this.roomFacts(room, machines),
    ];
    if (room.point && document.getElementById("route-form")) {
      parts.push(
        make("p", {}, make("button", { type: "button", onclick: () => this.directions?.from(room.id) }, "Start here")),
      );
    }
    /** @type {Order[]} */
    const orders = [];
    if (site.sensed.has(`light:${room.id}`)) {
      orders.push(["Lights on", "lights_on", room.id], ["Lights off", "lights_off", room.id]);
    }
    if (site.sensed.has(`temperature:${room.id}`)) {
      orders.push(["Heat by 10 °C", "heat", room.id, 10], ["Stop heating", "heat", room.id, 0]);
    }
    if (orders.length) parts.push(actions("Simulated room", orders));
    if (machines.length) parts.push(this.machinesOf(machines));
    return parts;
  }

  /** @param {Space} room
   *  @param {Machine[]} machines */
  roomFacts(room, machines) {
    const sensors = [...this.plan.site.sensors.values()].filter((sensor) => sensor.room === room.id);
    const free = () => machines.filter((machine) => this.desks.state(machine) === "free").length;
    const reserved = () =>
      this.rooms
        .reservations(room.id)
        .map((row) => `${row.title}, ${time(row.starts)} to ${time(row.ends)}`)
        .join("; ");
    const temperature = () => {
      const celsius = withUnit(this.live.rows("temperatures").get(room.id)?.celsius, "°C");
      return celsius && `${celsius} (last minute)`;
    };
    return this.facts([
      ["Room", `${room.id}, ${room.kind}`],
      ["Level", this.plan.levelName(room.level)],
      ["Temperature", temperature],
      ["Reserved", reserved],
      sensors.length ? ["Sensors", sensorsText(sensors)] : null,
      machines.length ? ["Free machines", () => `${free()} of ${machines.length}`] : null,
      ["Gateway", () => room.gateway && `${room.gateway} (${this.live.freshness(room.gateway)})`],
    ]);
  }

  /** @param {Machine[]} machines */
  machinesOf(machines) {
    /** @param {Machine} machine */
    const link = ({ id }) =>
      make("button", { type: "button", class: "link-button", onclick: () => this.choose({ machine: id }) }, id);
    return make(
      "ul",
      { class: "machines" },
      machines.map((machine) =>
        make(
          "li",
          {},
          link(machine),
          " ",
          this.badge(() => this.desks.state(machine), DESK_WORDS),
        ),
      ),
    );
  }

  overview() {
    const site = this.plan.site;
    const parts = [make("header", {}, make("h2", {}, site.name))];
    if (!site.spaces.size) {
      return [
        ...parts,
        this.facts([
          ["Nodes", String(site.motes.size)],
          ["Links received", () => this.live.rows("links").size],
        ]),
        make("p", { class: "quiet" }, "Click two nodes to see the cheapest path between them."),
      ];
    }
    /** @param {string[]} state */
    const count = (state) => () =>
      [...site.machines.values()].filter((machine) => state.includes(this.desks.state(machine))).length;
    /** @param {string} state */
    const lit = (state) => () => [...site.spaces.values()].filter((room) => this.rooms.state(room) === state).length;
    const find = make("input", {
      type: "search",
      list: "places",
      placeholder: "Find a room or machine",
      "aria-label": "Find a room or machine",
    });
    find.addEventListener("change", () => {
      if (site.machines.has(find.value)) this.choose({ machine: find.value });
      else if (site.spaces.has(find.value)) this.choose({ room: find.value });
    });
    const places = make(
      "datalist",
      { id: "places" },
      [...site.spaces.values()].map((room) => make("option", { value: room.id }, room.name)),
      [...site.machines.keys()].map((id) => make("option", { value: id })),
    );
    parts.push(make("p", {}, find, places));
    if (site.machines.size) {
      parts.push(
        this.facts([
          ["Free machines", count(["free"])],
          ["In use", count(["taken", "busy"])],
          ["No data", count(["stale", "unknown"])],
        ]),
      );
    }
    parts.push(
      this.facts([
        ["Rooms lit", lit("open")],
        ["Dark", lit("dark")],
        ["Reserved", lit("reserved")],
        ["Stale", lit("stale")],
        ["Visitors", () => this.live.rows("visitors").size],
        ["Hot sensors", () => this.live.rows("regions").size],
      ]),
    );
    return [
      ...parts,
      make("p", { class: "quiet" }, "Click a room or a machine to see its data."),
      make("p", { class: "quiet small" }, simulatedWords(site)),
    ];
  }
}
