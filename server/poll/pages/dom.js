/** Elements made of plain data. Text stays text: nothing here reads markup. */

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "rect", "line", "circle", "path", "text"]);

/** @param {string} id @returns {HTMLElement} */
export function at(id) {
  const place = document.getElementById(id);
  if (!place) throw new Error(`the page has no ${id}`);
  return place;
}

/**
 * A new element with attributes and children; a child that is a string becomes a text node.
 * @param {string} name
 * @param {Record<string, string | number | boolean>} [attributes] true: present and empty; false: absent
 * @param {...(Node | string)} children
 */
export function make(name, attributes = {}, ...children) {
  const made = DRAWN.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== false) made.setAttribute(key, value === true ? "" : String(value));
  made.append(...children);
  return made;
}

/** Shows a text at an id, if it changed: a screen reader speaks each change. @param {string} id @param {string} text */
export function say(id, text) {
  const place = at(id);
  if (place.textContent !== text) place.textContent = text;
}

/** Parts of a whole as a bar: [share from 0 to 1, class]. @param {Element} drawing @param {[number, string][]} parts */
export function stacked(drawing, parts) {
  const height = drawing.getAttribute("height") ?? "14";
  drawing.replaceChildren(make("rect", { x: 0, y: 0, width: "100%", height, rx: 4, class: "bar" }));
  let x = 0;
  for (const [share, colour] of parts) {
    const width = Math.max(0, Math.min(share, 1 - x));
    drawing.append(make("rect", { x: `${100 * x}%`, y: 0, width: `${100 * width}%`, height, rx: 4, class: colour }));
    x += width;
  }
}
