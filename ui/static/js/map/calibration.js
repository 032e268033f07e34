// The calibration walk: stand somewhere with a badge, click the place, keep what receivers hear there.
import { make, post, problemOf } from "../api.js";
import { byId } from "../elements.js";
import { CalibrationPoints } from "./calibration_points.js";
import { mark } from "./plan.js";
import { QueryRows } from "./subscription.js";

/** @import { HeardRow } from "../payloads.d.ts" */
/** @import { Choice, Plan } from "./plan.js" */
/** @import { Told } from "./subscription.js" */

const SECONDS = 10; // as long as the query's window
/** @typedef {{ room: string, floor: number, x: number, y: number }} Spot */

export class Calibration {
  /** @param {Plan} plan */
  constructor(plan) {
    this.plan = plan;
    this.panel = byId("calibration", HTMLDetailsElement);
    this.badge = byId("calibration-badge", HTMLSelectElement);
    this.save = byId("calibration-save", HTMLButtonElement);
    /** @type {QueryRows<HeardRow> | null} */
    this.query = null;
    /** @type {HeardRow[]} */
    this.rows = [];
    /** @type {HeardRow[]} */
    this.recorded = [];
    /** @type {string | undefined} */
    this.room = undefined;
    /** @type {Spot | null} */
    this.spot = null;
    /** @type {{ marker: L.Marker, group: L.LayerGroup } | null} */
    this.shown = null;
    this.timer = 0;
    this.points = new CalibrationPoints();
    this.panel.addEventListener("toggle", () => (this.panel.open ? this.begin() : this.end()));
    this.badge.addEventListener("change", () => this.forget());
    this.save.addEventListener("click", () => this.keep());
    // A room's own listener runs first: it says in which room the click was.
    plan.map.on("click", (event) => this.click(event.latlng));
  }

  /** Whether a choice on the map is only the place of the next recording.
   *  @param {Choice} wanted */
  choose(wanted) {
    if (!this.panel.open || !wanted.room) return false;
    this.room = wanted.room;
    return true;
  }

  begin() {
    this.forget();
    this.points.begin();
    this.query = new QueryRows(
      () => post("/api/calibration/heard", {}),
      (told) => this.show(told),
    );
  }

  end() {
    this.query?.close();
    this.query = null;
    this.points.end();
    this.forget();
  }

  /** Discard what is recorded, and ask for a place. */
  forget() {
    clearInterval(this.timer);
    this.shown?.group.removeLayer(this.shown.marker);
    this.spot = this.shown = null;
    this.recorded = [];
    this.save.disabled = true;
    byId("calibration-heard").replaceChildren();
    this.say(this.badge.value ? "Click the place where you stand." : "Choose the badge that you carry.");
  }

  /** @param {string} text */
  say(text) {
    byId("calibration-state").textContent = text;
  }

  /** @param {Told<HeardRow>} told */
  show({ rows, query, error }) {
    this.rows = rows;
    const wrong = error ? `${error.message}${error.hint ? ` ${error.hint}` : ""}` : query?.error;
    if (wrong) this.say(wrong);
    const known = new Set([...this.badge.options].map(({ value }) => value));
    const heard = new Set(rows.map(({ badge }) => badge).filter((badge) => !known.has(badge)));
    this.badge.append(...[...heard].sort().map((badge) => make("option", { value: badge }, badge)));
  }

  /** @param {L.LatLng} at */
  click({ lat, lng }) {
    const { room } = this;
    this.room = undefined;
    if (!this.panel.open || !this.badge.value || this.plan.level === null) return;
    this.forget();
    if (!room) return this.say("Click inside a room.");
    this.spot = { room, floor: this.plan.level, x: lng, y: lat };
    const marker = mark([lat, lng], "route-start", {
      size: 18,
      label: "calibration point",
      interactive: false,
      z: 900,
    });
    const group = this.plan.group(this.plan.level, "calibration");
    group.addLayer(marker);
    this.shown = { marker, group };
    let left = SECONDS;
    const count = () => this.say(`${room}: recording, ${left} s. Stand still.`);
    count();
    this.timer = setInterval(() => {
      left -= 1;
      if (left > 0) return count();
      clearInterval(this.timer);
      this.record();
    }, 1000);
  }

  /** Take what was heard of the badge since the click. */
  record() {
    this.recorded = this.rows.filter(({ badge }) => badge === this.badge.value).sort((a, b) => b.rssi - a.rssi);
    this.save.disabled = !this.recorded.length;
    this.say(
      this.recorded.length
        ? `Recorded in ${this.spot?.room}. Save it, or click another place.`
        : `No receiver heard ${this.badge.value} for ${SECONDS} s.`,
    );
    byId("calibration-heard").replaceChildren(
      ...this.recorded.map(({ receiver, rssi, readings }) =>
        make("li", {}, `${receiver} ${rssi.toFixed(1)} dBm (${readings})`),
      ),
    );
  }

  async keep() {
    const { spot, recorded } = this;
    if (!spot) return;
    this.save.disabled = true;
    const levels = Object.fromEntries(recorded.map(({ receiver, rssi }) => [receiver, rssi]));
    try {
      const { point } = await post("/api/calibration", { ...spot, levels });
      this.forget();
      this.say(`Saved as ${point}. Click the next place.`);
    } catch (thrown) {
      const { message, hint } = problemOf(thrown);
      this.save.disabled = false;
      this.say(`${message}${hint ? ` ${hint}` : ""}`);
    }
  }
}
