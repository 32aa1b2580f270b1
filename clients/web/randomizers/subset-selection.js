/** Subset selection (Ye, Barg 2018; by a block design: Park, Nam, Lee 2023): a report is a set of w symbols, more often one with the client's symbol. */

import { ceil, compare, exactly, expEpsilon, floor, fraction, minus, over, plus, times, toDouble } from "../rational.js";
import { Coded, Finite, losesLittle, read, symbols, wholeNumber } from "./finite.js";

const MAX_SYMBOLS = 1024;

/** @param {number} order */
function binary(order) {
  return (order & (order - 1)) === 0;
}

/**
 * Reports one of the K translates of the block {0, .., w - 1} in a group of order K: a code's own are those that contain it.
 *
 * The group is addition modulo K, or of bits where K is a power of two. Privacy: T / s <= e^eps for the weights T of its own and s of the others, one of
 * which takes the remainder, fewer than w words.
 */
class Translates extends Finite {
  /** @param {any} epsilon @param {number} wordBits @param {number} order @param {number} w */
  constructor(epsilon, wordBits, order, w) {
    super("translates", epsilon, BigInt(wordBits));
    this.alphabet = order;
    this.domain = symbols(order);
    this.w = w;
    this.held = 0n;
    this.other = 0n;
    this.rest = 0n;
    this.settle();
  }

  /** T and s: s is the least whole number for which T = (2^bits - (K - w) s) / w, rounded down, is at most e^eps s. @param {number} bits */
  weights(bits) {
    const [w, beyond] = [BigInt(this.w), BigInt(this.alphabet - this.w)];
    const whole = 1n << BigInt(bits);
    const other = ceil(over(fraction(whole), plus(times(fraction(w), expEpsilon(this.nano)), fraction(beyond))));
    return [floor(fraction(whole - beyond * other, w)), other];
  }

  /** @param {number} bits */
  fits(bits) {
    const [own, other] = this.weights(bits);
    return own > other && losesLittle(own, other, this.nano);
  }

  prepare() {
    [this.held, this.other] = this.weights(this.wordBits);
    this.rest = this.total - BigInt(this.w) * this.held - BigInt(this.alphabet - this.w) * this.other;
    if (this.held <= this.other + this.rest) throw this.tooNarrow();
  }

  /** first - second in the group: its own inverse in the second argument. @param {number} first @param {number} second */
  away(first, second) {
    return binary(this.alphabet) ? first ^ second : (first - second + this.alphabet) % this.alphabet;
  }

  /** Below it the set contains the symbol. */
  edge() {
    return BigInt(this.w) * this.held;
  }

  /**
   * Splits the word's range into w steps of T and K - w of s, the last one longer by the remainder; the step is the code's place in the set.
   * @param {number} value
   * @param {bigint} word
   */
  sample(value, word) {
    const own = BigInt(this.w) * this.held;
    const beyond = Number((word - own) / this.other);
    const rank = word < own ? Number(word / this.held) : this.w + Math.min(beyond, this.alphabet - this.w - 1);
    return this.away(value, rank);
  }

  /** @param {number} report @param {number} value */
  weight(report, value) {
    const rank = this.away(value, report);
    if (rank < this.w) return this.held;
    return rank === this.alphabet - 1 ? this.other + this.rest : this.other;
  }
}

/**
 * Reports a set of w of k symbols: each set that contains the client's symbol e^eps times as likely as each other one.
 *
 * A public coin permutes the symbols: it multiplies in a finite field, or for w = 2 picks a cycle; for w = 1 there is no coin. The report names a translate.
 * Privacy: T / s <= e^eps for every coin. Cost: log2 K bits.
 * @extends {Coded<Translates>}
 */
export class SubsetSelection extends Coded {
  /** @param {import("./finite.js").Parameters} params */
  constructor(params) {
    const of = read(params, ["epsilon", "word_bits", "k"]);
    super("subset-selection", of("epsilon"), of("word_bits"));
    this.k = wholeNumber("k", of("k"), 2, 2, MAX_SYMBOLS);
    const [order, w] = bestBlocks(this.nano, this.k);
    this.inner = new Translates(of("epsilon"), this.wordBits, order, w);
    this.wordBits = this.inner.wordBits;
    this.alphabet = order;
    this.domain = symbols(this.k);
    this.codes = w === 1 ? [Array.from({ length: this.k }, (_, symbol) => symbol)] : fieldOrder(order) === order ? products(order) : cycles(order);
    this.cells = this.codes.length;
  }

