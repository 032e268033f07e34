// Displays and alarms at their places on the map.
import { Displays } from "./displays.js";
import { eventsWhileSeen } from "../events_while_seen.js";

export class Notices {
  constructor(plan, choose) {
    this.plan = plan;
    this.choose = choose;
    this.displays = new Displays(plan);
    this.alarms = new Map(); // id of a row -> {marker, group}
    const handlers = {
      display: (display) => this.displays.show(display),
      displays: (names) => this.displays.only(names),
      gone: ({ name }) => this.displays.gone(name),
      alarms: (found) => this.raise(found),
    };
    eventsWhileSeen("/api/notices/events", handlers, () => {}); // the layers' stream says that the console is away
  }

  raise(alarms) {
    const raised = new Map();
    for (const alarm of alarms)
      for (const row of alarm.rows)
        if (["raised", "acknowledged", "unknown"].includes(row.state))
          raised.set(row.id, { ...row, severity: alarm.severity });
    for (const [id, known] of this.alarms) {
      if (raised.get(id)?.state === known.state) continue;
      known.group.removeLayer(known.marker);
      this.alarms.delete(id);
    }
    for (const [id, row] of raised) {
      const place = this.alarms.has(id) ? null : placeOf(row.row, this.plan);
      if (!place) continue;
      const said = Object.entries(row.row)
        .map(([name, value]) => `${name} ${value}`)
        .join(", ");
      const isUnknown = row.state === "unknown";
      const label = `${row.severity}: ${row.alarm}, ${said}${isUnknown ? " (unknown: its gateway is offline)" : ""}`;
      const icon = L.divIcon({
        className: `alarm-place ${row.severity} ${row.state}`,
        html: isUnknown ? "?" : "!",
        iconSize: [20, 20],
        iconAnchor: [-4, 24],
      });
      const marker = L.marker(place.at, { icon, title: label, alt: label, zIndexOffset: 900 });
      marker.on("add", () => marker.getElement().setAttribute("aria-label", label));
      marker.on("click", () => place.choice && this.choose(place.choice));
      const group = this.plan.group(place.level, "alarms");
      group.addLayer(marker);
      this.alarms.set(id, { marker, group, state: row.state });
    }
  }
}

/** Where a row belongs: {at, level, choice}, or null. What is named most exactly counts. */
export function placeOf(row, plan) {
  const site = plan.site;
  const named = [
    [["mid", "machine", "desk"], site.machines, "machine"],
    [["sensor", "detector", "mote", "node", "src"], site.sensors, null],
    [["sensor", "mote", "node", "src"], site.motes, null],
    [["rid", "room"], site.spaces, "room"],
    [["point"], site.points, null],
  ];
  if (Number.isFinite(row.x) && Number.isFinite(row.y))
    return { at: [row.y, row.x], level: row.floor ?? row.level ?? 0, choice: null };
  for (const [columns, places, choice] of named) {
    for (const column of columns) {
      const place = places.get(row[column]);
      if (place?.at)
        return { at: place.at, level: place.level ?? 0, choice: choice ? { [choice]: row[column] } : null };
    }
  }
  return null;
}
