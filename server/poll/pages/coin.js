/** The coin of an answer as a drawing: the line from 0 to 1, its zone of flips, and the place where the coin fell. */

import { make } from "./dom.js";
import { percent } from "./phrases.js";

/** @typedef {import("./session.js").Sent} Sent */
/** @typedef {import("./methods.js").Coin} Coin */

/** What was sent for one question. The answer and its coin are there only in the tab that sent it. @param {Sent} sent */
export function report(sent) {
  const facts = make("dl", { class: "facts" });
  const fact = (/** @type {string} */ name, /** @type {Node | string} */ value) => facts.append(make("dt", {}, name), make("dd", {}, value));
  if (sent.answer !== null) fact(sent.question.kind === "record" ? "Your record says" : "You said", sent.question.kind === "number" ? String(sent.answer) : sent.question.labels[sent.answer]);
  fact("Phone sent", sent.meaning);
  fact(sent.bits.length === 1 ? "The bit" : `The ${sent.bits.length} bits`, make("span", { class: "bits" }, sent.bits));
  fact(sent.bytes.length === 8 ? "In the byte" : "In the bytes", sent.bytes);
  const { coin } = sent, fell = coin && `The coin fell at ${percent(coin.at)}, in the zone \u201c${zone(coin)}\u201d.`;
  return make("section", {}, make("h3", {}, sent.text), ...(coin ? [...drawn(coin), make("p", {}, fell ?? "")] : []), facts);
}

/** The zone in which the coin fell. @param {Coin} coin */
export const zone = ({ at, edge, zones: [left, right] }) => (at < edge ? left : right);

/** The line with its two zones, and where the coin fell. @param {Coin} coin */
export function drawn({ at, edge, zones: [left, right] }) {
  const place = `${100 * at}%`;
  const strip = make(
    "svg",
    { class: "strip", role: "img", "aria-label": `A line from 0 to 100 %: the zone \u201c${left}\u201d up to ${percent(edge)}, then \u201c${right}\u201d` },
    make("rect", { x: 0, y: 6, width: `${100 * edge}%`, height: 18, class: "zone-flip" }),
    make("rect", { x: `${100 * edge}%`, y: 6, width: `${100 - 100 * edge}%`, height: 18, class: "zone-keep" }),
    make("line", { x1: place, x2: place, y1: 0, y2: 30, class: "marker" }),
  );
  return [strip, make("p", { class: "scale" }, make("span", {}, `${left}: ${percent(edge)}`), make("span", {}, `${right}: ${percent(1 - edge)}`))];
}
