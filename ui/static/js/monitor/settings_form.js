// The settings of a site, changed in place while it runs.
import { fill, get, make, problemOf, request } from "../api.js";
import { SCHEDULERS, SCHEDULER_WORDS } from "./reported.js";

/** @typedef {HTMLInputElement | HTMLSelectElement} Control */
/** @typedef {SiteSettings[keyof SiteSettings]} Setting */
/** A setting: `empty` says what an empty field means, where it may be empty.
 *  @typedef {{ name: keyof SiteSettings, label: string, help: string, unit?: string, empty?: string,
 *    step?: "any" | number, min?: number, flag?: boolean, options?: string[] }} Field */
/** @import { Problem, SiteSettings } from "../payloads.d.ts" */
/** @import { Reported } from "./reported.js" */

/** @type {Field[]} */
const FIELDS = [
  {
    name: "scheduler",
    label: "Scheduler",
    help: "The operator that runs next. It does not affect the result.",
    options: SCHEDULERS,
  },
  {
    name: "slice_ms",
    label: "Slice",
    unit: "ms",
    help: "Max duration of a step; the remaining work waits in the queues. Empty: no limit.",
    empty: "no limit",
    step: "any",
    min: 0,
  },
  {
    name: "queue_rows",
    label: "Max waiting rows",
    unit: "rows",
    help: "Between the operators of the site. With more rows, a step exceeds its slice.",
    step: 1,
    min: 1,
  },
  {
    name: "share_synopses",
    label: "Share synopses",
    help: "Keep equal synopses of one or several queries only once.",
    flag: true,
  },
  {
    name: "report_seconds",
    label: "Report every",
    unit: "s",
    help: "Time between reports while a query reads them.",
    step: "any",
    min: 0.1,
  },
];

/** @param {Control} control
 *  @returns {control is HTMLInputElement} */
const isBox = (control) => control.type === "checkbox";

export class SettingsForm {
  /** @param {Element} place where it is shown
   *  @param {(site: string) => boolean} isAway whether a site is away now
   *  @param {(site: string) => boolean} isEngine whether it runs the engine that the settings are of */
  constructor(place, isAway, isEngine) {
    this.place = place;
    this.isAway = isAway;
    this.isEngine = isEngine;
    /** @type {string | null} */
    this.site = null;
    /** @type {SiteSettings | null} */
    this.settings = null;
    /** @type {{ field: Field, value: Setting } | null} */
    this.hoped = null; // what was set and is not reported yet
    this.note = make("p", { class: "saved", role: "status" });
  }

  /** Show the settings of a site; null: of none.
   *  @param {string | null} site */
  async show(site) {
    if (site === this.site) return;
    this.site = site;
    this.hoped = null;
    this.place.replaceChildren();
    if (!site) return;
    if (!this.isEngine(site)) {
      return fill(
        this.place,
        make("p", { class: "quiet" }, "This site has no settings that can change while it runs."),
      );
    }
    try {
      const settings = await get(`/api/sites/${encodeURIComponent(site)}/settings`);
      if (site === this.site) this.fill(settings);
    } catch (error) {
      if (site !== this.site) return;
      fill(this.place, [
        problem(problemOf(error)),
        make("button", { type: "button", onclick: () => this.again() }, "Try again"),
      ]);
    }
  }

  again() {
    const { site } = this;
    this.site = null;
    this.show(site);
  }

  /** @param {SiteSettings} settings */
  fill(settings) {
    this.settings = settings;
    this.note = make("p", { class: "saved", role: "status" });
    fill(this.place, [
      make("h3", {}, `Settings of ${this.site}`),
      make("p", { class: "quiet small" }, "They do not affect results."),
      FIELDS.filter(({ name }) => name in settings).map((field) => this.row(field, settings[field.name])),
      this.note,
    ]);
  }

