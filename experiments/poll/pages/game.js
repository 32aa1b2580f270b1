/** The class game in words: the made-up record, what a round asks of it, and what each report says. Bit 0 stands first everywhere. */

/** @typedef {import("./client/wire.js").Ask} Ask */
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

/** What a round of an announced game asks; empty for any other request. @param {{bits?: number, epsilon: number}} game @param {Ask} ask */
export function asked({ bits, epsilon }, { query, query_params: params, randomizer, randomizer_params: law }) {
  const isOurs = bits !== undefined && Number(params.get("d")) === bits && randomizer === "signed-blocks" && Number(law.get("epsilon")) === epsilon;
  if (!isOurs || Number(law.get("size")) !== 1) return "";
  if (query === "masked-index") return "Round 1: which bit of r does your label show?";
  if (query !== "masked-list") return "";
  const open = places(params.get("free"), bits).join(", ");
  return `Round 2: with b = 0, what is x at the places ${open}, and does the label fit r = ${text(params.get("r"), bits)}? With b = 1, which open bit does it show?`;
}

/** Every report of such a round in words, in order. @param {Ask} ask @returns {string[]} */
export function reports({ query, query_params: params }) {
  const size = Number(params.get("d")), open = places(params.get("free") ?? 0n, size), isList = query === "masked-list";
  const shown = isList ? places(params.get("asked"), size) : Array.from({ length: size }, (_, place) => place);
  const listed = isList ? Array.from({ length: 2 ** open.length }, (_, symbol) => `x is ${text(symbol, open.length)}, and the label `) : [];
  return [...listed.flatMap(what => [`${what}fits`, `${what}does not fit`]), ...shown.flatMap(place => [`bit ${place} is 0`, `bit ${place} is 1`]), "nothing"];
}

/** @param {any} vector @param {number} size */
const places = (vector, size) => Array.from({ length: size }, (_, place) => place).filter(place => bit(vector, place));
