/** The questions as the page shows them, and the asks that it builds from them alone: a server gives no parameter that is not on the screen. */

import { InputError, build, buildQuery, verify } from "./client/index.js";
import { rowOf, schemaOf } from "./client/record.js";
import { play } from "./game.js";
import { chance } from "./methods.js";

/**
 * @typedef {object} Asked what a request must have, to the letter
 * @property {string} query
 * @property {Map<string, any>} query_params
 * @property {string} randomizer
 * @property {Map<string, any>} randomizer_params
 */
/** @typedef {"yes-no" | "labels" | "number" | "record"} Kind the last one of a game */
/** @typedef {{name: string, text: string, kind: Kind, labels: string[], low: number, high: number}} Words what is on the screen; `name` of its column */
/** @typedef {{nano: number, chance: import("./methods.js").Chance}} Cost computed here, in nano-nats */
/** @typedef {Asked & Words & Cost} Question `labels` of the answers, by their value where it is yes or no; `low` and `high` of a number */
/** @typedef {{epsilon: number, nano: number, question?: string, bits?: number, rule?: string}} Again the number asked about once more; or the game */
/** @typedef {{run: string, server: string, title: string, open: boolean, questions: Question[], again: Again | null, cost: number}} Poll */

const STEPS = 65536n;
const MOST_BITS = 10; // of a game: a report has a word for each
const YES = ["no", "yes"];
/** The randomizers of each kind. @type {Map<any, string[]>} */
const METHODS = new Map([["yes-no", ["binary-rr"]], ["labels", ["grr", "subset-selection"]], ["number", ["one-bit-mean"]]]);
const TURNED = /[\u202a-\u202e\u2066-\u2069]/; // shows letters in another order

/** A text without what the eye cannot see. @param {string} text */
const visible = text => text.normalize("NFC").replace(/(?![\t-\r])[\p{C}\p{DI}\u2800]/gu, "").replace(/\s+/g, " ").trim();

/** @param {unknown} text */
const isClear = text => typeof text === "string" && visible(text) !== "" && !TURNED.test(text);

/** @param {boolean} holds @param {string} fault */
function check(holds, fault) {
  if (!holds) throw new InputError(`This poll is not clear: ${fault}.`);
}

/** A query and a randomizer by name, verified. @param {string} query @param {object} of @param {string} randomizer @param {Record<string, any>} law */
function asking(query, of, randomizer, law) {
  check(typeof law.epsilon === "number", "an epsilon is no number");
  const query_params = new Map(Object.entries(of)), randomizer_params = new Map(Object.entries(law)), made = build(randomizer, randomizer_params);
  randomizer_params.set("word_bits", BigInt(made.wordBits));
  verify(made);
  return { query, query_params, randomizer, randomizer_params, nano: made.nano, chance: chance(made) };
}

/** A question with the one ask that it makes. Throws InputError or RefusedError. @param {any} given by the server @param {number} place @returns {Question} */
export function examine({ text, kind, labels, low, high, epsilon, randomizer }, place) {
  const name = `q${place + 1}`, number = `question ${place + 1}`, own = kind === "yes-no" ? YES : kind === "labels" ? labels : [];
  check(isClear(text), `${number} has no text that can be read`);
  check(Boolean(METHODS.get(kind)?.includes(randomizer)), `${number} is of a kind, or by a method, that this page does not know`);
  check(Array.isArray(own) && own.every(isClear), `an answer to ${number} cannot be read`);
  check(new Set(own.map(visible)).size === own.length, `two answers to ${number} look the same`);
  const made = {
    "yes-no": () => asking("question", { text: `${name} == 1`, spare: [] }, randomizer, { epsilon }),
    labels: () => asking("category", { column: name, labels: own, spare: [] }, randomizer, { epsilon, k: BigInt(own.length) }),
    number: () => asking("bounded", { column: name, low, high }, randomizer, { epsilon, steps: STEPS }),
  }[/** @type {"yes-no" | "labels" | "number"} */ (kind)]();
  const { value } = buildQuery(made.query, made.query_params), schema = schemaOf({ [name]: "text" });
  const isItself = kind !== "labels" || own.every((/** @type {string} */ label, /** @type {number} */ at) => value(rowOf({ [name]: label }, schema)) === at);
  check(isItself, `an answer to ${number} would count as another one`);
  return { ...made, name, text, kind, labels: own, low, high };
}

/** The announced second question, at a threshold. @param {Question[]} questions @param {Again} again @param {any} end @returns {Question} */
export function threshold(questions, { question, epsilon }, end) {
  const about = questions.find(({ name, kind }) => name === question && kind === "number");
  if (!about) throw new InputError("This poll is not clear: its second question is about none of its numbers.");
  const at = Number(end), text = `${about.text} Is your number below ${at}?`;
  const made = asking("below", { column: about.name, end: at, missing: STEPS / 2n }, "one-bit-mean", { epsilon, steps: STEPS });
  return { ...about, ...made, text, kind: "yes-no", labels: YES };
}

/** The one question of a round of a game; null where it asks none. @param {Again} game @param {number} round @param {Asked} ask @returns {Question | null} */
export function move({ bits = 0, epsilon }, round, ask) {
  const found = play(bits, round, ask.query_params);
  if (!found) return null;
  const { query, params, text, labels } = found, law = { epsilon, k: BigInt((labels.length - 1) / 2), size: 1n };
  return { ...asking(query, params, "signed-blocks", law), name: "", text, kind: "record", labels, low: 0, high: 0 };
}

/** What a request asks, as text, however its numbers are written. @param {Asked} ask */
export function written({ query, query_params: params, randomizer, randomizer_params: law }) {
  const plain = (/** @type {string} */ _, /** @type {any} */ value) => (typeof value === "bigint" ? Number(value) : value);
  const sorted = (/** @type {Map<string, any>} */ map) => [...map].sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([query, sorted(params), randomizer, sorted(law)], plain);
}

/** The poll as the page shows it, with the cost of all that may come. Throws InputError or RefusedError. @param {any} given by the server @returns {Poll} */
export function pollOf({ run, server, title, open, questions, again }) {
  check(isClear(title), "it has no title");
  check(Array.isArray(questions) && (questions.length > 0) === !again?.bits, "it has neither questions nor a game, or both");
  const made = /** @type {any[]} */ (questions).map(examine), sum = made.reduce((total, { nano }) => total + nano, 0);
  if (!again) return { run, server, title, open, questions: made, again: null, cost: sum };
  const { epsilon, question, bits, rule } = again;
  check(!bits || (Number.isInteger(bits) && bits > 0 && bits <= MOST_BITS && isClear(rule)), "its game cannot be read");
  const second = bits ? move(again, 1, { query: "", query_params: new Map(), randomizer: "", randomizer_params: new Map() }) : threshold(made, again, 0);
  const { nano } = /** @type {Question} */ (second);
  return { run, server, title, open, questions: made, again: { epsilon, nano, question, bits, rule }, cost: sum + nano };
}
