/** Binary randomized response (Warner 1965). */

import { Finite, flipWeight, losesLittle, read } from "./finite.js";

/**
 * Reports the true bit with probability e^eps / (e^eps + 1), rounded towards privacy.
 *
 * Privacy: Pr[w | u] / Pr[w | u'] = (2^m - F) / F <= e^eps for the weight F of the opposite. Cost: 1 bit.
 */
export class BinaryRR extends Finite {
  /** @param {import("./finite.js").Parameters} params */
  constructor(params) {
    const of = read(params, ["epsilon", "word_bits"]);
    super("binary-rr", of("epsilon"), of("word_bits"));
    this.flip = 0n;
    this.settle();
  }

  /** @param {number} bits */
  fits(bits) {
    const flip = flipWeight(this.nano, bits);
    return losesLittle((1n << BigInt(bits)) - flip, flip, this.nano);
  }

  prepare() {
    this.flip = flipWeight(this.nano, this.wordBits);
    if (2n * this.flip >= this.total) throw this.tooNarrow();
  }

  /** Below it the bit is flipped. */
  edge() {
    return this.flip;
  }

  /** @param {number} value @param {bigint} word */
  sample(value, word) {
    return value ^ Number(word < this.flip);
  }

  /** @param {number} report @param {number} value */
  weight(report, value) {
    return report === value ? this.total - this.flip : this.flip;
  }
}
