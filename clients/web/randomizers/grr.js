/** Generalised (k-ary) randomized response. */

import { Finite, losesLittle, otherWeight, read, symbols, wholeNumber } from "./finite.js";

/**
 * Reports the true one of k symbols with probability e^eps / (e^eps + k - 1), else another one uniformly.
 *
 * Privacy: T / s <= e^eps for the weights T = 2^m - (k - 1) s of the truth and s of each other symbol. Cost: log2 k bits.
 */
export class GRR extends Finite {
  /** @param {import("./finite.js").Parameters} params @param {string} [name] */
  constructor(params, name = "grr") {
    const of = read(params, ["epsilon", "word_bits", "k"]);
    super(name, of("epsilon"), of("word_bits"));
    this.k = wholeNumber("k", of("k"), 2, 2, 4096);
    this.alphabet = this.k;
    this.domain = symbols(this.k);
    this.other = 0n;
    this.settle();
  }

  /** @param {number} bits */
  fits(bits) {
    const other = otherWeight(this.nano, bits, this.k);
    return losesLittle((1n << BigInt(bits)) - BigInt(this.k - 1) * other, other, this.nano);
  }

  prepare() {
    this.other = otherWeight(this.nano, this.wordBits, this.k);
    if (this.truth <= this.other) throw this.tooNarrow();
  }

  /** The weight T of the true symbol. */
  get truth() {
    return this.total - BigInt(this.k - 1) * this.other;
  }

  /** Below it another symbol is reported. */
  edge() {
    return this.total - this.truth;
  }

  /** Splits the word's range into k - 1 equal steps, one for each other symbol, and a last one for the truth. @param {number} value @param {bigint} word */
  sample(value, word) {
    const step = Math.min(Number(word / this.other), this.k - 1);
    return (value + 1 + step) % this.k;
  }

  /** @param {number} report @param {number} value */
  weight(report, value) {
    return report === value ? this.truth : this.other;
  }
}
