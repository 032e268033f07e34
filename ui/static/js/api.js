/** @import { Child, GetAnswer, PostAnswer, Problem, Query, Value } from "./payloads.d.ts" */
const SILENT_MS = 15_000; // a console that is asked and says nothing for so long is lost, though its connection stands
let leaving = false; // for the page to sign in: a second request would break off the way there
const LOST = { message: "The console does not answer.", hint: "Check that `pando up` still runs.", lost: true };

/** What was thrown, as what is wrong: requests reject with a problem, a defect of ours is an Error.
 *  @param {unknown} thrown
 *  @returns {Problem} */
export const problemOf = (thrown) => /** @type {Problem} */ (thrown);

/** Ask the console; a refused request rejects with the error object of the answer.
 *  @param {string} method
 *  @param {string} path
 *  @param {object} [body]
 *  @returns {Promise<unknown>} */
export async function request(method, path, body) {
  /** @type {RequestInit} */
  const options = { method, signal: method === "GET" ? AbortSignal.timeout(SILENT_MS) : undefined };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw LOST;
  }
  const value = await response.json().catch(() => {
    if (options.signal?.aborted) throw LOST;
    return {};
  });
  if (response.status === 401 && value.error?.code === "not_signed_in" && !leaving) {
    leaving = true;
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  if (!response.ok) throw value.error || { message: `The console answered ${response.status}.`, hint: "" };
  return value;
}

/** @template {string} P
 *  @param {P} path
 *  @returns {Promise<GetAnswer<P>>} */
export const get = (path) => /** @type {Promise<GetAnswer<P>>} */ (request("GET", path));

/** @template {string} P
 *  @param {P} path
 *  @param {object} body
 *  @returns {Promise<PostAnswer<P>>} */
export const post = (path, body) => /** @type {Promise<PostAnswer<P>>} */ (request("POST", path, body));

/** @typedef {string | number | boolean | null | undefined | ((event: Event) => void)} Attribute */

/** Build an element: make("td", {class: "x"}, "text" or children); attributes without a value are left out.
 *  @template {keyof HTMLElementTagNameMap} K
 *  @param {K} tag
 *  @param {Record<string, Attribute>} attributes
 *  @param {...Child} children
 *  @returns {HTMLElementTagNameMap[K]} */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** Put children into an element in place of what it holds.
 *  @template {Element} E
 *  @param {E} element
 *  @param {Child} children
 *  @returns {E} */
export function fill(element, children) {
  element.replaceChildren(...present(children));
  return element;
}

/** Null, undefined and false are nothing.
 *  @param {Child} child
 *  @returns {(Node | string)[]} */
export function present(child) {
  if (child === null || child === undefined || child === false) return [];
  if (typeof child === "object" && "flatMap" in child) return child.flatMap(present);
  return [typeof child === "number" ? String(child) : child];
}

/** A number with its digits in groups of three.
 *  @param {number} number */
export const grouped = (number) => number.toLocaleString("en");

/** A number with its noun: "1 row", "2 rows".
 *  @param {number} number
 *  @param {string} noun */
export const count = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

/** How much a query has given: the rows that hold, or all rows of a stream, which keeps none.
 *  @param {Query} query */
export const extent = (query) =>
  query.emit === "relation" ? count(query.rows, "row") : `${count(query.changes, "row")} emitted`;

/** A time of a reader's day, with the date if it is another day.
 *  @param {string} iso */
export function moment(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  return isToday(at) ? at.toLocaleTimeString() : dated(at);
}

/** Begin and end of an interval: either both with their dates, or none.
 *  @param {string} since
 *  @param {string} until
 *  @returns {[string, string]} */
export function fromTo(since, until) {
  const [begin, end] = [new Date(since), new Date(until)];
  if (isToday(begin) && isToday(end)) return [begin.toLocaleTimeString(), end.toLocaleTimeString()];
  return [dated(begin), dated(end)];
}

/** @param {Date} at */
const isToday = (at) => at.toDateString() === new Date().toDateString();

/** @param {Date} at */
function dated(at) {
  const year = at.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return `${at.toLocaleDateString([], { day: "numeric", month: "short", year })}, ${at.toLocaleTimeString()}`;
}

/** A time as "12 s", "5 min", "2 h" ago.
 *  @param {string} iso */
export function age(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** A table with a row of headings.
 *  @param {HTMLElement[]} headings
 *  @param {HTMLElement} body */
export const headedTable = (headings, body) =>
  make("table", { class: "rows" }, make("thead", {}, make("tr", {}, headings)), body);

/** A value as people read it.
 *  @param {Value} value */
export function text(value) {
  if (value === null) return "NULL";
  return typeof value === "number" && !Number.isInteger(value) ? String(Math.round(value * 1e6) / 1e6) : String(value);
}
