const SILENT_MS = 15_000; // a console that is asked and says nothing for so long is lost, though its connection stands
const LOST = { message: "The console does not answer.", hint: "Check that `pando up` still runs.", lost: true };

// Requests to the console; a refused one rejects with the error object of the answer.
export async function request(method, path, body) {
  const options = { method, headers: {}, signal: method === "GET" ? AbortSignal.timeout(SILENT_MS) : undefined };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
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
  if (!response.ok) throw value.error || { message: `The console answered ${response.status}.`, hint: "" };
  return value;
}

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);

/** Build an element: make("td", {class: "x"}, "text" or children). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return fill(element, children, false);
}

/** Put children into an element in place of what it holds; null, undefined and false are nothing. */
export function fill(element, children, anew = true) {
  const kept = [children].flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  if (anew) element.replaceChildren(...kept);
  else element.append(...kept);
  return element;
}

/** A number with its noun: "1 row", "2 rows". */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** How much a query has given: the rows that hold, or all rows of a stream, which keeps none. */
export const extent = (query) =>
  query.emit === "relation" ? count(query.rows, "row") : `${count(query.changes, "row")} emitted`;

/** A time of a reader's day, with the date if it is another day. */
export function moment(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  const day =
    at.toDateString() === new Date().toDateString()
      ? ""
      : `${at.toLocaleDateString([], { day: "numeric", month: "short", year: at.getFullYear() === new Date().getFullYear() ? undefined : "numeric" })}, `;
  return `${day}${at.toLocaleTimeString()}`;
}

/** A time as "12 s", "5 min", "2 h" ago. */
export function age(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
