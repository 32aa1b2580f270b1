/** One question on the presenter's page: estimate, interval, how it narrows, what one more answer changes, and the wall of reports. */

import { make, say } from "./dom.js";
import { narrowing, span } from "./chart.js";
import { Wall } from "./wall.js";

/**
 * @typedef {object} Row an estimate: value and 95 % interval; null where there are too few answers
 * @property {string} label
 * @property {number | null} value
 * @property {number | null} low
 * @property {number | null} high
 */
/**
 * @typedef {object} Question
 * @property {string} text
 * @property {"yes-no" | "label" | "number"} kind
 * @property {string} unit "%" or empty
 * @property {string} chance what a phone does with the answer, in words
 * @property {number} low the least and the greatest possible value
 * @property {number} high
 * @property {Row[]} rows
 * @property {[number, number, number, number][]} history answers, value, low, high; of the first row
 * @property {number | null} step how far one more answer can move the estimate
 * @property {number | null} more how many more answers an interval of +-5 % takes
 * @property {string[]} reports as bits, each as it came; the last ones
 * @property {number} count of reports in all
 */

/** A number as it is shown: shares in percent. @param {number} value @param {Question} question @param {number} digits */
export function shown(value, question, digits = 0) {
  const text = question.unit === "%" ? `${(100 * value).toFixed(digits)} %` : Number(value.toPrecision(3)).toString();
  return text.replace("-", "\u2212");
}

export class Card {
  /** @param {number} place */
  constructor(place) {
    const id = (/** @type {string} */ part) => `card-${place}-${part}`;
    this.id = id;
    this.title = make("h2", { id: id("title") });
    this.rows = make("ul", { class: "rows" });
    this.drawing = make("svg", { height: 200, role: "img", "aria-label": "No estimate yet", class: "history" });
    this.wall = new Wall(id("wall"));
    this.section = make(
      "section",
      { "aria-labelledby": id("title") },
      this.title,
      make("p", { class: "value", id: id("value") }, "No answer yet"),
      make("p", { class: "soft", id: id("interval") }),
      this.rows,
      this.drawing,
      make("p", { id: id("step") }),
      make("p", { id: id("more") }),
      make("p", { class: "soft", id: id("chance") }),
      this.wall.element,
    );
  }

  /** @param {Question} question */
  draw(question) {
    const { id } = this, [row] = question.rows;
    if (this.title.textContent !== question.text) this.title.textContent = question.text;
    say(id("chance"), question.chance);
    const alone = question.rows.length === 1 && row?.value !== null;
    if (alone) {
      say(id("value"), `${shown(row.value ?? 0, question)}${question.kind === "yes-no" ? ` say ${row.label}` : ""}`);
      say(id("interval"), row.low === null || row.high === null ? "Too few answers for an interval" : `95 % interval: ${shown(row.low, question)} to ${shown(row.high, question)}`);
    } else if (question.rows.some(each => each.value !== null)) {
      say(id("value"), "");
      say(id("interval"), "Estimates with their 95 % intervals");
    }
    this.rows.replaceChildren(...question.rows.filter(each => each.value !== null).map(each => this.row(each, question, alone)));
    narrowing(this.drawing, question);
    say(id("step"), question.step === null ? "" : `One more answer moves ${alone ? "the estimate" : "an estimate"} by at most ${shown(question.step, question, 1)}.`);
    say(id("more"), further(question));
    this.wall.draw(question);
  }

  /** @param {Row} row @param {Question} question @param {boolean} alone */
  row(row, question, alone) {
    const drawing = make("svg", { height: 18, "aria-hidden": "true" });
    span(drawing, row, question);
    const interval = row.low === null || row.high === null ? "" : ` (${shown(row.low, question)} to ${shown(row.high, question)})`;
    return make("li", {}, ...(alone ? [] : [make("span", {}, row.label), make("span", {}, shown(row.value ?? 0, question) + interval)]), drawing);
  }
}

/** @param {Question} question */
function further({ more }) {
  if (more === null) return "";
  return more <= 0 ? "The estimate is within \u00b15 % already." : `For \u00b15 % it takes about ${more.toLocaleString("en")} more ${more === 1 ? "answer" : "answers"}.`;
}
