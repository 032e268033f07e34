// The settings of a site, changed in place while it runs.
import { fill, get, make, request } from "../api.js";
import { SCHEDULERS, SCHEDULER_WORDS } from "./reported.js";

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
    name: "sharing",
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

export class SettingsForm {
  /** @param place where it is shown
   *  @param isAway whether a site is away now
   *  @param isEngine whether it runs the engine that the settings are of */
  constructor(place, isAway, isEngine) {
    this.place = place;
    this.isAway = isAway;
    this.isEngine = isEngine;
    this.site = null;
  }

  /** Show the settings of a site; null: of none. */
  async show(site) {
    if (site === this.site) return;
    this.site = site;
    this.hoped = null;
    this.place.replaceChildren();
    if (!site) return;
    if (!this.isEngine(site))
      return fill(
        this.place,
        make("p", { class: "quiet" }, "This site has no settings that can change while it runs."),
      );
    try {
      const settings = await get(`/api/sites/${encodeURIComponent(site)}/settings`);
      if (site === this.site) this.fill(settings);
    } catch (error) {
      if (site !== this.site) return;
      fill(this.place, [problem(error), make("button", { type: "button", onclick: () => this.again() }, "Try again")]);
    }
  }

  again() {
    const { site } = this;
    this.site = null;
    this.show(site);
  }

  fill(settings) {
    this.settings = settings;
    this.note = make("p", { class: "saved", role: "status" });
    fill(this.place, [
      make("h3", {}, `Settings of ${this.site}`),
      make("p", { class: "quiet small" }, "They do not affect results."),
      FIELDS.filter(({ name }) => name in settings).map((field) => this.row(field)),
      this.note,
    ]);
  }

  row(field) {
    const id = `setting-${field.name}`;
    const control = this.control(field, id);
    control.addEventListener("change", () => this.change(field, control));
    return make(
      "div",
      { class: "setting" },
      make("label", { for: id, title: field.help }, field.label),
      control,
      make("span", { class: "quiet" }, field.unit || ""),
    );
  }

  control(field, id) {
    const value = this.settings[field.name];
    const common = { id, name: field.name, title: field.help };
    if (field.options)
      return make(
        "select",
        common,
        field.options.map((option) =>
          make("option", { value: option, selected: option === value }, SCHEDULER_WORDS[option]),
        ),
      );
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

  async change(field, control) {
    const value = field.options ? control.value : field.flag ? control.checked : this.number(field, control);
    if (value === undefined)
      return this.refuse(field, control, { message: `${field.label}: enter a number.`, hint: field.help });
    this.hoped = null;
    if (value === this.settings[field.name]) return this.say(null);
    const { site } = this;
    control.disabled = true;
    try {
      const settings = await request("PATCH", `/api/sites/${encodeURIComponent(site)}/settings`, {
        [field.name]: value,
      });
      if (site !== this.site) return;
      this.settings = settings;
      this.reset(field, control);
      this.hoped = { field, value: this.settings[field.name] };
      this.say(
        `${field.label} ${this.isAway(site) ? `is kept; ${site} is away and takes it over when it is back.` : "changed."}`,
      );
    } catch (error) {
      if (site === this.site) this.refuse(field, control, error);
    } finally {
      control.disabled = false;
    }
  }

  /** Say so once the site reports what was set. */
  heard(reported) {
    if (!this.hoped) return;
    const { field, value } = this.hoped;
    const told = reported.value(this.site, "site", this.site, field.name);
    const wanted = field.options ? SCHEDULERS.indexOf(value) : value === null ? null : Number(value);
    if (told !== wanted) return;
    this.hoped = null;
    this.say(`${field.label} changed; ${this.site} has confirmed it.`);
  }

  /** A number, null for an empty field that may be so, undefined for anything else. */
  number(field, control) {
    if (control.validity.badInput) return undefined;
    if (control.value.trim() === "") return field.empty ? null : undefined;
    return Number(control.value);
  }

  reset(field, control) {
    const value = this.settings[field.name];
    if (field.flag) control.checked = value;
    else control.value = value ?? "";
  }

  refuse(field, control, error) {
    this.reset(field, control);
    this.note.className = "saved";
    fill(this.note, problem(error));
  }

  say(text) {
    this.note.className = "saved done";
    fill(this.note, text ? `✓ ${text}` : "");
  }
}

function problem(error) {
  return make(
    "span",
    { class: "problem", role: "alert" },
    make("strong", {}, error.message),
    error.hint && make("span", { class: "hint" }, ` ${error.hint}`),
  );
}
