// Settings of a gateway or base site in a dialog, changed while it runs.
import { make } from "./api.js";
import { byId } from "./elements.js";
import { SettingsForm } from "./monitor/settings_form.js";

const dialog = byId("site-settings", HTMLDialogElement);
/** @type {Set<string>} */
const away = new Set();
const form = new SettingsForm(
  byId("settings"),
  (site) => away.has(site),
  () => true,
);

/** A button that opens the settings of a site.
 *  @param {{ site: string, online: boolean }} about */
export function settingsButton({ site, online }) {
  if (online) away.delete(site);
  else away.add(site);
  const open = () => {
    form.show(null); // what is set may have changed since
    form.show(site);
    dialog.showModal();
  };
  return make(
    "button",
    { type: "button", "data-site": `${site} settings`, "aria-label": `Settings of ${site}`, onclick: open },
    "Settings…",
  );
}

byId("site-settings-done").addEventListener("click", () => dialog.close());
