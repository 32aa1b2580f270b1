/** What a randomizer does, for people: its chances, its zones of the coin, and the meaning of a report. All from the thresholds that it really uses. */

/** @typedef {import("./session.js").Question} Question */
/** @typedef {{name: string, total: bigint, alphabet: number, [part: string]: any}} Randomizer of the client in JavaScript */
/** @typedef {{kind: "flip" | "label" | "subset" | "bit", share: number, size?: number}} Chance share: of the case that the sentence names */
/** @typedef {{at: number, edge: number, zones: [string, string]}} Coin where the coin fell and where the first zone ends, from 0 to 1 */

/** A whole number of 2^bits as a share. @param {bigint} part @param {bigint} total */
const share = (part, total) => Number((part << 53n) / total) / 2 ** 53;

/** @param {Randomizer} randomizer @returns {Chance} */
export function chance(randomizer) {
  const { name, total } = randomizer;
  switch (name) {
    case "binary-rr":
      return { kind: "flip", share: share(randomizer.flip, total) };
    case "grr":
      return { kind: "label", share: 1 - share(randomizer.truth, total) };
    case "subset-selection":
      return { kind: "subset", size: randomizer.inner.w, share: share(BigInt(randomizer.inner.w) * randomizer.inner.held, total) };
    default:
      return { kind: "bit", share: share(randomizer.base, total) };
  }
}

/** The coin that was used: the word in the line of all words. @param {Randomizer} randomizer @param {number} value as the randomizer takes it @param {bigint} word @returns {Coin} */
export function coin(randomizer, value, word) {
  const { name, total } = randomizer, at = share(word, total);
  switch (name) {
    case "binary-rr":
      return { at, edge: share(randomizer.flip, total), zones: ["flip", "keep"] };
    case "grr":
      return { at, edge: 1 - share(randomizer.truth, total), zones: ["another answer", "your answer"] };
    case "subset-selection":
      return { at, edge: share(BigInt(randomizer.inner.w) * randomizer.inner.held, total), zones: ["with yours", "without yours"] };
    default:
      return { at, edge: share(randomizer.ones(value), total), zones: ["send 1", "send 0"] };
  }
}

/** A report in words. @param {Randomizer} randomizer @param {Question} question @param {number} report @param {number} cell of the public coin */
export function meaning(randomizer, question, report, cell) {
  switch (randomizer.name) {
    case "binary-rr":
      return report === 1 ? "yes" : "no";
    case "grr":
      return question.labels[report];
    case "subset-selection":
      return question.labels.filter((_, place) => randomizer.inner.weight(report, randomizer.encode(place, cell)) === randomizer.inner.held).join(" / ");
    default:
      return String(report);
  }
}

/** The bits of a report, as many as tell all reports apart. @param {Randomizer} randomizer @param {number} report */
export function bits(randomizer, report) {
  return report.toString(2).padStart(Math.max(1, (randomizer.alphabet - 1).toString(2).length), "0");
}
