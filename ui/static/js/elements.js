// Elements of a page, by their ids.

/** The element of an id, as what it is: byId("find", HTMLInputElement).
 *  @template {Element} [T=HTMLElement]
 *  @param {string} id
 *  @param {new () => T} [type]
 *  @returns {T} */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!found || (type && !(found instanceof type))) {
    throw new Error(`This page has no ${type?.name ?? "element"} #${id}.`);
  }
  return /** @type {T} */ (/** @type {unknown} */ (found));
}

/** The first element inside another that a selector fits.
 *  @template {Element} T
 *  @param {Element} place
 *  @param {string} selector
 *  @param {new () => T} type
 *  @returns {T} */
export function part(place, selector, type) {
  const found = place.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`There is no ${selector} in #${place.id}.`);
  return found;
}

/** The element inside another that has the focus.
 *  @param {Element} place */
export function focusedIn(place) {
  const focused = document.activeElement;
  return focused instanceof HTMLElement && place.contains(focused) ? focused : null;
}

/** Focus the first element inside another that a selector fits, without scrolling to it.
 *  @param {Element} place
 *  @param {string} selector */
export function focusOn(place, selector) {
  const found = place.querySelector(selector);
  if (found instanceof HTMLElement) found.focus({ preventScroll: true });
}
