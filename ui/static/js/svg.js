// Elements of drawings.
const SVG = "http://www.w3.org/2000/svg";

/** Build an SVG element: shape("circle", {r: 3}, children or texts); null attributes are left out. */
export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}
