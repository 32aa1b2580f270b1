/** The coin of an answer as a drawing: the line from 0 to 1, its zone of flips, and the place where the coin fell. */

import { make } from "./dom.js";
import { percent } from "./phrases.js";

/** @typedef {import("./session.js").Question} Question */
/** @typedef {import("./session.js").Sent} Sent */

/** What was sent for one question. The answer and its coin are there only in the tab that sent it. @param {Question} question @param {Sent} sent */
export function report(question, sent) {
  const facts = make("dl", { class: "facts" });
  const fact = (/** @type {string} */ name, /** @type {Node | string} */ value) => facts.append(make("dt", {}, name), make("dd", {}, value));
  if (sent.answer !== null) fact("You said", named(question, sent.answer));
  fact("Phone sent", sent.meaning);
  fact(sent.bits.length === 1 ? "The bit" : `The ${sent.bits.length} bits`, make("span", { class: "bits" }, sent.bits));
  const parts = sent.coin === null ? [] : [strip(sent), make("p", { class: "scale" }, make("span", {}, zone(sent, 0)), make("span", {}, zone(sent, 1))), make("p", {}, story(sent))];
  return make("section", {}, make("h3", {}, question.text), ...parts, facts);
}

/** @param {Question} question @param {number} answer */
const named = (question, answer) => (question.kind === "number" ? String(answer) : question.labels[answer]);

/** @param {Sent} sent */
function strip(sent) {
  const edge = 100 * (sent.threshold ?? 0), place = `${100 * (sent.coin ?? 0)}%`;
  const label = `The coin fell at ${percent(sent.coin ?? 0)} of the line; the zone on the left ends at ${percent(sent.threshold ?? 0)}`;
  return make(
    "svg",
    { class: "strip", role: "img", "aria-label": label },
    make("rect", { x: 0, y: 6, width: `${edge}%`, height: 18, class: "zone-flip" }),
    make("rect", { x: `${edge}%`, y: 6, width: `${100 - edge}%`, height: 18, class: "zone-keep" }),
    make("line", { x1: place, x2: place, y1: 0, y2: 30, class: "marker" }),
  );
}

/** @param {Sent} sent @param {number} side */
function zone(sent, side) {
  const [left, right] = sent.zones;
  const share = sent.threshold ?? 0;
  return side === 0 ? `${left}: ${percent(share)}` : `${right}: ${percent(1 - share)}`;
}

/** @param {Sent} sent */
const story = sent => `The coin fell at ${percent(sent.coin ?? 0)}, in the zone \u201c${sent.zones[(sent.coin ?? 0) < (sent.threshold ?? 0) ? 0 : 1]}\u201d.`;
