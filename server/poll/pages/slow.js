/** One made-up respondent, step by step: a true answer, the coin, the report, and what the server can know. The code is that of the phones. */

import { at, make } from "./dom.js";
import { build, systemWords } from "./client/index.js";
import { drawn, zone } from "./coin.js";
import { bits, coin, meaning } from "./methods.js";
import { percent } from "./phrases.js";

/** @typedef {import("./session.js").Question} Question */

const NAMES = ["Ada", "Blaise", "Emmy", "Leonhard", "Mary", "Pierre", "Sofia", "Thomas"];

/** A whole number below n, uniform to within 2^-50. @param {number} n */
const any = n => Number(systemWords.word(64, 0, 0) % BigInt(n));

/** The steps of a new made-up respondent. @param {Question} question @returns {Node[]} */
function steps(question) {
  const randomizer = /** @type {any} */ (build(question.randomizer, question.randomizer_params));
  const name = NAMES[any(NAMES.length)], { low, high } = randomizer.domain;
  const share = any(101) / 100, value = question.kind === "number" ? Math.round(low + share * (high - low)) : any(high + 1);
  const { labels } = question;
  const truth = question.kind === "number" ? String(Number((question.low + share * (question.high - question.low)).toPrecision(3))) : labels[value];
  const cell = any(randomizer.cells), word = randomizer.leading(systemWords.word(randomizer.width, 0, 0));
  const report = randomizer.sample(value, word, cell), fell = coin(randomizer, value, word);
  const sent = meaning(randomizer, { labels }, report, cell);
  return [
    make("span", {}, `${name} is made up. The true answer is: ${truth}.`),
    make("span", {}, `The phone tosses its coin. It falls at ${percent(fell.at)} of the line.`, ...drawn(fell)),
    make("span", {}, `That is the zone \u201c${zone(fell)}\u201d. So the phone sends: ${sent}${sent === truth ? ", the truth" : ""}.`),
    make("span", {}, "The server sees ", make("span", { class: "bits" }, bits(randomizer, report)), ". It never sees the coin."),
    make("span", {}, doubt(randomizer, report)),
  ];
}

/** How likely this report is under each answer. @param {any} randomizer @param {number} report */
function doubt(randomizer, report) {
  const { channel } = randomizer, { low, high } = channel.domain, step = Math.max(1, Math.floor((high - low) / 64)), laws = [];
  for (let value = low; value <= high; value += step) laws.push(channel.weight(report, value));
  laws.sort((one, other) => (one < other ? -1 : 1));
  const share = (/** @type {bigint} */ part) => percent(Number((part * 1000000n) / channel.total) / 1000000);
  return `Under any answer this report has a chance from ${share(laws[0])} to ${share(laws[laws.length - 1])}. So nobody can tell which answer was true.`;
}

export class Slow {
  /** @param {Question} question */
  constructor(question) {
    this.question = question;
    /** @type {Node[]} */
    this.rest = [];
    at("step").addEventListener("click", () => this.step());
    at("slow").hidden = false;
    at("slow-question").textContent = question.text;
    this.begin();
  }

  begin() {
    this.rest = steps(this.question);
    at("steps").replaceChildren();
    this.step();
  }

  step() {
    const next = this.rest.shift();
    if (!next) return this.begin();
    for (const before of at("steps").children) before.removeAttribute("aria-current");
    at("steps").append(make("li", { "aria-current": "step" }, next));
    at("step").textContent = this.rest.length ? "Next step" : "Another respondent";
  }
}
