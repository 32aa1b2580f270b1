/** The one-bit mean of a number (Duchi, Jordan, Wainwright 2013). */

import { Finite, otherWeight, read, wholeNumber } from "./finite.js";

/**
 * Reports 1 with a probability linear in the value x in [0, 1], on a lattice of `steps` steps: Pr[1] = 1/2 + (2x - 1) / (2C).
 *
 * Privacy: thresholds lie between those of binary randomized response. Cost: 1 bit.
 */
export class OneBitMean extends Finite {
  /** @param {import("./finite.js").Parameters} params */
  constructor(params) {
    const of = read(params, ["epsilon", "word_bits", "steps"]);
    super("one-bit-mean", of("epsilon"), of("word_bits"));
    this.steps = wholeNumber("steps", of("steps"), 1 << 16, 1, 1 << 20);
    this.domain = { kind: "levels", low: 0, high: this.steps };
    this.slope = 0n;
    this.base = 0n; // the weight of a reported 1 at x = 0
    this.settle();
  }

  /** 32 bits never suffice where no width is given: one step would be too coarse. */
  fits() {
    return false;
  }

  prepare() {
    this.slope = (this.total - 2n * otherWeight(this.nano, this.wordBits, 2)) / BigInt(this.steps);
    if (this.slope < 1n) throw this.tooNarrow();
    this.base = (this.total - this.slope * BigInt(this.steps)) / 2n;
  }

  /** The weight of a reported 1, which depends on the number: a word below it reports 1. @param {number} value */
  edge(value) {
    return this.base + BigInt(value) * this.slope;
  }

  /** @param {number} value @param {bigint} word */
  sample(value, word) {
    return Number(word < this.edge(value));
  }

  /** @param {number} report @param {number} value */
  weight(report, value) {
    return report === 1 ? this.edge(value) : this.total - this.edge(value);
  }
}
