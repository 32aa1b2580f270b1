/** The class game in words: the made-up record, what a round asks of it, and what each report says. Bit 0 stands first everywhere. */

/** @typedef {{x: number, i: number, b: number, y: number}} Example a made-up record, as the server deals it */

/** @param {any} vector a whole number @param {number} place */
const bit = (vector, place) => Number((BigInt(vector) >> BigInt(place)) & 1n);

/** @param {any} vector @param {number} size */
const text = (vector, size) => Array.from({ length: size }, (_, place) => bit(vector, place)).join("");

/** The record in one line, and what its label shows. @param {Example} record @param {number} size */
export function dealt({ x, i, b, y }, size) {
  const shows = b ? `bit ${i} of r is ${y < 0 ? 1 : 0}` : `the parity of x where r has ones, flipped if a is 1, is ${y < 0 ? "odd" : "even"}`;
  return [`x = ${text(x, size)}, i = ${i}, b = ${b}, label ${y < 0 ? "\u22121" : "+1"}`, `With b = ${b}, the label shows: ${shows}.`];
}

/**
 * What a round of the game asks, and every report in words, in order; null where it asks nothing.
 * @param {number} bits
 * @param {number} round
 * @param {Map<string, any>} given by the server
 */
export function play(bits, round, given) {
  const d = BigInt(bits), all = (1n << d) - 1n, [r, free] = [given.get("r"), given.get("free")], which = [...of(places(all, bits)), "nothing"];
  if (round === 1) return { query: "masked-index", params: { d }, text: "Round 1: which bit of r does your label show?", labels: which };
  if (round !== 2 || ![r, free].every(vector => typeof vector === "bigint" && vector >= 0n && vector <= all)) return null;
  const open = places(free, bits), listed = Array.from({ length: 2 ** open.length }, (_, at) => `x is ${text(at, open.length)}, and the label `);
  return {
    query: "masked-list",
    params: { d, r, free, asked: free },
    text:
      `Round 2: with b = 0, what is x at the places ${open.join(", ")}, and does the label fit r = ${text(r, bits)}? ` +
      "With b = 1, which open bit does it show?",
    labels: [...listed.flatMap(what => [`${what}fits`, `${what}does not fit`]), ...of(open), "nothing"],
  };
}

/** @param {number[]} shown */
const of = shown => shown.flatMap(place => [`bit ${place} is 0`, `bit ${place} is 1`]);

/** @param {any} vector @param {number} size */
const places = (vector, size) => Array.from({ length: size }, (_, place) => place).filter(place => bit(vector, place));
