// The points of the radio map: a list with delete, and a button that creates the tables.
import { count, get, make, post, problemOf, request } from "../api.js";
import { byId } from "../elements.js";
import { QueryRows } from "./subscription.js";

/** @import { PointRow } from "../payloads.d.ts" */
/** @import { Told } from "./subscription.js" */

const MAX_SHOWN = 200;

export class CalibrationPoints {
  constructor() {
    this.create = byId("calibration-create", HTMLButtonElement);
    this.missing = byId("calibration-missing");
    this.heading = byId("calibration-count");
    this.list = byId("calibration-points");
    /** @type {QueryRows<PointRow> | null} */
    this.query = null;
    this.create.addEventListener("click", () => this.createTables());
  }

  async begin() {
    try {
      const { missing } = await get("/api/calibration/tables");
      this.create.hidden = !missing.length;
      this.say(missing.length ? `There is no table ${missing.join(", ")}.` : "");
      if (missing.includes("radio_map") || missing.includes("calibration_point")) return;
    } catch (thrown) {
      return this.sayProblem(thrown);
    }
    this.query?.close();
    this.query = new QueryRows(
      () => post("/api/calibration/points", {}),
      (told) => this.show(told),
    );
  }

  end() {
    this.query?.close();
    this.query = null;
  }

  /** @param {string} text */
  say(text) {
    this.missing.textContent = text;
    this.missing.hidden = !text;
  }

  /** @param {unknown} thrown */
  sayProblem(thrown) {
    const { message, hint } = problemOf(thrown);
    this.say(`${message}${hint ? ` ${hint}` : ""}`);
  }

  async createTables() {
    this.create.disabled = true;
    try {
      const { created } = await post("/api/calibration/tables", {});
      await this.begin();
      this.say(`Created ${created.join(", ")}.`);
    } catch (thrown) {
      this.sayProblem(thrown);
    } finally {
      this.create.disabled = false;
    }
  }

  /** @param {Told<PointRow>} told */
  show({ rows, error }) {
    if (error) return this.sayProblem(error);
    const newest = [...rows].sort((a, b) => (a.point < b.point ? 1 : -1));
    this.heading.hidden = !rows.length;
    this.heading.textContent =
      rows.length > MAX_SHOWN ? `${count(rows.length, "point")}, the newest ${MAX_SHOWN}` : count(rows.length, "point");
    this.list.replaceChildren(...newest.slice(0, MAX_SHOWN).map((row) => this.item(row)));
  }

  /** @param {PointRow} row */
  item({ point, room, x, y, receivers }) {
    const place = x === null || y === null ? "" : ` at ${x.toFixed(1)}, ${y.toFixed(1)} m`;
    const text = `${room ?? "no room"}${place}, ${count(receivers, "receiver")}`;
    const remove = make(
      "button",
      { type: "button", "aria-label": `Delete ${text}`, title: point, onclick: () => this.remove(point) },
      "Delete",
    );
    return make("li", {}, `${text} `, remove);
  }

  /** @param {string} point */
  async remove(point) {
    this.say("");
    try {
      await request("DELETE", `/api/calibration/points/${encodeURIComponent(point)}`);
    } catch (thrown) {
      this.sayProblem(thrown);
    }
  }
}
