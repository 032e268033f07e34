// The endpoints of gateways that are online, to choose one from.
import { fill, get, make } from "../api.js";

/** @import { Site } from "../payloads.d.ts" */

/** @typedef {{ gateway: string, endpoint: string, connector: string, listens: boolean, browses: boolean }} Choice */

const KEY = "pando.endpoint";

export class EndpointChoice {
  /** @param {HTMLSelectElement} select
   *  @param {() => void} changed */
  constructor(select, changed) {
    this.select = select;
    /** @type {Choice[] | null} */
    this.choices = null; // not known yet
    select.addEventListener("change", () => {
      sessionStorage.setItem(KEY, select.value);
      changed();
    });
    this.changed = changed;
  }

  /** Look which there are. */
  async look() {
    const sites = await get("/api/sites").catch(() => null);
    if (!sites) return; // the line at the top says that the console does not answer
    const found = choices(sites);
    if (JSON.stringify(found) === JSON.stringify(this.choices)) return;
    this.choices = found;
    const wanted = this.select.value || sessionStorage.getItem(KEY) || "";
    fill(
      this.select,
      found.length ? found.map(option) : make("option", { value: "" }, "no gateway that is online has an endpoint"),
    );
    if (found.some((choice) => value(choice) === wanted)) this.select.value = wanted;
    this.changed();
  }

  /** @returns {Choice | undefined} */
  get chosen() {
    return this.choices?.find((choice) => value(choice) === this.select.value);
  }
}

/** Whether there is something to look at without columns: what comes, or what is offered.
 *  @param {Choice | undefined} choice */
export const shows = (choice) => Boolean(choice?.listens || choice?.browses);

/** @param {Site[]} sites
 *  @returns {Choice[]} */
const choices = (sites) =>
  sites
    .filter((site) => site.online && site.role === "gateway")
    .flatMap(({ site, endpoints }) =>
      endpoints.map(({ name, ...each }) => ({ gateway: site, endpoint: name, ...each })),
    );

/** @param {Choice} choice */
const value = ({ gateway, endpoint }) => `${gateway} ${endpoint}`;

/** @param {Choice} choice */
const option = (choice) =>
  make("option", { value: value(choice) }, `${choice.endpoint} (${choice.connector}) at ${choice.gateway}`);