  /** @param {Field} field
   *  @param {Setting} value */
  row(field, value) {
    const id = `setting-${field.name}`;
    const control = this.control(field, id, value);
    control.addEventListener("change", () => this.change(field, control));
    return make(
      "div",
      { class: "setting" },
      make("label", { for: id, title: field.help }, field.label),
      control,
      make("span", { class: "quiet" }, field.unit || ""),
    );
  }

  /** @param {Field} field
   *  @param {string} id
   *  @param {Setting} value
   *  @returns {Control} */
  control(field, id, value) {
    const common = { id, name: field.name, title: field.help };
    if (field.options) {
      return make(
        "select",
        common,
        field.options.map((option) =>
          make("option", { value: option, selected: option === value }, SCHEDULER_WORDS[option]),
        ),
      );
    }
    if (field.flag) return make("input", { ...common, type: "checkbox", checked: value });
    return make("input", {
      ...common,
      type: "number",
      inputmode: "decimal",
      step: field.step,
      min: field.min,
      placeholder: field.empty || null,
      value: value === null ? "" : value,
    });
  }

  /** @param {Field} field
   *  @param {Control} control */
  async change(field, control) {
    const { site } = this;
    if (site === null || this.settings === null) return;
    const value = this.valueOf(field, control);
    if (value === undefined) {
      return this.refuse(field, control, { message: `${field.label}: enter a number.`, hint: field.help });
    }
    this.hoped = null;
    if (value === this.settings[field.name]) return this.say(null);
    control.disabled = true;
    try {
      const path = `/api/sites/${encodeURIComponent(site)}/settings`;
      const settings = /** @type {SiteSettings} */ (await request("PATCH", path, { [field.name]: value }));
      if (site !== this.site) return;
      this.settings = settings;
      this.reset(field, control);
      this.hoped = { field, value: settings[field.name] };
      const done = this.isAway(site) ? `is kept; ${site} is offline and takes it over when it returns.` : "changed.";
      this.say(`${field.label} ${done}`);
    } catch (error) {
      if (site === this.site) this.refuse(field, control, problemOf(error));
    } finally {
      control.disabled = false;
    }
  }

  /** Say so once the site reports what was set.
   *  @param {Reported} reported */
  heard(reported) {
    if (!this.hoped || this.site === null) return;
    const { field, value } = this.hoped;
    const told = reported.value(this.site, "site", this.site, field.name);
    const wanted = field.options ? SCHEDULERS.indexOf(String(value)) : value === null ? null : Number(value);
    if (told !== wanted) return;
    this.hoped = null;
    this.say(`${field.label} changed; ${this.site} has confirmed it.`);
  }

  /** What a field says: null for an empty one that may be so, undefined for what is no number.
   *  @param {Field} field
   *  @param {Control} control
   *  @returns {Setting | undefined} */
  valueOf(field, control) {
    if (field.options) return control.value;
    if (isBox(control)) return control.checked;
    if (control.validity.badInput) return undefined;
    if (control.value.trim() === "") return field.empty ? null : undefined;
    return Number(control.value);
  }

  /** Show again what is set.
   *  @param {Field} field
   *  @param {Control} control */
  reset(field, control) {
    const value = this.settings?.[field.name] ?? "";
    if (isBox(control)) control.checked = Boolean(value);
    else control.value = String(value);
  }

  /** @param {Field} field
   *  @param {Control} control
   *  @param {Problem} error */
  refuse(field, control, error) {
    this.reset(field, control);
    this.note.className = "saved";
    fill(this.note, problem(error));
  }

  /** @param {string | null} text */
  say(text) {
    this.note.className = "saved done";
    fill(this.note, text ? `✓ ${text}` : "");
  }
}

/** @param {Problem} error */
function problem(error) {
  return make(
    "span",
    { class: "problem", role: "alert" },
    make("strong", {}, error.message),
    error.hint && make("span", { class: "hint" }, ` ${error.hint}`),
  );
}
