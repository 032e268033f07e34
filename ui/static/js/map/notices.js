// Displays and alarms at their places on the map.
import { Displays } from "./displays.js";
import { eventsWhileSeen } from "../events_while_seen.js";
import { text } from "../api.js";
import { whyUnknown } from "../why_unknown.js";

/** @import { Alarm, AlarmRow, Display, Row, Severity, Value } from "../payloads.d.ts" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { Place } from "./site.js" */
/** @typedef {{ at: L.LatLngTuple, level: number, choice: Choice | null }} Spot */
/** @typedef {{ marker: L.Marker, group: L.LayerGroup, state: string, label: string }} Sign */

export class Notices {
  /** @param {Plan} plan
   *  @param {(wanted: Choice) => void} choose */
  constructor(plan, choose) {
    this.plan = plan;
    this.choose = choose;
    this.displays = new Displays(plan);
    /** @type {Map<number, Sign>} */
    this.alarms = new Map(); // by the id of a row
    const handlers = {
      /** @param {Display} display */
      display: (display) => this.displays.show(display),
      /** @param {string[]} names */
      displays: (names) => this.displays.only(names),
      /** @param {{ name: string }} display */
      gone: ({ name }) => this.displays.gone(name),
      /** @param {Alarm[]} found */
      alarms: (found) => this.raise(found),
    };
    eventsWhileSeen("/api/notices/events", handlers, () => {}); // the layers' stream says that the console is away
  }

  /** @param {Alarm[]} alarms */
  raise(alarms) {
    /** @type {Map<number, AlarmRow & { severity: Severity, label: string }>} */
    const raised = new Map();
    for (const alarm of alarms) {
      for (const row of alarm.rows) {
        if (["raised", "acknowledged", "unknown"].includes(row.state)) {
          raised.set(row.id, { ...row, severity: alarm.severity, label: labelOf(row, alarm) });
        }
      }
    }
    for (const [id, known] of this.alarms) {
      const row = raised.get(id);
      if (row?.state === known.state && row.label === known.label) continue;
      known.group.removeLayer(known.marker);
      this.alarms.delete(id);
    }
    for (const [id, row] of raised) {
      const place = this.alarms.has(id) ? null : placeOf(row.row, this.plan);
      if (!place) continue;
      const { label, state } = row;
      const icon = L.divIcon({
        className: `alarm-place ${row.severity} ${state}`,
        html: state === "unknown" ? "?" : "!",
        iconSize: [20, 20],
        iconAnchor: anchorOf(place, this.signsAt(place), this.plan),
      });
      const marker = L.marker(place.at, { icon, title: label, alt: label, zIndexOffset: 900 });
      marker.on("add", () => marker.getElement()?.setAttribute("aria-label", label));
      marker.on("click", () => place.choice && this.choose(place.choice));
      const group = this.plan.group(place.level, "alarms");
      group.addLayer(marker);
      this.alarms.set(id, { marker, group, state, label });
    }
  }

  /** How many signs of alarms stand at a place.
   *  @param {Spot} place */
  signsAt({ at, level }) {
    const group = this.plan.group(level, "alarms");
    const here = L.latLng(at);
    const signs = [...this.alarms.values()];
    return signs.filter((sign) => sign.group === group && sign.marker.getLatLng().equals(here)).length;
  }
}

/** How far a sign stands from its place, in pixels: what names the place stays readable.
 *  @param {Spot} place
 *  @param {number} others signs that stand there
 *  @param {Plan} plan
 *  @returns {L.PointTuple} left, up */
function anchorOf({ choice }, others, plan) {
  const room = choice && "room" in choice ? plan.site.spaces.get(String(choice.room)) : null;
  const isCorridor = room && room.width > 3 * room.height;
  const [left, up] = !room ? [-4, 24] : isCorridor ? [-50, 10] : [10, -13];
  return [left - 14 * others, up];
}

/** @param {AlarmRow} row
 *  @param {Alarm} alarm */
function labelOf(row, alarm) {
  const values = Object.entries(row.row).map(([name, value]) => `${name} ${text(value)}`);
  const label = `${alarm.severity}: ${row.alarm}, ${values.join(", ")}`;
  return row.state === "unknown" ? `${label} (${whyUnknown(alarm)})` : label;
}

/** @param {Value | undefined} value
 *  @returns {value is number} */
const isNumber = (value) => Number.isFinite(value);

/** Where a row belongs: {at, level, choice}, or null. What is named most exactly counts.
 *  @param {Row} row
 *  @param {Plan} plan
 *  @returns {Spot | null} */
export function placeOf(row, plan) {
  const site = plan.site;
  /** @type {[string[], Map<string, Place>, "machine" | "room" | null][]} */
  const named = [
    [["mid", "machine", "desk"], site.machines, "machine"],
    [["sensor", "detector", "mote", "node", "src"], site.sensors, null],
    [["sensor", "mote", "node", "src"], site.motes, null],
    [["rid", "room"], site.spaces, "room"],
    [["point"], site.points, null],
  ];
  const { x, y } = row;
  if (isNumber(x) && isNumber(y)) {
    const level = [row.floor, row.level].find(isNumber) ?? 0;
    return { at: [y, x], level, choice: null };
  }
  for (const [columns, places, choice] of named) {
    for (const column of columns) {
      const id = String(row[column]);
      const place = places.get(id);
      if (place?.at) {
        return { at: place.at, level: place.level ?? 0, choice: choice ? { [choice]: id } : null };
      }
    }
  }
  return null;
}
