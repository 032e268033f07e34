// Look around in a drawing: wheel or buttons to come closer, drag to move, all of it at first.

/** @import { Box } from "./network/layout.js" */

const CLOSEST = 1.6; // pixels per unit
const FIRST_AT_LEAST = 0.55; // letters below this size cannot be read: then only a part is shown

/** How far one may come closer and go away.
 *  @typedef {{ range: (whole: Box, screen: DOMRect) => [narrowest: number, widest: number],
 *    scales: [least: number, most: number], looked?: (view: Box) => void, begin?: () => Box[] }} Bounds
 *  `begin` is seen at first, at the left, where not all of the drawing can be. */

/** @type {Bounds} */
export const DRAWING = {
  range: (whole, screen) => [screen.width / CLOSEST, Math.max(whole.width * 2, screen.width)],
  scales: [FIRST_AT_LEAST, 1.15],
};

export class PanZoom {
  /** @param {SVGSVGElement} svg
   *  @param {Bounds} bounds widths of what is seen, and pixels per unit at first */
  constructor(svg, bounds = DRAWING) {
    this.svg = svg;
    this.bounds = bounds;
    /** @type {Box | null} */
    this.whole = null;
    /** @type {Box | null} */
    this.view = null;
    this.moved = false; // by a person: then it stays where it is
    svg.addEventListener(
      "wheel",
      (event) => {
        if (!this.view) return;
        event.preventDefault();
        this.zoom(Math.exp(Math.sign(event.deltaY) * 0.18), event);
      },
      { passive: false },
    );
    svg.addEventListener("pointerdown", (event) => this.drag(event));
    new ResizeObserver(() => this.whole && (this.moved ? this.look(this.view) : this.fit())).observe(svg);
  }

  /** Say how large the drawing is; it is shown whole unless somebody has looked elsewhere.
   *  @param {Box} box */
  world(box) {
    const { whole } = this;
    const same = whole?.x === box.x && whole.y === box.y && whole.width === box.width && whole.height === box.height;
    this.whole = box;
    if (!same && !this.moved) this.fit();
    else this.look(this.view);
  }

  reset() {
    this.whole = this.view = null;
    this.moved = false;
  }

  /** Show all of it, or as much from the top as can be read.
   *  @param {{ all?: boolean }} how */
  fit({ all = false } = {}) {
    this.moved = false;
    const box = this.svg.getBoundingClientRect();
    if (!this.whole || !box.width || !box.height) return;
    const [least, most] = this.bounds.scales;
    const scale = Math.min(box.width / this.whole.width, box.height / this.whole.height, most);
    const readable = all ? scale : Math.max(scale, least);
    const [width, height] = [box.width / readable, box.height / readable];
    this.look({ ...this.first(this.whole, width, height), width, height });
  }

  /** Where a view of some size is at first: at the top, or where the drawing begins, in the middle if all fits.
   *  @param {Box} whole
   *  @param {number} width
   *  @param {number} height */
  first(whole, width, height) {
    const begin = this.bounds.begin?.() ?? [];
    const last = whole.y + whole.height - height;
    const top = begin.length ? Math.min(Math.max(middleOf(begin) - height / 2, whole.y), last) : whole.y;
    const left = begin.length && width < whole.width ? 0 : (whole.width - width) / 2;
    return { x: whole.x + left, y: last <= whole.y ? (whole.y + last) / 2 : top };
  }

  /** @param {Box | null} view */
  look(view) {
    if (!view) return this.fit();
    this.view = view;
    this.svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    this.bounds.looked?.(view);
  }

  /** Come closer (factor below 1) or go away, to where the pointer is or to the middle.
   *  @param {number} factor
   *  @param {MouseEvent | null} at */
  zoom(factor, at = null) {
    const { view, whole } = this;
    if (!view || !whole) return;
    const box = this.svg.getBoundingClientRect();
    const [narrowest, widest] = this.bounds.range(whole, box);
    const width = Math.min(Math.max(view.width * factor, narrowest), widest);
    const exact = width / view.width;
    const share = at ? [(at.clientX - box.x) / box.width, (at.clientY - box.y) / box.height] : [0.5, 0.5];
    this.moved = true;
    this.look({
      x: view.x + view.width * share[0] * (1 - exact),
      y: view.y + view.height * share[1] * (1 - exact),
      width,
      height: view.height * exact,
    });
  }

  /** Move as little as is needed to see a part of the drawing.
   *  @param {Box | undefined} part */
  show(part) {
    const { view } = this;
    if (!view || !part) return;
    /** @param {number} at
     *  @param {number} length
     *  @param {number} begin
     *  @param {number} size */
    const within = (at, length, begin, size) => Math.max(Math.min(at, begin), begin + size - length);
    const x = within(view.x, view.width, part.x, part.width);
    const y = within(view.y, view.height, part.y, part.height);
    if (x === view.x && y === view.y) return;
    this.moved = true;
    this.look({ ...view, x, y });
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.view || event.button !== 0) return;
    const begin = { x: event.clientX, y: event.clientY, view: this.view };
    const scale = this.view.width / (this.svg.getBoundingClientRect().width || 1);
    let dragged = false;
    /** @param {PointerEvent} moved */
    const move = (moved) => {
      const [dx, dy] = [moved.clientX - begin.x, moved.clientY - begin.y];
      dragged ||= Math.hypot(dx, dy) > 4;
      if (!dragged) return;
      this.moved = true;
      this.svg.classList.add("dragging");
      this.look({ ...begin.view, x: begin.view.x - dx * scale, y: begin.view.y - dy * scale });
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      if (!dragged) return;
      this.svg.classList.remove("dragging");
      /** @param {Event} click */
      const swallow = (click) => click.stopPropagation(); // the end of a drag chooses nothing
      addEventListener("click", swallow, { capture: true });
      setTimeout(() => removeEventListener("click", swallow, { capture: true }));
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  }
}

/** @param {Box[]} boxes */
const middleOf = (boxes) => boxes.reduce((sum, { y, height }) => sum + y + height / 2, 0) / boxes.length;
