/** One question on the presenter's page: estimate, interval, how it narrows, what one more answer changes, and the wall of reports. */

import { make, say } from "./dom.js";
import { cases, ratio } from "./phrases.js";
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
 * @typedef {object} Question one question so far
 * @property {string} text
 * @property {"yes-no" | "labels" | "number"} kind
 * @property {number} epsilon
 * @property {number} [low] of a number: the least and the greatest possible one
 * @property {number} [high]
 * @property {number} answered
 * @property {Row[]} rows
 * @property {[number, number, number | null, number | null, number | null][]} history answers, half the widest interval, value, low, high
 * @property {number | null} step how far one more answer can move an estimate
 * @property {number | null} more how many more answers an interval of +-5 % takes
 */

/** A number as it is shown: shares in percent. @param {number} value @param {Question} question @param {number} digits */
export function shown(value, question, digits = 0) {
  const text = question.kind === "number" ? Number(value.toPrecision(3)).toString() : `${(100 * value).toFixed(digits)}\u00a0%`;
  return text.replace("-", "\u2212");
}

/** What is possible. @param {Question} question @returns {[number, number]} */
export function scale({ low, high }) {
  return low === undefined || high === undefined ? [0, 1] : [low, high];
}

export class Card {
  /** @param {number} place */
  constructor(place) {
    const id = (/** @type {string} */ part) => `card-${place}-${part}`;
    this.id = id;
    this.title = make("h2", { id: id("title") });
    this.rows = make("ul", { class: "rows" });
    this.drawing = make("svg", { height: 200, role: "img", "aria-label": "No estimate yet", class: "history" });
    this.wall = new Wall(place);
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
    say(id("chance"), privacy(question));
    const alone = question.rows.length === 1;
    if (row && row.value !== null) {
      say(id("value"), alone ? headline(row, question) : "");
      say(id("interval"), alone ? detail(row, question) : "Estimates with their 95 % intervals");
    }
    this.rows.replaceChildren(...question.rows.filter(each => each.value !== null).map(each => this.row(each, question, alone)));
    narrowing(this.drawing, question);
    const what = alone ? "the estimate" : "an estimate";
    say(id("step"), question.step === null ? "" : `One more answer moves ${what} by at most ${shown(question.step, question, 1)}.`);
    say(id("more"), further(question));
    this.wall.follow(question.answered);
  }

  /** @param {Row} row @param {Question} question @param {boolean} alone */
  row(row, question, alone) {
    const drawing = make("svg", { height: 18, "aria-hidden": "true" });
    span(drawing, row, question);
    const text = `${within(row.value ?? 0, question)} ${between(row, question)}`;
    return make("li", {}, ...(alone ? [] : [make("span", {}, row.label), make("span", {}, text)]), drawing);
  }
}

/** A number within the possible ones: an estimate may lie beyond while answers are few. @param {number} value @param {Question} question */
function within(value, question) {
  const [low, high] = scale(question);
  return shown(Math.min(high, Math.max(low, value)), question);
}

/** @param {Row} row @param {Question} question */
const between = ({ low, high }, question) => (low === null || high === null ? "" : `(${within(low, question)} to ${within(high, question)})`);

/** @param {Row} row @param {Question} question */
function isOpen({ low, high }, question) {
  const [least, most] = scale(question);
  return low === null || high === null || (low <= least && high >= most);
}

/** @param {Row} row @param {Question} question */
function headline(row, question) {
  if (isOpen(row, question)) return "Too few answers yet";
  return question.kind === "yes-no" ? `${within(row.value ?? 0, question)} say ${row.label}` : `${within(row.value ?? 0, question)} on average`;
}

/** @param {Row} row @param {Question} question */
function detail(row, question) {
  const [low, high] = scale(question), value = row.value ?? 0;
  const isBeyond = value < low || value > high;
  const raw = isBeyond ? ` The unbiased estimate is ${shown(value, question)}, which is beyond: chance alone did that.` : "";
  return (isOpen(row, question) ? "Everything is possible so far." : `95 % interval: ${between(row, question).slice(1, -1)}.`) + raw;
}

/** @param {Question} question */
function further({ more }) {
  if (more === null) return "";
  const answers = more === 1 ? "answer" : "answers";
  return more <= 0 ? "The estimate is within \u00b15 % already." : `For \u00b15 % it takes about ${more.toLocaleString("en")} more ${answers}.`;
}

/** @param {Question} question */
function privacy({ kind, epsilon }) {
  const flips = kind === "yes-no" ? `In ${cases(1 / (Math.exp(epsilon) + 1))} a phone says the opposite. ` : "";
  return flips + ratio(Math.round(1e9 * epsilon));
}
