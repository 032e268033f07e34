// The number of alarms' rows that need attention, beside their page's name.
import { get, make } from "./api.js";
import { againWhileSeen } from "./while_seen.js";

const link = document.querySelector('nav a[href="/alarms"]');
const badge = make("span", { class: "alarm-count", hidden: true });

async function look() {
  try {
    const { attention, raised, unknown, new: unseen, severity } = await get("/api/alarms/count");
    badge.hidden = !attention;
    badge.textContent = String(attention);
    badge.className = `alarm-count ${severity || ""}`;
    badge.title = `${raised} raised, ${unknown} unknown, ${unseen} to acknowledge`;
  } catch {
    badge.hidden = true; // the line of the sites says that the console is away
  }
}

if (link) {
  link.append(badge);
  againWhileSeen(look, 2000);
}
