/** The drawings of an estimate: its interval on the scale of possible values, and how the interval narrows. */

import { make } from "./dom.js";
import { scale, shown } from "./card.js";

/** @typedef {import("./card.js").Question} Question */
/** @typedef {import("./card.js").Row} Row */

const LEFT = 52, RIGHT = 14, TOP = 12, BOTTOM = 28;

/** @param {number} value @param {number} low @param {number} high */
const clamped = (value, low, high) => Math.min(high, Math.max(low, value));

/** @param {Element} drawing @param {Row} row @param {Question} question */
export function span(drawing, row, question) {
  const [low, high] = scale(question);
  const place = (/** @type {number} */ value) => `${1 + (98 * (clamped(value, low, high) - low)) / (high - low)}%`;
  drawing.append(make("line", { x1: "1%", x2: "99%", y1: 9, y2: 9, class: "axis" }));
  if (row.low !== null && row.high !== null) drawing.append(make("line", { x1: place(row.low), x2: place(row.high), y1: 9, y2: 9, class: "reach" }));
  if (row.value !== null) drawing.append(make("circle", { cx: place(row.value), cy: 9, r: 6, class: "point" }));
}

/** The interval by the number of answers; of several estimates half the widest one. @param {Element} drawing @param {Question} question */
export function narrowing(drawing, question) {
  const points = question.history, width = Math.max(220, drawing.clientWidth), height = 200;
  drawing.toggleAttribute("hidden", points.length < 2);
  if (points.length < 2) return;
  const fan = points.every(point => point[2] !== null);
  const [low, high] = fan ? scale(question) : [0, Math.min(question.kind === "number" ? Infinity : 1, Math.max(...points.map(point => point[1])))];
  const last = points[points.length - 1], first = Math.log(points[0][0]), range = Math.log(last[0]) - first || 1;
  const x = (/** @type {number} */ n) => LEFT + ((width - LEFT - RIGHT) * (Math.log(n) - first)) / range;
  const y = (/** @type {number} */ value) => height - BOTTOM - ((height - TOP - BOTTOM) * (clamped(value, low, high) - low)) / (high - low || 1);
  const line = (/** @type {number} */ column, order = points) => order.map(point => `${x(point[0]).toFixed(1)},${y(point[column] ?? 0).toFixed(1)}`).join(" L");
  const [before, now] = [points[0], last].map(point => `${shown(point[1], question)} after ${point[0]}`);
  drawing.setAttribute("aria-label", `Half the ${fan ? "" : "widest "}95 % interval: ${before}, ${now} answers`);
  drawing.replaceChildren();
  for (const value of [low, (low + high) / 2, high]) {
    drawing.append(make("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value), class: "axis" }));
    drawing.append(make("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, (fan ? "" : "\u00b1") + shown(value, question)));
  }
  if (fan) drawing.append(make("path", { d: `M${line(3)} L${line(4, [...points].reverse())} Z`, class: "band" }));
  drawing.append(make("path", { d: `M${line(fan ? 2 : 1)}`, class: "curve" }));
  drawing.append(make("circle", { cx: x(last[0]), cy: y(last[fan ? 2 : 1] ?? 0), r: 5, class: "point" }));
  drawing.append(make("text", { x: LEFT, y: height - 8 }, points[0][0].toLocaleString("en")));
  drawing.append(make("text", { x: width - RIGHT, y: height - 8, "text-anchor": "end" }, `${last[0].toLocaleString("en")} answers`));
}
