/** Finite channels: randomizers that are a table of whole weights. A report is a function of the value, of one random word and of a public coin. */

import { InputError } from "../bytes.js";
import { NANO, ceil, expEpsilon, fraction, nanoEpsilon, over, plus } from "../rational.js";

const SLACK = 5e-7; // nats that rounding a threshold may cost before words of 64 bits are used

/** @typedef {import("../schema.js").Parameters} Parameters */
/** @typedef {{kind: string, low: number, high: number}} Domain Every whole number from low to high. */

/** @typedef {{domain: Domain, alphabet: number, total: bigint, weight(report: number, value: number): bigint}} Channel What is enumerated. */

/**
 * The parameters of a randomizer, which must be these and no others. Throws InputError.
 * @param {Parameters} params
 * @param {string[]} names
 * @returns {(name: string) => any}
 */
export function read(params, names) {
  for (const name of params.keys()) {
    if (!names.includes(name)) throw new InputError(`there is no parameter ${JSON.stringify(name)}; there are ${names.join(", ")}`);
  }
  return (name) => params.get(name);
}

/**
 * A whole number that may be left out. Throws InputError.
 * @param {string} name
 * @param {any} value
 * @param {number} usual
 * @param {number} least
 * @param {number} most
 */
export function wholeNumber(name, value, usual, least, most) {
  if (value === undefined) return usual;
  if (typeof value !== "bigint" || value < BigInt(least) || value > BigInt(most)) {
    throw new InputError(`${name} is ${String(value).slice(0, 40)}; give a whole number from ${least} to ${most}`);
  }
  return Number(value);
}

/** One of k symbols, 0..k-1. @param {number} k @returns {Domain} */
export function symbols(k) {
  return { kind: "symbols", low: 0, high: k - 1 };
}

/**
 * The least whole s with (2^bits - (k - 1) s) / s <= e^epsilon: each other one of k symbols has the chance s / 2^bits, never less than privacy needs.
 * @param {number} nano
 * @param {number} bits
 * @param {number} k
 */
export function otherWeight(nano, bits, k) {
  return ceil(over(fraction(1n << BigInt(bits)), plus(fraction(BigInt(k - 1)), expEpsilon(nano))));
}

/** Whether ln(kept / changed) is within SLACK of epsilon. @param {bigint} kept @param {bigint} changed @param {number} nano */
export function losesLittle(kept, changed, nano) {
  return nano / NANO - Math.log(Number(kept) / Number(changed)) <= SLACK;
}

/** The base of every randomizer here. Privacy: weight(w, u) <= e^epsilon weight(w, u') for all reports w and values u, u'; `verify` enumerates it. */
export class Finite {
  /**
   * @param {string} name
   * @param {any} epsilon nats
   * @param {any} wordBits the width of its words; 0 or nothing picks 32 or 64
   */
  constructor(name, epsilon, wordBits) {
    this.name = name;
    this.nano = nanoEpsilon(epsilon);
    this.epsilon = Number(epsilon);
    const bits = wholeNumber("word_bits", wordBits, 0, 0, 64);
    if (bits > 32 && bits !== 64) throw new InputError(`word_bits is ${bits}; give 64, or 0 to 32`);
    this.asked = bits;
    this.wordBits = bits;
    this.alphabet = 2;
    /** @type {Domain} */
    this.domain = symbols(2);
    this.cells = 1;
  }

  /** Settles the width of the words; a subclass calls it once its parameters are known. Throws InputError where words are too narrow. */
  settle() {
    if (this.asked === 0) this.wordBits = this.fits(32) ? 32 : 64;
    this.prepare();
  }

  /** Whether words of this width lose little to rounding. @param {number} bits @returns {boolean} */
  fits(bits) {
    return bits === 64;
  }

  /** Computes the thresholds. */
  prepare() {}

  /** @returns {InputError} */
  tooNarrow() {
    return new InputError(`${this.name}: words of ${this.wordBits} bits are too narrow for epsilon ${this.epsilon}; raise epsilon, or leave word_bits out`);
  }

  /** The width in which its words are drawn. @returns {32 | 64} */
  get width() {
    return this.wordBits > 32 ? 64 : 32;
  }

  /** 2^word_bits, the weight of certainty. */
  get total() {
    return 1n << BigInt(this.wordBits);
  }

  /** The channel whose enumeration proves the loss: this one, or that of the codes. @returns {Channel} */
  get channel() {
    return this;
  }

  get usesCoins() {
    return this.cells > 1;
  }

  /** The part of a 64-bit public coin that it uses. @param {bigint} coin */
  cellOf(coin) {
    return Number(coin % BigInt(this.cells));
  }

  /** 2^word_bits Pr[report | value, cell]. @param {number} report @param {number} value @param {number} [cell] @returns {bigint} */
  weight(report, value, cell = 0) {
    throw new Error(`${this.name} has no weight of ${report}, ${value}, ${cell}`);
  }

  /** The report of a value by one word of `word_bits` bits. @param {number} value @param {bigint} word @param {number} [cell] @returns {number} */
  sample(value, word, cell = 0) {
    throw new Error(`${this.name} has no sampler of ${value}, ${word}, ${cell}`);
  }

  /** The word of `word_bits` bits in one that was drawn: its leading bits. @param {bigint} drawn */
  leading(drawn) {
    return drawn >> BigInt(this.width - this.wordBits);
  }

  /**
   * A word below the edge makes a report of the kind that the class names; for a page that draws the coin as a line with two zones.
   * @param {number} value
   * @returns {bigint}
   */
  edge(value) {
    throw new Error(`${this.name} has no edge of ${value}`);
  }

  /** The exact law of a value's report. @param {number} value @param {number} [cell] @returns {bigint[]} */
  law(value, cell = 0) {
    return Array.from({ length: this.alphabet }, (_, report) => this.weight(report, value, cell));
  }

  /** The bytes of one report on the wire. */
  get reportBytes() {
    return this.alphabet <= 1 << 8 ? 1 : this.alphabet <= 1 << 16 ? 2 : 4;
  }

  /** A report as it is sent, the least significant byte first. @param {number} report */
  bytes(report) {
    return Uint8Array.from({ length: this.reportBytes }, (_, place) => (report >>> (8 * place)) & 255);
  }
}

/**
 * A randomizer that sends the code of its value under a public coin through an `inner` channel. A subclass sets `inner` and gives `encode`.
 * @template {Finite} Inner
 */
export class Coded extends Finite {
  /** @type {Inner} */
  inner = /** @type {any} */ (undefined);

  get channel() {
    return this.inner;
  }

  /** The code of a value under a coin, in the domain of the inner channel whatever the coin. @param {number} value @param {number} [cell] @returns {number} */
  encode(value, cell = 0) {
    throw new Error(`${this.name} has no code of ${value}, ${cell}`);
  }

  /** @param {number} value */
  edge(value) {
    return this.inner.edge(value);
  }

  /** @param {number} value @param {bigint} word @param {number} cell */
  sample(value, word, cell = 0) {
    return this.inner.sample(this.encode(value, cell), word);
  }

  /** @param {number} report @param {number} value @param {number} cell */
  weight(report, value, cell = 0) {
    return this.inner.weight(report, this.encode(value, cell));
  }
}
