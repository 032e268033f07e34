// The line at the top right: are all sites there, is Spark warm.
import { get, make, problemOf } from "./api.js";
import { byId } from "./elements.js";
import { againWhileSeen } from "./while_seen.js";

const line = byId("status");

async function look() {
  try {
    const sites = await get("/api/sites");
    const gateways = sites.filter((s) => s.role === "gateway");
    const offline = sites.filter((s) => !s.online && s.role !== "coordinator").map((s) => s.site);
    const warming = sites.find((s) => s.role === "static" && s.online && !s.ready);
    const parts = [`${gateways.filter((s) => s.online).length} of ${gateways.length} gateways online`];
    if (warming) parts.push(warming.detail || "Spark is warming up");
    else if (!sites.some((s) => s.role === "static" && s.online)) parts.push("static engine not ready yet");
    if (offline.length) parts.push(`offline: ${offline.join(", ")}`);
    const colour = offline.length ? "bad" : parts.length > 1 ? "warn" : "good";
    line.title = parts.join(" · ");
    line.replaceChildren(make("span", { class: `dot ${colour}` }), line.title);
  } catch (problem) {
    line.replaceChildren(make("span", { class: "dot bad" }), problemOf(problem).message);
  }
}

// On a narrow screen the pages' names scroll: the one of this page is to be seen.
document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

againWhileSeen(look, 2000);