  /** The code of a value under a coin, in the domain of the inner channel whatever the coin. @param {number} value @param {number} cell */
  encode(value, cell) {
    return Math.min(Math.max(this.codes[cell][value], 0), this.alphabet - 1);
  }
}

/** @typedef {import("../rational.js").Fraction} Fraction */

/**
 * n E||f^ - f||^2 of k symbols at the uniform law, exactly, with sets of w of `order` symbols.
 * @param {Fraction} growth
 * @param {number} order
 * @param {number} w
 * @param {number} k
 */
function totalVariance(growth, order, w, k) {
  const own = times(fraction(BigInt(w)), growth);
  const p = over(own, plus(own, fraction(BigInt(order - w))));
  const q = over(minus(fraction(BigInt(w)), p), fraction(BigInt(order - 1)));
  const gap = minus(p, q);
  const seen = plus(q, over(gap, fraction(BigInt(k))));
  return over(times(times(fraction(BigInt(k)), seen), minus(fraction(1n), seen)), times(gap, gap));
}

/**
 * The order K and the set size w of least total variance at the uniform law: K = k and w <= 2, or a field and w next to K / (e^eps + 1).
 * @param {number} nano
 * @param {number} k
 * @returns {[number, number]}
 */
function bestBlocks(nano, k) {
  const growth = exactly(toDouble(expEpsilon(nano)));
  const order = fieldOrder(k);
  const part = over(fraction(BigInt(order)), plus(growth, fraction(1n)));
  const middle = Number(part.num / part.den);
  /** @type {[number, number][]} */
  const sizes = [[k, 1]];
  if (order > k) sizes.push([k, 2]);
  for (const w of [middle, middle + 1]) if (w >= 2 && w < order) sizes.push([order, w]);
  const variances = sizes.map(([points, w]) => totalVariance(growth, points, w, k));
  const best = variances.reduce((least, variance, place) => (compare(variance, variances[least]) < 0 ? place : least), 0);
  return sizes[best];
}

/** The least number >= k that is a prime or a power of two. @param {number} k */
function fieldOrder(k) {
  let order = k;
  while (!binary(order) && hasDivisor(order)) order += 1;
  return order;
}

/** @param {number} number */
function hasDivisor(number) {
  for (let part = 2; part * part <= number; part += 1) if (number % part === 0) return true;
  return false;
}

/** Row a is g^a times each element, g a generator of the field's nonzero elements. @param {number} order @returns {number[][]} */
function products(order) {
  const powers = generated(order);
  const exponents = new Array(order).fill(0);
  powers.forEach((element, exponent) => (exponents[element] = exponent));
  return powers.map((_, a) =>
    Array.from({ length: order }, (_, element) => (element === 0 ? 0 : powers[(a + exponents[element]) % (order - 1)])),
  );
}

/**
 * The places of the k symbols on k - 1 cycles through all of them: every two symbols are next to each other on exactly two cycles.
 * @param {number} k
 * @returns {number[][]}
 */
function cycles(k) {
  return Array.from({ length: k - 1 }, (_, cycle) => {
    const places = new Array(k).fill(0);
    for (let step = 0; step < k - 1; step += 1) {
      const zigzag = step % 2 === 1 ? (step + 1) / 2 : -step / 2;
      places[(cycle + zigzag + k - 1) % (k - 1)] = step + 1;
    }
    return places;
  });
}

/** The powers of a generator, 1 first: of x modulo a primitive polynomial where the order is a power of two. @param {number} order @returns {number[]} */
function generated(order) {
  const tries = binary(order) ? { first: order + 1, end: 2 * order, step: 2 } : { first: 2, end: order, step: 1 };
  for (let tried = tries.first; tried < tries.end; tried += tries.step) {
    const powers = [1];
    let last = 1;
    while (powers.length < order) {
      last = binary(order) ? Math.min(2 * last, (2 * last) ^ tried) : (last * tried) % order;
      if (last === 1) break;
      powers.push(last);
    }
    if (last === 1 && powers.length === order - 1) return powers;
  }
  throw new Error("every finite field has a generator");
}
