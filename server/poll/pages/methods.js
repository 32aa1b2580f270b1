/** What a randomizer does, for people: its chances, its zones of the coin, and the meaning of a report. All from the thresholds that it really uses. */

/** @typedef {any} Randomizer of the client in JavaScript */
/** @typedef {{kind: "flip" | "label" | "subset" | "bit", share: number, size?: number}} Chance share: of the case that the sentence names */
/** @typedef {{at: number, edge: number, zones: [string, string]}} Coin where the coin fell and where the first zone ends, from 0 to 1 */

/** Of each randomizer: the case that its chance names, and the zones of the line, below the edge and beyond it. */
/** @type {Record<string, [Chance["kind"], string, string]>} */
const METHODS = {
  "binary-rr": ["flip", "flip", "keep"],
  grr: ["label", "another answer", "your answer"],
  "subset-selection": ["subset", "with yours", "without yours"],
  "one-bit-mean": ["bit", "send 1", "send 0"],
  "signed-blocks": ["bit", "another report", "your report"],
};

/** A whole number of 2^bits as a share. @param {bigint} part @param {bigint} total */
const share = (part, total) => Number((part << 53n) / total) / 2 ** 53;

/** @param {Randomizer} randomizer @returns {Chance} */
export function chance(randomizer) {
  const [kind] = METHODS[randomizer.name];
  return { kind, size: randomizer.inner?.w, share: share(randomizer.edge(0), randomizer.total) };
}

/** The coin that was used: the word on the line of all words. @param {Randomizer} randomizer @param {number} value @param {bigint} word @returns {Coin} */
export function coin(randomizer, value, word) {
  const [, below, beyond] = METHODS[randomizer.name];
  return { at: share(word, randomizer.total), edge: share(randomizer.edge(value), randomizer.total), zones: [below, beyond] };
}

/**
 * A report in words.
 * @param {Randomizer} randomizer
 * @param {{labels: readonly string[]}} question
 * @param {number} report
 * @param {number} cell of the public coin
 */
export function meaning(randomizer, question, report, cell) {
  if (randomizer.name !== "subset-selection") return question.labels?.[report] ?? String(report);
  return question.labels.filter((_, place) => randomizer.inner.weight(report, randomizer.encode(place, cell)) === randomizer.inner.held).join(" / ");
}

/** The bits of a report, as many as tell all reports apart. @param {Randomizer} randomizer @param {number} report */
export function bits(randomizer, report) {
  return report.toString(2).padStart(Math.max(1, (randomizer.alphabet - 1).toString(2).length), "0");
}
